"""Memory of the machine and of the container around it, on files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from plait import machine_memory

MIB = 1024 * 1024


@pytest.fixture
def membership(tmp_path: Path) -> Path:
    return tmp_path / "cgroup"


def write(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)


def test_without_a_container_the_machine_counts(tmp_path: Path, membership: Path) -> None:
    total = machine_memory.total_bytes(tmp_path, membership)
    assert total == psutil.virtual_memory().total
    assert 0 < machine_memory.available_bytes(tmp_path, membership) <= total
    assert machine_memory.oom_kills(tmp_path, membership, tmp_path / "vmstat") is None


def test_of_cgroup_2_the_tightest_limit_counts_and_files_in_cache_are_left(
    tmp_path: Path, membership: Path
) -> None:
    membership.write_text("0::/pod/plait\n")
    write(tmp_path / "pod", memory__max=f"{64 * MIB}\n", memory__current=f"{40 * MIB}\n")
    write(
        tmp_path / "pod" / "plait",
        memory__max="max\n",
        memory__current="1\n",
        memory__events="oom 2\noom_kill 3\n",
    )
    write(tmp_path / "pod", memory__stat=f"active_file {8 * MIB}\ninactive_file {2 * MIB}\n")
    assert machine_memory.total_bytes(tmp_path, membership) == 64 * MIB
    assert machine_memory.available_bytes(tmp_path, membership) == 34 * MIB
    assert machine_memory.oom_kills(tmp_path, membership) == 3


def test_of_cgroup_1_too(tmp_path: Path, membership: Path) -> None:
    membership.write_text("8:pids:/x\n4:memory:/docker/abc\n0::/\n")
    write(
        tmp_path / "memory" / "docker" / "abc",
        memory__limit_in_bytes=f"{32 * MIB}\n",
        memory__usage_in_bytes=f"{30 * MIB}\n",
        memory__stat=f"inactive_file 9\ntotal_inactive_file {4 * MIB}\n",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
    )
    assert machine_memory.total_bytes(tmp_path, membership) == 32 * MIB
    assert machine_memory.available_bytes(tmp_path, membership) == 6 * MIB
    assert machine_memory.oom_kills(tmp_path, membership) == 5


def test_no_limit_is_no_limit_however_it_is_written(tmp_path: Path, membership: Path) -> None:
    membership.write_text("4:memory:/\n")
    write(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712\n")
    assert machine_memory.total_bytes(tmp_path, membership) == psutil.virtual_memory().total


def test_kills_are_counted_for_the_machine_where_there_is_no_group(
    tmp_path: Path, membership: Path
) -> None:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("pgfault 1\noom_kill 7\n")
    assert machine_memory.oom_kills(tmp_path, membership, vmstat) == 7


def test_the_default_budget_is_three_quarters() -> None:
    assert machine_memory.default_budget_bytes() == machine_memory.total_bytes() * 3 // 4
