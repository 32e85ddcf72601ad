"""The container, as far as it can be checked without a container engine.

The Dockerfile's own RUN lines are executed in a temporary directory that stands for the image's
root, so a missing file or dependency fails here and not on a user's machine. Steps that need a
Debian root (apt-get, useradd) or another image (COPY --from) are left out; any other step must run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
NEEDS_DEBIAN_ROOT = ("apt-get", "useradd")


@dataclass(frozen=True)
class Step:
    """One Dockerfile instruction with its continuation lines joined."""

    verb: str
    rest: str


def dockerfile() -> list[Step]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:1] != "#"]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [Step(*line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def the_only(verb: str) -> str:
    (step,) = (step for step in dockerfile() if step.verb == verb)
    return step.rest


def copy(step: Step, workdir: Path) -> None:
    """COPY a b … destination, from the build context into the stand-in for the image."""
    *sources, destination = step.rest.split()
    target = workdir / destination
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            ignored = shutil.ignore_patterns("node_modules", "__pycache__")
            shutil.copytree(path, target, ignore=ignored, dirs_exist_ok=True)
        else:
            to_folder = destination.endswith("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path.name if to_folder else target)


def build(root: Path) -> Path:
    """Follow the Dockerfile below `root` and return the working directory it ends in."""
    workdir = root
    for step in dockerfile():
        if step.verb == "WORKDIR":
            workdir = root / step.rest.lstrip("/")
            workdir.mkdir(parents=True)
        elif step.verb == "COPY" and not step.rest.startswith("--from="):
            copy(step, workdir)
        elif step.verb == "RUN" and not step.rest.startswith(NEEDS_DEBIAN_ROOT):
            subprocess.run(
                ["sh", "-ec", step.rest], cwd=workdir, env=build_environment(), check=True
            )
    return workdir


def build_environment() -> dict[str, str]:
    """As in the image, but with pip's cache kept and this interpreter as `python`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_PROGRESS_BAR": "off",
    }


@pytest.fixture
def fake_plait(tmp_path: Path) -> Path:
    """A folder with a `plait` that prints its arguments and token instead of serving."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "plait"
    command.write_text('#!/bin/sh\necho "argv: $*"\necho "token: $PLAIT_TOKEN"\n')
    command.chmod(0o755)
    return folder


def start(fake_plait: Path, home: Path, token: str = "") -> dict[str, str]:
    """Run the container's entry; returns its output as {label: value}."""
    env = {
        "PATH": f"{fake_plait}:{os.environ['PATH']}",
        "PLAIT_HOME": str(home),
        "PLAIT_TOKEN": token,
    }
    command = [sys.executable, str(ROOT / ".ci" / "container" / "start.py"), "--port", "8760"]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return dict(line.rsplit(": ", 1) for line in output.splitlines())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.installs
def test_the_dockerfiles_install_steps_give_a_working_plait_with_its_web_files(
    tmp_path: Path,
) -> None:
    workdir = build(tmp_path)

    package = workdir / "venv" / "lib"
    served = {path.parent.name for path in package.glob("python3*/site-packages/plait/_web/*/*")}
    assert {"sdk", "playground"} <= served
    assert not list(package.rglob("_web/**/node_modules"))


def test_the_image_runs_without_root_and_stops_on_sigterm() -> None:
    assert the_only("USER") == "plait"
    assert the_only("STOPSIGNAL") == "SIGTERM"
    assert the_only("VOLUME") == "/models"
    assert "/healthz" in the_only("HEALTHCHECK")


def test_the_compose_file_follows_the_compose_specification() -> None:
    schema = json.loads((ROOT / "tests" / "data" / "compose-spec.json").read_text())

    jsonschema.Draft7Validator(schema).validate(compose())


def test_the_composed_service_is_on_loopback_keeps_its_models_and_stops_gracefully() -> None:
    service = compose()["services"]["plait"]

    assert service["ports"] == ["127.0.0.1:8760:8760"]
    assert service["volumes"] == ["models:/models"]
    assert service["platform"] == "linux/amd64"  # the only one the lock has an engine for
    assert service["stop_grace_period"] == "20s"
    assert service["healthcheck"]["test"][0] == "CMD"


def test_the_first_start_makes_a_private_token_and_shows_it_once(
    fake_plait: Path, tmp_path: Path
) -> None:
    first, second = start(fake_plait, tmp_path), start(fake_plait, tmp_path)

    assert len(first["token"]) >= 32
    assert second == {"argv": first["argv"], "token": first["token"]}
    assert first["token"] not in first["argv"]
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_an_empty_token_file_counts_as_none(fake_plait: Path, tmp_path: Path) -> None:
    (tmp_path / "token").touch()

    output = start(fake_plait, tmp_path)

    assert (tmp_path / "token").read_text().strip() == output["token"] != ""
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_start_that_was_cut_off_leaves_nothing_in_the_way(
    fake_plait: Path, tmp_path: Path
) -> None:
    (tmp_path / ".token.new").write_text("hal")

    output = start(fake_plait, tmp_path)

    assert len(output["token"]) >= 32
    assert [path.name for path in tmp_path.glob("*token*")] == ["token"]


def test_the_operators_own_token_is_used_as_it_is(fake_plait: Path, tmp_path: Path) -> None:
    output = start(fake_plait, tmp_path, token="chosen")

    assert output["token"] == "chosen"
    assert not (tmp_path / "token").exists()


def test_the_container_listens_beyond_itself_and_opens_no_browser(
    fake_plait: Path, tmp_path: Path
) -> None:
    output = start(fake_plait, tmp_path)

    assert output["argv"] == "serve --host 0.0.0.0 --no-open --port 8760"


def compose() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())
