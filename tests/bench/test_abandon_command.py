"""`plait bench abandon` against real servers (scripted engine), from hang-ups to the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli import main
from tests.live.server import live_server

# Long enough to be left: a machine that stalls reads the first of it late.
SMALL = ["--requests=10", "--tokens=30", "--prefill-words=30", "--clients=4", "--slots=2"]


def test_a_server_of_our_own_gives_account_of_every_hang_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "abandon.json"
    command = ["bench", "abandon", "--target=plait:scripted", "--rates", "0", "60", *SMALL]

    assert main([*command, "--slices=1", f"--json={file}"]) == 0

    whole, left = json.loads(file.read_text())["outcomes"]
    # All ask for more than thirty tokens, so whoever stays gets thirty.
    assert (whole["hung_up"], whole["usable_tokens"]) == (0, 300)
    # On a machine that stalls an answer may be whole before its reader leaves.
    assert 0 < left["hung_up"] <= 6
    assert len(left["decoded_after"]) + len(left["prefilled_after"]) == left["hung_up"]
    assert max(left["decoded_after"], default=0) <= 30
    assert 0 <= left["dead_seconds"] < left["busy_seconds"]
    assert "tokens decoded after it, p50" in capsys.readouterr().out


def test_a_running_plait_is_asked_by_its_metrics(tmp_path: Path) -> None:
    file = tmp_path / "abandon.json"
    with live_server(slots=2) as server:
        command = ["bench", "abandon", f"--target={server.ws_url}", "--rates", "60", *SMALL]
        assert main([*command, "--no-cancel", f"--json={file}"]) == 0
        server.wait_idle(60)

    (left,) = json.loads(file.read_text())["outcomes"]
    assert left["sources"] == "its metrics"
    assert 0 < left["hung_up"] <= 6
    assert len(left["decoded_after"]) + left["hung_up_before_first_token"] == left["hung_up"]


def test_a_plait_that_asks_for_a_token_is_shown_the_one_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "abandon.json"
    with live_server(tokens="sesame") as server:
        command = ["bench", "abandon", "--rates", "60", *SMALL, f"--json={file}"]
        assert main([*command, f"--target={server.ws_url}"]) == 1
        assert f"{server.ws_url} asks for a token: set PLAIT_TOKEN" in capsys.readouterr().err
        assert main([*command, f"--target={server.url}"]) == 1
        assert f"is a Plait: use --target {server.ws_url}" in capsys.readouterr().err

        monkeypatch.setenv("PLAIT_TOKEN", "sesame")
        assert main([*command, f"--target={server.ws_url}"]) == 0

    assert "sesame" not in file.read_text()


def test_what_is_no_target_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "abandon", "--target=vllm"]) == 1

    assert "'vllm' is no target: use plait:llamacpp" in capsys.readouterr().err


def test_a_chart_without_hang_ups_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "abandon", "--rates", "0", f"--chart={tmp_path / 'chart.svg'}"]) == 1

    assert "give --rates one above 0" in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["--rates=101", "--load=0", "--clients=0", "--load=nan"])
def test_a_bad_argument_is_wrong_usage(bad: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "abandon", bad])

    assert ended.value.code == 2
