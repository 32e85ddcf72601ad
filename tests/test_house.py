"""The house rules a tool can check: what lies where, what never appears, what agrees."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

import plait

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "server" / "plait"

TOP_LEVEL = {
    ".ci", ".dockerignore", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile",
    "LICENSE", "Makefile", "NOTICE", "PROTOCOL.md", "README.md", "docker-compose.yml", "docs",
    "e2e", "pyproject.toml", "server", "tests", "web",
}  # fmt: skip

# Written so that no pattern matches its own source.
MACHINE_SPECIFIC = {
    "a path of one machine": re.compile(r"/work/(main|shared)|/tmp/[x]/|/root/[.\w]|/Users/[a-z]"),
    "a registry's host": re.compile(
        r"pypi\.org|pythonhosted\.org|npmjs\.(org|com)|yarnpkg\.com|deb\.debian\.org"
    ),
}
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b|NotImplemented[E]rror")


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file git tracks that is still there."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def text_of(path: Path) -> str:
    """The file's text, or nothing for a binary one."""
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode()


def offending_lines(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_only_known_entries_are_at_the_top_level() -> None:
    entries = {path.relative_to(ROOT).parts[0] for path in tracked_files()}

    assert entries <= TOP_LEVEL


@pytest.mark.parametrize("what", MACHINE_SPECIFIC)
def test_no_tracked_file_names(what: str) -> None:
    assert offending_lines(MACHINE_SPECIFIC[what], tracked_files()) == []


def test_nothing_is_marked_unfinished() -> None:
    sources = tuple(path for path in tracked_files() if path.suffix in {".py", ".js", ".css"})

    assert offending_lines(UNFINISHED, sources) == []


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_newest_release_in_the_changelog_is_the_packages_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest is not None, "CHANGELOG.md has no heading like '## 0.1.0' or '## [0.1.0]'"
    assert project["version"] == newest[1]
    assert plait.__version__ == newest[1]


@pytest.mark.parametrize(
    "module",
    [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))],
)
def test_every_module_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(ast.parse((PACKAGE / module).read_text()))


def test_the_locks_hold_no_cuda_and_torch_only_for_apple_silicon() -> None:
    locks = "".join(path.read_text() for path in (ROOT / ".ci" / "requirements").glob("*.lock"))
    locked = re.findall(r"^([a-z0-9._-]+)==\S+(.*)$", locks, re.MULTILINE)

    heavy = [
        (name, markers)
        for name, markers in locked
        if re.match(r"torch$|nvidia|triton|.*cuda|mlx-cuda", name)
    ]
    assert {name for name, _ in heavy} == {"torch"}
    assert all("sys_platform == 'darwin'" in markers for _, markers in heavy)


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / ".ci" / "requirements" / "runtime.lock").read_text()

    for requirement in project["dependencies"]:
        name = re.split(r"[^A-Za-z0-9-]", requirement, maxsplit=1)[0]
        assert re.search(rf"^{name}==", lock, re.MULTILINE), f"{name}: run .ci/lock"
