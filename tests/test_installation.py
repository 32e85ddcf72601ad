"""What this installation is called and can run, for platforms that are not this one, too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from plait.installation import engine_missing, install_command, program_name


@pytest.fixture
def nothing_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that finds none of the engines' packages."""
    for name in ("mlx", "mlx_lm", "xllamacpp"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a virtual environment that is not on the path."""
    (tmp_path / "on-path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "on-path"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("argv0", [".venv/bin/plait", "{here}/.venv/bin/plait"])
def test_a_plait_of_this_directory_is_named_as_it_can_be_started(
    checkout: Path, argv0: str
) -> None:
    assert program_name(argv0.format(here=checkout)) == ".venv/bin/plait"


def test_a_plait_on_the_path_is_just_plait(checkout: Path) -> None:
    command = checkout / "on-path" / "plait"
    command.touch(0o755)

    assert program_name(str(command)) == "plait"


def test_a_module_run_by_python_is_named_so() -> None:
    assert program_name("/anywhere/plait/__main__.py").endswith(" -m plait")
    assert program_name("/anywhere/pytest/__main__.py") == "plait"


def test_the_scripted_engine_needs_nothing(nothing_importable: None) -> None:
    assert engine_missing("scripted") is None


@pytest.mark.parametrize("engine", ["llamacpp", "mlx"])
def test_a_missing_engine_names_the_command_that_adds_it(
    nothing_importable: None, engine: str
) -> None:
    missing = engine_missing(engine, "Linux", "x86_64")

    assert missing is not None
    assert "not installed" in missing.reason
    assert missing.next_step == install_command(engine)


@pytest.mark.parametrize(
    ("platform", "way_out"),
    [
        (("Linux", "aarch64"), "install xllamacpp && plait serve --chat-engine llamacpp"),
        (("Darwin", "x86_64"), "install xllamacpp && plait serve --chat-engine llamacpp"),
        (("Plan9", "mips"), "docker compose up"),
    ],
)
def test_a_platform_plait_brings_no_engine_for_is_told_the_way_out(
    nothing_importable: None, platform: tuple[str, str], way_out: str
) -> None:
    missing = engine_missing("llamacpp", *platform)

    assert missing is not None
    assert " on ".join(platform) in missing.reason
    assert way_out in missing.next_step


def test_a_checkout_is_installed_again_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])

    assert install_command("mlx").endswith("install -e '.[mlx]'")
    assert os.path.basename(install_command("mlx").split()[0]).startswith(("pip", "python"))
