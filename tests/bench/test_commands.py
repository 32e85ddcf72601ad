"""The commands measure a real server (scripted engine) and say what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli import main
from tests.live.server import live_server


def test_cancel_prints_its_table_and_writes_every_cancel_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cancel.json"
    command = ["bench", "cancel", "--engine=scripted", "--cancels=3", f"--json={file}"]

    assert main(command) == 0

    record = json.loads(file.read_text())
    assert [phase["phase"] for phase in record["phases"]] == ["decode", "prefill"]
    assert [len(phase["cancels"]) for phase in record["phases"]] == [3, 3]
    assert "stop_ms (server) p99" in capsys.readouterr().out


def test_cancel_measures_a_running_server(capsys: pytest.CaptureFixture[str]) -> None:
    with live_server(slots=4) as server:
        command = ["bench", "cancel", "--engine=scripted", "--cancels=2", "--phase=decode"]
        assert main([*command, f"--url={server.url}"]) == 0
        server.wait_idle()
    assert "prefill" not in capsys.readouterr().out


def test_chat_compares_the_wire_with_the_engine_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chat.json"
    small = ["--rounds=2", "--tokens=5", "--levels", "1", "2"]

    assert main(["bench", "chat", "--engine=scripted", f"--json={file}", *small]) == 0

    record = json.loads(file.read_text())
    assert [level["streams"] for level in record["levels"]] == [1, 2]
    assert all(len(level["pairs_tokens_per_second"]) == 2 for level in record["levels"])
    assert "wire / direct" in capsys.readouterr().out


def test_embed_compares_the_wire_with_the_engine_alone_and_cancels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "embed.json"
    small = ["--rounds=2", "--texts=100", "--cancels=2", "--streams=2"]

    assert main(["bench", "embed", "--engine=scripted", f"--json={file}", *small]) == 0

    record = json.loads(file.read_text())
    assert [load["load"]["name"] for load in record["loads"]] == [
        "1 text",
        "32 texts",
        "100 by input",
    ]
    assert all(len(load["pairs_texts_per_second"]) == 2 for load in record["loads"])
    assert (len(record["cancels"]["outside_ms"]), record["cancels"]["unit"]) == (2, "texts")
    assert "wasted texts, max" in capsys.readouterr().out


def test_fairness_compares_short_chats_alone_and_beside_a_flood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fairness.json"
    small = ["--slots=2", "--flood=1", "--words=20", "--rounds=2", "--chats=3"]

    assert main(["bench", "fairness", "--engine=scripted", f"--json={file}", *small]) == 0

    record = json.loads(file.read_text())
    assert [len(pair["alone_ms"]) for pair in record["pairs"]] == [3, 3]
    assert [len(pair["beside_ms"]) for pair in record["pairs"]] == [3, 3]
    assert record["flood_tokens_per_second"] > 0
    assert "first token p95, ms" in capsys.readouterr().out


def test_a_server_that_is_not_there_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "cancel", "--engine=scripted", "--url=http://127.0.0.1:9"]) == 1

    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("bad", ["--cancels=0", "--streams=-1", "--engine=other", "--phase=x"])
def test_a_bad_argument_is_wrong_usage(bad: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "cancel", bad])

    assert ended.value.code == 2


@pytest.mark.parametrize("option", ["--json", "--chart"])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    inside_a_file = tmp_path / "file" / "figures.svg"

    assert main(["bench", "abandon", "--target=nobody", f"{option}={inside_a_file}"]) == 1

    assert f"{inside_a_file} cannot be written" in capsys.readouterr().err
