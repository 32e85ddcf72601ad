from __future__ import annotations

from plait.engines.spawn import MAX_LINE_BYTES, MAX_LINES_PER_SECOND, WorkerOutput


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.dropped: list[int] = []
        self.output = WorkerOutput(self.lines.append, self.dropped.append, lambda: self.now)


def test_lines_are_put_together_across_reads() -> None:
    log = Log()

    for part in (b"one\ntw", b"", b"o\n", b"thr", b"ee"):
        log.output.data_received(part)
    log.output.connection_lost(None)

    assert log.lines == ["one", "two", "three"]


def test_a_long_line_is_cut_and_the_next_one_is_whole() -> None:
    log = Log()

    for _ in range(100):
        log.output.data_received(b"x" * 1000)
    log.output.data_received(b"\nnext\n")

    assert log.lines == ["x" * MAX_LINE_BYTES, "next"]


def test_a_flood_is_dropped_and_counted_until_the_next_second() -> None:
    log = Log()

    log.output.data_received(b"spam\n" * (MAX_LINES_PER_SECOND + 50))
    log.now = 1.0
    log.output.data_received(b"calm\n")

    assert len(log.lines) == MAX_LINES_PER_SECOND + 1
    assert (log.lines[-1], log.dropped) == ("calm", [50])


def test_bytes_that_are_no_utf8_are_shown_somehow() -> None:
    log = Log()

    log.output.data_received(b"caf\xe9\n")

    assert log.lines == ["caf\ufffd"]
