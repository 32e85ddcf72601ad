"""`plait models …` with several methods: what is listed, and which models a pull without a name
means.

Of the models configured here only the one for chat can be fetched, so an error that names another
shows that it was meant, after or instead of the chat model.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from plait import cli, exits
from plait.models import ModelStore
from plait.models.forms import METHOD_OF
from tests.models.tiny import write_gguf
from tests.models.tiny_speech import VOICES, converter, write_model_directory
from tests.models.whisper.tiny import ENGLISH, write_ggml

CHAT = "tiny is installed"
SPEECH = "voices-of-mine"
EARS = "ggml-ears-of-mine"


@pytest.fixture(scope="module")
def english_ggml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ggml(tmp_path_factory.mktemp("ggml") / "ggml.bin", ENGLISH)


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chat model that can be had and a speech model that cannot."""
    for name in [name for name in os.environ if name.startswith("PLAIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "plait.toml").write_text(
        'chat_model = "./tiny.gguf"\nchat_engine = "llamacpp"\n'
        'speech_model = "./voices-of-mine"\nspeech_engine = "kokoro-onnx"\n'
        'transcribe_model = "./ggml-ears-of-mine.bin"\ntranscribe_engine = "off"\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "chat", "speech"),
    [
        ([], True, True),
        (["--engine", "llamacpp"], True, False),
        (["--engine", "kokoro-onnx"], False, True),
        (["./tiny.gguf"], True, False),
        (["./voices-of-mine"], False, True),
    ],
)
def test_a_pull_takes_what_is_named_or_configured(
    capsys: pytest.CaptureFixture[str], arguments: list[str], chat: bool, speech: bool
) -> None:
    code = cli.main(["models", "pull", *arguments])

    captured = capsys.readouterr()
    assert (CHAT in captured.out, SPEECH in captured.err) == (chat, speech)
    assert code == (exits.EXIT_MODEL if speech else exits.EXIT_OK)


def test_a_pull_takes_the_transcription_model_before_the_speech_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_TRANSCRIBE_ENGINE", "auto")

    assert cli.main(["models", "pull"]) == exits.EXIT_MODEL
    captured = capsys.readouterr()
    assert (CHAT in captured.out, EARS in captured.err) == (True, True)


@pytest.mark.parametrize(
    "arguments",
    [["--engine", "whisper"], ["./ggml-ears-of-mine.bin"], ["./ggml-others.bin"], ["ggml-x.bin"]],
)
def test_a_ggml_file_is_pulled_for_transcription(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, english_ggml: Path, arguments: list[str]
) -> None:
    for name in ("ggml-ears-of-mine.bin", "ggml-others.bin", "ggml-x.bin"):
        shutil.copyfile(english_ggml, tmp_path / name)

    assert cli.main(["models", "pull", *arguments]) == exits.EXIT_OK
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    name = Path(arguments[-1]).stem if arguments[0] != "--engine" else EARS
    line = rf"{name}  transcribe, ggml, 8\.\d MB, English, unknown, in "
    assert re.search(line, capsys.readouterr().out)


def test_a_ggml_file_that_was_spoilt_is_listed_as_unreadable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, english_ggml: Path
) -> None:
    own = tmp_path / "ggml-own.bin"
    shutil.copyfile(english_ggml, own)
    ModelStore().ensure(str(own), "whisper")
    with own.open("r+b") as file:
        file.write(b"RIFF")

    assert cli.main(["models", "list"]) == exits.EXIT_OK
    assert "ggml-own  transcribe, ggml, " in (said := capsys.readouterr().out)
    assert ", unreadable, unknown, in " in said
    assert cli.main(["models", "verify", str(own)]) == exits.EXIT_FAILED


def test_a_pull_takes_no_speech_model_where_speech_is_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_SPEECH_ENGINE", "off")

    assert cli.main(["models", "pull"]) == exits.EXIT_OK
    assert CHAT in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["smollm2-135m-instruct", "--engine", "kokoro-onnx"], "speech_model = 'kokoro-82m'"),
        (["kokoro-82m", "--engine", "llamacpp"], "chat_model = 'smollm2-135m-instruct'"),
        (["kokoro"], "Did you mean 'kokoro-82m'?"),
        (["kokoro-82m", "--engine", "whisper"], "transcribe_model = 'whisper-tiny.en'"),
        (["whisper-base", "--engine", "mlx"], "chat_model = 'smollm2-135m-instruct'"),
        (["hf:org/name", "--engine", "whisper"], "hf:ggerganov/whisper.cpp/ggml-base.bin"),
    ],
)
def test_a_model_of_another_method_is_refused_with_one_that_fits(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert cli.main(["models", "pull", *arguments]) == exits.EXIT_MODEL
    assert said in capsys.readouterr().err


def test_the_speech_starter_is_listed_with_its_voices(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    said = capsys.readouterr().out
    assert "kokoro-82m  not installed (synthesize, 54 voices, 121 MB; plait models pull" in said


def test_whisper_is_listed_with_bigger_models_of_the_hub(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["models", "list"]) == exits.EXIT_OK

    said = capsys.readouterr().out
    assert "whisper-tiny.en  not installed (transcribe, 78 MB; plait models pull" in said
    assert "whisper-base  not installed (transcribe, 147 MB; plait models pull" in said
    assert "hf:ggerganov/whisper.cpp/ggml-small.en.bin  not installed (transcribe, 488 MB, " in said


def test_an_installed_speech_model_is_listed_with_forms_and_voices(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = write_model_directory(tmp_path / "own")
    ModelStore(converters={"kokoro-onnx": converter("onnx")}).ensure(str(own), "kokoro-onnx")

    assert cli.main(["models", "list"]) == exits.EXIT_OK
    said = capsys.readouterr().out
    assert f"own  synthesize, onnx, 1.6 MB, {len(VOICES)} voices, unknown, in " in said


def test_every_form_of_a_model_can_be_pulled() -> None:
    assert set(cli.PULLABLE) == METHOD_OF.keys()
