"""A run of the fuzzer: `python -m tests.fuzz.campaign SECONDS` keeps its corpus in build/fuzz.

The next run goes on where the last one ended. What was found lies in build/fuzz/findings, and the
exit status is not 0 then. At the end it says how much of plait.wire the whole corpus reaches. Does
NOT know what holds (see `books`, `checks`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plait.installation import child_environment
from tests.fuzz import reached, script

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "fuzz"
LONGEST_BYTES = 4096  # of an input
INPUT_SECONDS = 20  # then it is a finding: an input of that size takes some milliseconds
MOST_MEGABYTES = 1024
STARTING_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """`edges`: branches reached, as libFuzzer counts them. `findings`: files with the inputs."""

    ok: bool
    runs: int
    edges: int
    findings: list[Path]
    output: str


def run(home: Path, *options: str, seconds: float) -> Outcome:
    """The fuzzer with its corpus below `home`; `options` are libFuzzer's, one must end it in time.

    `seconds`: when it is killed if it does not end. Raises TimeoutExpired.
    """
    corpus, seeds, findings = (home / name for name in ("corpus", "seeds", "findings"))
    for directory in (corpus, seeds, findings):
        directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(script.seeds()):
        (seeds / f"{number:03}").write_bytes(seed)
    (home / "words.dict").write_text(script.dictionary(), encoding="utf-8")
    given = (
        f"-dict={home / 'words.dict'}",
        f"-artifact_prefix={findings}/",
        f"-max_len={LONGEST_BYTES}",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        "-print_final_stats=1",
    )
    command = [sys.executable, "-m", "tests.fuzz.target", *given, *options, str(corpus), str(seeds)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=seconds, check=False,
    )  # fmt: skip
    found = sorted(findings.iterdir())
    runs = re.findall(r"number_of_executed_units: (\d+)", done.stdout)
    edges = re.findall(r"cov: (\d+)", done.stdout)
    ok = done.returncode == 0 and not found
    return Outcome(ok, int((runs or [0])[-1]), int((edges or [0])[-1]), found, done.stdout)


def environment() -> dict[str, str]:

    return child_environment(os.environ)


def inputs(home: Path) -> Iterable[bytes]:
    for name in ("seeds", "corpus"):
        for path in sorted((home / name).iterdir()):
            yield path.read_bytes()


def main() -> int:
    seconds = int(sys.argv[1])
    outcome = run(HOME, f"-max_total_time={seconds}", seconds=2 * seconds + STARTING_SECONDS)
    size = sum(1 for _ in (HOME / "corpus").iterdir())
    sys.stdout.write(f"{outcome.runs} inputs, {outcome.edges} edges, a corpus of {size}\n")
    if not outcome.ok:
        found = ", ".join(str(path.relative_to(ROOT)) for path in outcome.findings)
        sys.stdout.write(f"{outcome.output[-4000:]}\nfound: {found or 'see above'}\n")
        return 1
    for name, lines, missing in reached.by(inputs(HOME)):
        sys.stdout.write(f"{name:<24} {lines - len(missing)} of {lines} lines {missing or ''}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
