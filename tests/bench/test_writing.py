"""A benchmark's files: proved before, none left unfilled, and each with where it comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait import __version__
from plait.bench.serving import BenchError
from plait.bench.writing import check_writable, filling, write_json


def test_a_proof_leaves_no_file_and_no_folder(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "newer" / "figures.json")

    assert list(tmp_path.iterdir()) == []


def test_a_proof_leaves_what_a_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text("earlier figures")

    check_writable(file)

    assert file.read_text() == "earlier figures"


def test_a_proof_leaves_a_link_whose_file_is_not_there_yet(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "figures.json")

    check_writable(link)

    assert list(tmp_path.iterdir()) == [link]


def test_a_folder_that_takes_no_files_is_said_although_permissions_allow_all() -> None:
    with pytest.raises(BenchError, match=r"^/proc/x\.json cannot be written: .*; name another"):
        check_writable(Path("/proc/x.json"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="Is a directory"):
        check_writable(tmp_path)


def half_written(file: Path, error: BaseException) -> None:
    with filling(file):
        file.write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_is_only_half_written_goes_with_its_folders(
    error: BaseException, tmp_path: Path
) -> None:
    with pytest.raises((KeyboardInterrupt, BenchError)):
        half_written(tmp_path / "new" / "figures.json", error)

    assert list(tmp_path.iterdir()) == []


def test_json_says_its_schema_version_and_command_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "figures.json"
    monkeypatch.setattr("sys.argv", ["/bin/plait", "bench", "chat", "--json", "my figures"])

    write_json(file, {"levels": []})

    assert list(json.loads(file.read_text()).items()) == [
        ("schema", 1),
        ("plait", __version__),
        ("command", "plait bench chat --json 'my figures'"),
        ("levels", []),
    ]
