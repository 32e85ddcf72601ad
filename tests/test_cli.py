"""The command line: exit codes, next steps, models from any directory, and a server that stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plait import cli, exits
from tests.models.tiny import write_gguf

SERVER = Path(__file__).parents[1] / "server"
STARTER = "smollm2-135m-instruct"
Toml = Callable[[str], str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store and a working directory without a plait.toml."""
    for name in [name for name in os.environ if name.startswith("PLAIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PLAIT_SPEECH_ENGINE", "off")
    monkeypatch.setenv("PLAIT_TRANSCRIBE_ENGINE", "off")
    monkeypatch.setenv("PLAIT_EMBED_ENGINE", "off")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def toml(tmp_path: Path) -> Toml:
    """Write plait.toml; returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "plait.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def tiny_model(tmp_path: Path, toml: Toml) -> Path:
    """A GGUF in the working directory, configured as the chat model."""
    toml('chat_model = "./tiny.gguf"\nchat_engine = "llamacpp"')
    return write_gguf(tmp_path / "tiny.gguf")


def plait(*arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "plait", *arguments],
        env=os.environ | {"PYTHONPATH": str(SERVER)} | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `plait serve` on a free port, and the URL it printed."""
    with plait("serve", "--port", "0", *arguments) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + process.communicate(timeout=5)[1]
            yield process, found[0]
        finally:
            process.kill()


@pytest.mark.parametrize("arguments", [[], ["models"], ["bench"]])
def test_a_command_that_lacks_its_command_shows_the_choice(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert cli.main(arguments) == exits.EXIT_USAGE

    assert "show this help message" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["sing"], ["models", "x"], ["serve", "--port", "x"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)

    assert caught.value.code == 2


def test_help_documents_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])

    assert "engine that runs it, is not available" in capsys.readouterr().out


