from __future__ import annotations

from pathlib import Path

import pytest

from plait.machine_cores import core_ids


def test_no_more_than_asked_for_and_always_one(tmp_path: Path) -> None:
    every = core_ids(quota=tmp_path / "none")

    assert core_ids(1, tmp_path / "none") == every[:1]
    assert core_ids(4096, tmp_path / "none") == every


@pytest.mark.parametrize("line", ["50000 100000", "100000 100000"])
def test_a_containers_quota_bounds_them(tmp_path: Path, line: str) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(line + "\n")

    assert len(core_ids(quota=quota)) == 1


@pytest.mark.parametrize("line", ["max 100000", "", "fast"])
def test_without_a_quota_all_that_the_process_may_use_are_used(tmp_path: Path, line: str) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(line)

    assert core_ids(quota=quota) == core_ids(quota=tmp_path / "none")
