"""Run the named test suites, all of them even after a failure, and print one closing line.

The last line reads `N passed, N failed` (`, N skipped` may follow) and sums the suites' own
machine-readable reports, never their console text. A suite that cannot be started, or dies without
a whole report, counts as one failure, and a suite that ran no test as well. `a,b+c` runs a and then
b, and c at the same time; what is not in the first of such lanes is shown suite by suite when it is
done. Does NOT set anything up: the Makefile did.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"


@dataclass
class Counts:
    """Outcomes of one suite, or of several added up."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        line = f"{self.passed} passed, {self.failed} failed"
        return f"{line}, {self.skipped} skipped" if self.skipped else line


def run(command: list[str], cwd: Path, *, aside: bool) -> int:
    """`aside`: another suite has the console meanwhile."""
    shown = f"\n$ {' '.join(command)}"
    if not aside:
        print(shown, flush=True)
        return subprocess.run(command, cwd=cwd, env=environment(), check=False).returncode
    done = subprocess.run(
        command, cwd=cwd, env=environment(), check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    print(f"{shown}\n{done.stdout}", flush=True)
    return done.returncode


def environment() -> dict[str, str]:
    """This process's environment plus the browser found, so that every suite uses the same one."""
    finder = subprocess.run([ROOT / ".ci" / "browser"], capture_output=True, text=True, check=False)
    browser = {"PLAIT_TEST_BROWSER": finder.stdout.strip()} if finder.returncode == 0 else {}
    return {**os.environ, **browser, "PLAIT_TEST_PYTHON": sys.executable}


def run_pytest(*selection: str, name: str, aside: bool, prefix: tuple[str, ...] = ()) -> Counts:
    report = REPORTS / f"{name}.xml"
    command = [*prefix, sys.executable, "-m", "pytest", *selection]
    code = run([*command, f"--junit-xml={report}", "--durations=10"], ROOT, aside=aside)
    if not report.exists():
        return Counts(failed=1)
    counts = Counts()
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # subtests stay inside theirs
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            counts.failed += 1
        elif "skipped" in outcomes:
            counts.skipped += 1
        else:
            counts.passed += 1
    return honest(counts, code)


def run_node(*, aside: bool) -> Counts:
    report = REPORTS / "web.tap"
    reporters = [
        *("--test-reporter=spec", "--test-reporter-destination=stdout"),
        *("--test-reporter=tap", f"--test-reporter-destination={report}"),
    ]
    # Named files: left to itself, node counts every module below a `test` folder as a test.
    files = sorted(
        str(path.relative_to(ROOT / "web")) for path in ROOT.glob("web/test/**/*.test.js")
    )
    code = run(["node", "--test", *reporters, *files], ROOT / "web", aside=aside)
    if not report.exists():
        return Counts(failed=1)
    totals = dict.fromkeys(("pass", "fail", "cancelled", "skipped", "todo"), 0)
    for line in report.read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "#" and words[1] in totals:
            totals[words[1]] = int(words[2])
    counts = Counts(
        totals["pass"], totals["fail"] + totals["cancelled"], totals["skipped"] + totals["todo"]
    )
    return honest(counts, code)


def honest(counts: Counts, exit_code: int) -> Counts:
    """A suite that failed, or ran nothing, has at least one failure whatever its report says."""
    if counts.failed == 0 and (exit_code != 0 or counts.passed == 0):
        counts.failed = 1
    return counts


def run_suite(name: str, *, aside: bool) -> str:
    """Its line for the end of the run; its counts go into `COUNTS`."""
    started = time.monotonic()
    try:
        COUNTS[name] = SUITES[name](aside)
    except (OSError, ElementTree.ParseError) as error:  # the others run all the same
        print(f"{name}: {error}", flush=True)
        COUNTS[name] = Counts(failed=1)
    return f"{name}: {COUNTS[name]} in {time.monotonic() - started:.0f} s"


def run_lane(names: str, *, aside: bool = False) -> list[str]:
    return [run_suite(name, aside=aside) for name in names.split(",")]


COUNTS: dict[str, Counts] = {}
# Half of all computing is in the engines' own tests: they give way to those that time an answer,
# and get a quarter of a core that both want, so that none of theirs starves.
GIVING_WAY = ("nice", "-n", "5")
ENGINES = ("tests/engines",)
PROOFS = ("tests/proofs",)  # judged by the clock: nothing beside them
OTHERS = ("tests", *(f"--ignore={folder}" for folder in ENGINES + PROOFS))
USUAL = ("-m", "not waits and not installs")
# Half of the browser's tests wait for sound to be played or said: they run beside the others.
SOUND = [f"e2e/test_{name}.py" for name in (
    "autoplay", "conversation", "listening", "listening_page", "model", "speaking",
)]  # fmt: skip
SILENT = ("e2e", *(f"--ignore={file}" for file in SOUND))
SUITES: dict[str, Callable[[bool], Counts]] = {
    "python": lambda aside: run_pytest(*OTHERS, *USUAL, name="python", aside=aside),
    "engines": lambda aside: run_pytest(
        *ENGINES, *USUAL, name="engines", aside=aside, prefix=GIVING_WAY
    ),
    "proofs": lambda aside: run_pytest(*PROOFS, *USUAL, name="proofs", aside=aside),
    # Those that wait for time-outs of half a minute, or for pip: beside another suite.
    "waits": lambda aside: run_pytest("tests", "-m", "waits", name="waits", aside=aside),
    "installs": lambda aside: run_pytest("tests", "-m", "installs", name="installs", aside=aside),
    "web": lambda aside: run_node(aside=aside),
    "e2e": lambda aside: run_pytest(*SILENT, name="e2e", aside=aside),
    "sound": lambda aside: run_pytest(*SOUND, name="sound", aside=aside),
}


def main(groups: list[str]) -> int:
    REPORTS.mkdir(parents=True, exist_ok=True)
    for stale in REPORTS.iterdir():
        stale.unlink()
    lines = []
    for group in groups:
        first, *others = group.split("+")
        with ThreadPoolExecutor() as pool:
            beside = [pool.submit(run_lane, lane, aside=True) for lane in others]
            lines += run_lane(first)
            for lane in beside:
                lines += lane.result()
    total = Counts()
    for counts in COUNTS.values():
        total.add(counts)
    print("\n" + "\n".join(lines) + f"\n{total}", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
