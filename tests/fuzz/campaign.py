"""A run of the fuzzer: `python -m tests.fuzz.campaign SECONDS` keeps its corpus in build/fuzz.

The next run goes on where the last one ended. What was found lies in build/fuzz/findings. At the
end it says how much of plait.wire the whole corpus reaches. Exit status 0: nothing was found; 1:
something was, or the fuzzer did not run; 2: wrong usage; 130: interrupted. Does NOT know what
holds (see `books`, `checks`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from plait.installation import child_environment
from tests.fuzz import reached, script

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "fuzz"
LONGEST_BYTES = 4096  # of an input
INPUT_SECONDS = 20  # then it is a finding: an input of that size takes some milliseconds
MOST_MEGABYTES = 1024
STARTING_SECONDS = 60
REPORT_SECONDS = 5.0
SHOWN_CHARACTERS = 4000  # of the fuzzer's own output, where something was found
USAGE = "usage: python -m tests.fuzz.campaign SECONDS (a whole number above 0)\n"

Watch = Callable[[float, int, int], None]  # elapsed seconds, inputs and edges so far


@dataclass(frozen=True, slots=True)
class Outcome:
    """`edges`: branches reached, as libFuzzer counts them. `findings`: files with the inputs."""

    ok: bool
    runs: int
    edges: int
    findings: list[Path]
    output: str


@dataclass(slots=True)
class Heard:
    """What the fuzzer's process prints, as it comes."""

    runs: int = 0
    edges: int = 0
    lines: list[str] = field(default_factory=list)

    def take(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.lines.append(line)
            if status := re.match(r"#(\d+)\t.*?cov: (\d+)", line):
                self.runs, self.edges = int(status[1]), int(status[2])
            elif total := re.search(r"number_of_executed_units: (\d+)", line):
                self.runs = int(total[1])


def run(home: Path, *options: str, seconds: float, watch: Watch = lambda *_: None) -> Outcome:
    """The fuzzer with its corpus below `home`; `options` are libFuzzer's, one must end it in time.

    `seconds`: when it is killed if it does not end; `watch` is called now and then until it does.
    Raises TimeoutExpired.
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
    heard = Heard()
    code = _followed(command, seconds, heard, watch)
    found = sorted(findings.iterdir())
    return Outcome(code == 0 and not found, heard.runs, heard.edges, found, "".join(heard.lines))


def _followed(command: list[str], seconds: float, heard: Heard, watch: Watch) -> int:
    """Its exit status. It never outlives this call. Raises TimeoutExpired."""
    begin = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        reader = Thread(target=heard.take, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            while (elapsed := time.monotonic() - begin) < seconds:
                try:
                    code = process.wait(min(REPORT_SECONDS, seconds - elapsed))
                except subprocess.TimeoutExpired:
                    watch(time.monotonic() - begin, heard.runs, heard.edges)
                else:
                    reader.join()
                    return code
            raise subprocess.TimeoutExpired(command, seconds, "".join(heard.lines))
        finally:
            process.kill()
            reader.join()


def environment() -> dict[str, str]:

    return child_environment(os.environ)


def inputs(home: Path) -> Iterable[bytes]:
    for name in ("seeds", "corpus"):
        for path in sorted((home / name).iterdir()):
            yield path.read_bytes()


def main() -> int:
    if not (len(sys.argv) == 2 and sys.argv[1].isdecimal() and int(sys.argv[1])):
        sys.stderr.write(USAGE)
        return 2
    seconds = int(sys.argv[1])
    say(f"Hostile frames on plait.wire for {seconds} s; the corpus is kept in {shown(HOME)}.")
    earlier = set((HOME / "findings").glob("*"))
    try:
        outcome = run(
            HOME,
            f"-max_total_time={seconds}",
            seconds=2 * seconds + STARTING_SECONDS,
            watch=lambda elapsed, runs, edges: say(
                f"  {elapsed:.0f} of {seconds} s: {runs:,} inputs, {edges} edges"
            ),
        )
        say(verdict(outcome, seconds, earlier))
        if outcome.ok:
            say(reached.table(reached.by(inputs(HOME))))
    except KeyboardInterrupt:
        say(f"\nInterrupted: no verdict. What was learnt is kept in {shown(HOME)}.")
        return 130
    except subprocess.TimeoutExpired as late:
        say(str(late.output)[-SHOWN_CHARACTERS:])
        say(f"No verdict: the fuzzer had not ended after {late.timeout:.0f} s.")
        return 1
    return 0 if outcome.ok else 1


def verdict(outcome: Outcome, seconds: int, earlier: Collection[Path] = ()) -> str:
    """In words; where something was found, what it was and how it is run again."""
    size = sum(1 for _ in (HOME / "corpus").iterdir())
    counts = f"{outcome.runs:,} inputs, {outcome.edges} edges, a corpus of {size}"
    if outcome.ok:
        return f"Nothing found in {seconds} s: {counts}."
    _, raised, what = outcome.output.partition("=== Uncaught")
    lines = [(raised + what)[:SHOWN_CHARACTERS] or outcome.output[-SHOWN_CHARACTERS:]]
    for path in outcome.findings:
        when = "by an earlier run (delete it once it is mended), " if path in earlier else ""
        again = f"{sys.executable} -m tests.fuzz.target {shown(path)}"
        lines.append(f"FOUND: {when}saved in {shown(path)}; run it again with\n  {again}")
    if not outcome.findings:
        lines.append(
            "FAILED: the fuzzer ended by itself and saved no input; its last words are above."
        )
    return "\n".join([*lines, f"Until then: {counts}."])


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