def test_help_imports_neither_server_nor_models() -> None:
    script = (
        "import sys; from plait import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'plait.app', 'plait.models', 'uvicorn', 'rich', 'numpy', 'msgspec', 'asyncio'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)) or None)"
    )

    result = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SERVER)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "said"),
    [("prot = 1", "Did you mean 'port'"), ("host = '0.0.0.0'", "PLAIT_TOKEN"), ("port = ", "TOML")],
)
def test_a_configuration_error_exits_with_2_and_the_next_step(
    toml: Toml, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    toml(line)

    assert cli.main(["serve"]) == exits.EXIT_USAGE
    assert said in capsys.readouterr().err


def test_an_engine_that_is_not_installed_exits_with_3_before_anything_is_fetched(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlx_lm", None)

    assert cli.main(["serve", "--chat-engine", "mlx"]) == exits.EXIT_MODEL
    said = capsys.readouterr().err
    assert "mlx-lm is not installed" in said
    assert "[mlx]'" in said
    assert not home.exists()


def test_the_model_can_be_named_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["serve", "--port", "0", "--chat-engine", "llamacpp", "--chat-model", "smolm2"]

    assert cli.main(arguments) == exits.EXIT_MODEL
    assert "'smolm2'" in capsys.readouterr().err


def test_a_pull_is_advised_only_for_what_can_be_pulled(capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for action, name in (("verify", "nope"), ("remove", "nope"), ("verify", STARTER)):
        assert cli.main(["models", action, name]) == exits.EXIT_MODEL
        said[action, name] = "models pull" in capsys.readouterr().err

    assert said == {("verify", "nope"): False, ("remove", "nope"): False, ("verify", STARTER): True}


@pytest.mark.parametrize("name", ["smolm2", "./nothing.gguf", "hf:x"])
def test_a_model_that_cannot_be_had_exits_with_3(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert cli.main(["models", "pull", name]) == exits.EXIT_MODEL
    assert capsys.readouterr().err.startswith("plait: ")


def test_a_taken_port_exits_with_4_before_any_download(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert cli.main(["serve", "--port", str(port)]) == exits.EXIT_PORT

    assert f"port {port} on 127.0.0.1 is taken" in capsys.readouterr().err
    assert not home.exists()


def test_the_list_shows_what_can_be_pulled(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    assert "Q4_1, 98 MB; plait models pull smollm2-135m-instruct" in capsys.readouterr().out


def test_pull_without_a_name_takes_the_configured_model(
    tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", "pull"]) == exits.EXIT_OK
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    assert "tiny  chat, gguf, 0.1 MB, context 512 tokens, MIT" in capsys.readouterr().out


def test_pull_can_make_the_other_engines_form(
    tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", "pull", "--engine", "mlx"]) == exits.EXIT_OK
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    captured = capsys.readouterr()
    assert "tiny  chat, gguf and mlx" in captured.out
    assert "Converting ./tiny.gguf: 100 %" in captured.err


def test_verify_passes_and_then_finds_the_damage(
    tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["models", "pull"])

    assert cli.main(["models", "verify"]) == exits.EXIT_OK
    with tiny_model.open("r+b") as file:
        file.write(b"XXXX")
    assert cli.main(["models", "verify", "tiny"]) == exits.EXIT_FAILED
    assert "is damaged" in capsys.readouterr().err


def test_remove_deletes_and_a_second_remove_says_it_is_gone(
    tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["models", "pull"])

    assert cli.main(["models", "remove", "tiny"]) == exits.EXIT_OK
    assert cli.main(["models", "remove", "tiny"]) == exits.EXIT_MODEL
    assert "not installed" in capsys.readouterr().err


def test_a_served_playground_answers_and_sigterm_ends_it_with_0() -> None:
    with serving("--chat-engine", "scripted", "--no-open") as (process, url):
        with urllib.request.urlopen(f"{url}healthz", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)

        assert process.wait(60) == exits.EXIT_OK
        assert process.stdout is not None
        assert process.stdout.read().splitlines() == ["Ctrl-C stops it.", "Stopping.", "Stopped."]


def test_the_second_start_answers_soon() -> None:
    started = time.monotonic()

    with (
        serving("--chat-engine", "scripted", "--no-open") as (_, url),
        urllib.request.urlopen(f"{url}healthz", timeout=60),
    ):
        assert time.monotonic() - started < 60  # 5 s on an idle machine; this one is shared


def test_a_reader_that_leaves_early_is_no_error() -> None:
    process = plait("models", "list")
    assert process.stdout is not None
    process.stdout.close()

    assert process.wait(60) == exits.EXIT_OK
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_pull_stopped_by_sigterm_leaves_nothing(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_index:
        url = f"http://127.0.0.1:{silent_index.getsockname()[1]}/simple"
        index = {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "0"}
        with plait("models", "pull", "smollm2-135m-instruct", **index) as process:
            silent_index.settimeout(30)
            request, _ = silent_index.accept()  # pip asks, and gets no answer

            process.terminate()

            assert process.wait(60) == exits.EXIT_INTERRUPTED
        request.close()
    assert [path.name for path in (home / "models").iterdir()] == [".locks"]


@pytest.mark.parametrize(
    ("method", "said"), [("speech", "Speech"), ("transcribe", "Transcription")]
)
def test_a_method_that_cannot_be_had_is_said_and_does_not_keep_chat_from_being_served(
    monkeypatch: pytest.MonkeyPatch, method: str, said: str
) -> None:
    monkeypatch.setenv(f"PLAIT_{method.upper()}_ENGINE", "auto")
    monkeypatch.setenv(f"PLAIT_{method.upper()}_MODEL", "./nothing")

    with plait("serve", "--port", "0", "--chat-engine", "scripted") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.kill()

    assert lines[0].startswith(f"{said} is off: There is no model at")
    assert "Plait serves scripted at http://" in lines[1]


@pytest.mark.parametrize(
    ("method", "engine"), [("speech", "kokoro-onnx"), ("transcribe", "whisper")]
)
def test_a_method_that_was_asked_for_and_cannot_be_had_exits_with_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, method: str, engine: str
) -> None:
    monkeypatch.setenv(f"PLAIT_{method.upper()}_MODEL", "./nothing")
    arguments = ["serve", "--port", "0", "--chat-engine", "scripted"]

    assert cli.main([*arguments, f"--{method}-engine", engine]) == exits.EXIT_MODEL
    assert "There is no model at" in capsys.readouterr().err
