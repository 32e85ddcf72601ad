"""`.ci/suites.py` decides what CI believes, so its counting is held to account here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PASSES = "def test_passes(): pass\n"
WAITS = "import pytest\n@pytest.mark.waits\ndef test_waits(): pass\n"
FAILS = "def test_fails(): assert False\n"
SKIPS = "import pytest\ndef test_skips(): pytest.skip('no reason')\n"
SUBTESTS = (
    "def test_many(subtests):\n    for n in range(9):\n        with subtests.test(n=n): pass\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project of one suite that a test fills, around the real script."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "tests").mkdir()
    for name in ("suites.py", "browser"):
        (tmp_path / ".ci" / name).write_bytes((ROOT / ".ci" / name).read_bytes())
        (tmp_path / ".ci" / name).chmod(0o755)
    return tmp_path


def run(checkout: Path, *sources: str, suites: str = "python") -> tuple[int, str]:
    """Run the suites over these test files; returns exit status and last line."""
    for number, source in enumerate(sources):
        (checkout / "tests" / f"test_{number}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, ".ci/suites.py", suites],
        cwd=checkout, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()[-1]


def test_what_passed_and_was_skipped_is_counted(checkout: Path) -> None:
    assert run(checkout, PASSES, SKIPS) == (0, "1 passed, 0 failed, 1 skipped")


def test_one_failure_fails_the_run(checkout: Path) -> None:
    assert run(checkout, PASSES, FAILS) == (1, "1 passed, 1 failed")


def test_a_file_that_cannot_be_imported_is_a_failure(checkout: Path) -> None:
    status, line = run(checkout, PASSES, "import no_such_module_anywhere\n")

    assert status == 1
    assert line.endswith("1 failed")


def test_subtests_do_not_inflate_the_count(checkout: Path) -> None:
    assert run(checkout, SUBTESTS) == (0, "1 passed, 0 failed")


def test_a_suite_without_tests_is_a_failure(checkout: Path) -> None:
    assert run(checkout) == (1, "0 passed, 1 failed")


def test_a_run_that_dies_is_a_failure(checkout: Path) -> None:
    status, line = run(checkout, "import os\ndef test_dies(): os._exit(0)\n")

    assert (status, line) == (1, "0 passed, 1 failed")


def test_suites_at_the_same_time_are_both_counted_and_one_failure_fails_the_run(
    checkout: Path,
) -> None:
    failing = WAITS.replace("pass\n", "assert False\n")

    assert run(checkout, PASSES, failing, suites="python+waits") == (1, "1 passed, 1 failed")


def test_a_suite_that_cannot_be_started_is_a_failure_and_the_others_run(checkout: Path) -> None:
    assert run(checkout, PASSES, suites="web,python") == (1, "1 passed, 1 failed")


def test_a_lane_of_suites_runs_beside_another_and_no_test_is_run_twice(checkout: Path) -> None:
    for folder in ("engines", "new"):
        (checkout / "tests" / folder).mkdir()
        (checkout / "tests" / folder / f"test_in_{folder}.py").write_text(PASSES)

    assert run(checkout, PASSES, WAITS, suites="python,waits+engines") == (0, "4 passed, 0 failed")


def test_make_test_runs_every_suite_once() -> None:
    (asked,) = re.findall(
        r"^test:.*\n\t.*suites\.py (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    known = re.findall(
        r'^    "(\w+)": lambda', (ROOT / ".ci" / "suites.py").read_text(), re.MULTILINE
    )

    assert sorted(re.split("[ ,+]", asked)) == sorted(known)
