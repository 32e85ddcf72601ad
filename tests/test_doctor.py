"""The doctor: facts with a next step, healthy or not, readable by people and programs."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plait import cli, doctor, exits
from plait.models import ModelStore
from tests.models.tiny import write_gguf


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    for name in [name for name in os.environ if name.startswith("PLAIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return ModelStore()


def finding(report: doctor.Report, subject: str) -> doctor.Finding:
    return next(f for f in report.findings if f.subject == subject)


def test_a_machine_without_models_is_told_to_pull_one() -> None:
    report = doctor.examine()

    model = finding(report, "model smollm2-135m-instruct")
    assert model.status == "note"
    assert model.next_step.startswith("plait models pull smollm2-135m-instruct")
    assert model.next_step in report.next_steps


def test_an_installed_model_is_verified(tmp_path: Path, store: ModelStore) -> None:
    path = write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "plait.toml").write_text('chat_model = "./tiny.gguf"')
    store.ensure("./tiny.gguf", "llamacpp")

    assert finding(doctor.examine(), "model tiny").status == "ok"
    with path.open("r+b") as file:
        file.write(b"XXXX")
    report = doctor.examine()

    assert finding(report, "model tiny").status == "fail"
    assert not report.healthy


def test_a_wrong_setting_is_a_finding_and_comes_first(tmp_path: Path) -> None:
    (tmp_path / "plait.toml").write_text("prot = 1")

    report = doctor.examine()

    assert "Did you mean 'port'" in finding(report, "configuration").detail
    assert report.next_steps[0].startswith("Correct the setting")
    assert "plait serve" not in report.next_steps


def test_a_taken_port_is_the_next_thing_to_mend(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "plait.toml").write_text(f"port = {taken.getsockname()[1]}")

        report = doctor.examine()

    assert "is taken" in finding(report, "port").detail
    assert any("what is on port" in step for step in report.next_steps)
    assert "plait serve" not in report.next_steps


@pytest.fixture
def occupied(tmp_path: Path) -> Iterator[Callable[[bytes], None]]:
    """The configured port is taken by what answers one request with these bytes."""
    threads = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "plait.toml").write_text(f"port = {taken.getsockname()[1]}")

        def answer(said: bytes) -> None:
            asked, _ = taken.accept()
            with asked:
                asked.recv(4096)
                asked.sendall(said)

        def begin(said: bytes) -> None:
            threads.append(threading.Thread(target=answer, args=(said,), daemon=True))
            threads[0].start()

        yield begin
        threads[0].join(30)


def test_a_plait_that_serves_already_is_no_problem(occupied: Callable[[bytes], None]) -> None:
    occupied(b'HTTP/1.1 200 OK\r\n\r\n{"ready": true, "models": {"tiny": "ready"}}')

    report = doctor.examine()

    port = finding(report, "port")
    assert (port.status, port.detail[:29]) == ("ok", "Plait is serving here already")
    assert port.next_step.startswith("Open http://127.0.0.1:")
    assert "plait serve" not in report.next_steps


def test_a_plait_that_is_not_ready_is_told_as_such(occupied: Callable[[bytes], None]) -> None:
    occupied(b'HTTP/1.1 503 x\r\n\r\n{"ready": false, "models": {"tiny": "failed"}}')

    port = finding(doctor.examine(), "port")

    assert port.status == "note"
    assert "not every model is ready" in port.detail
    assert "/readyz" in port.next_step


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\nno", "answers HTTP 404"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "answers HTTP 200"),
        (b"SSH-2.0-x\r\n", "speaks no HTTP"),
    ],
)
def test_another_program_on_the_port_is_told_by_its_answer(
    occupied: Callable[[bytes], None], said: bytes, what: str
) -> None:
    occupied(said)

    port = finding(doctor.examine(), "port")

    assert f"taken by another program, which {what}" in port.detail
    assert "what is on port" in port.next_step


def test_what_does_not_answer_may_be_a_plait_that_still_starts(
    occupied: Callable[[bytes], None],
) -> None:
    occupied(b"")

    assert "perhaps by another plait" in finding(doctor.examine(), "port").detail


def test_engines_are_found_without_importing_them() -> None:
    before = {"mlx", "mlx_lm", "xllamacpp"} & set(sys.modules)

    report = doctor.examine()

    assert finding(report, "engine llamacpp").subject
    assert {"mlx", "mlx_lm", "xllamacpp"} & set(sys.modules) == before


def test_the_json_report_says_what_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    cli.main(["doctor"])
    text = capsys.readouterr().out

    assert (code == 0) is report["healthy"]
    for entry in report["findings"]:
        assert f"{entry['status']:<5} {entry['subject']}" in text
    assert text.rstrip().endswith(report["next_steps"][-1])


def test_an_unhealthy_machine_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "plait.toml").write_text("port = 'x'")

    assert cli.main(["doctor"]) == exits.EXIT_FAILED
