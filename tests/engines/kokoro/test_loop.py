"""The speech adapter under the real worker loop: what crosses to the gateway, and the books."""

from __future__ import annotations

from pathlib import Path

from plait.engines.base import (
    Cancel,
    Event,
    Feed,
    FinishInput,
    Item,
    LoadSpec,
    Prepare,
    Refused,
    Released,
    Shutdown,
    Start,
)
from plait.engines.kokoro.engine import KokoroEngine
from plait.engines.loop import WorkerLoop
from plait.engines.mailbox import Mailbox
from tests.engines.kokoro.rig import NoThread, ToyFrontEnd, ToySynthesizer, write_voices

TEXT = "well, this is a sentence. and here comes another one! "


class Gateway:
    """Commands in, events out; asks for the shutdown once `job` is over."""

    def __init__(self, directory: Path, windows: tuple[int, ...] = (0, 1200, 2400)) -> None:
        self.mailbox = Mailbox()
        self.events: list[Event] = []
        synthesizer = ToySynthesizer(windows)
        self.model = synthesizer.model
        spec = LoadSpec("kokoro-onnx", "toy", slots=4, context_tokens=0, max_tokens=0)
        voices = write_voices(directory)
        self.engine = KokoroEngine(
            spec, self.mailbox, synthesizer, ToyFrontEnd(), voices, thread=NoThread()
        )

    def put(self, *commands: Cancel | Feed | FinishInput | Prepare | Start) -> None:
        for command in commands:
            self.mailbox.put(command, 1)
            self.engine.interrupt()

    def run(self, *jobs: int) -> None:
        """Until all of `jobs` are over."""
        waiting = set(jobs)

        def send(events: list[Event]) -> None:
            self.events += events
            over = [event.job for event in events if isinstance(event, Released | Refused)]
            waiting.difference_update(over)
            if over and not waiting:
                self.mailbox.put(Shutdown(), 1)

        WorkerLoop(self.engine, self.mailbox, send).run()

    def of(self, job: int) -> list[str]:
        """The kinds of what was told of a job; a run of items counts once."""
        kinds = [type(event).__name__ for event in self.events if getattr(event, "job", 0) == job]
        return [kind for kind, last in zip(kinds, ["", *kinds], strict=False) if kind != last]

    def released(self, job: int) -> Released:
        (event,) = [e for e in self.events if isinstance(e, Released) and e.job == job]
        return event


def prepare(job: int, text: str | None) -> Prepare:
    return Prepare(job, "synthesize", {} if text is None else {"text": text}, "test")


def test_a_text_is_prepared_spoken_finished_and_released(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.put(prepare(1, TEXT), Start(1))

    gateway.run(1)

    assert gateway.of(1) == ["Prepared", "Item", "Finished", "Released"]
    assert gateway.released(1).wasted == 0


def test_input_may_come_before_the_start(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.put(prepare(1, None), Feed(1, texts=["hello, "]), FinishInput(1), Start(1))

    gateway.run(1)

    assert gateway.of(1) == ["Prepared", "Consumed", "Item", "Finished", "Released"]


def test_what_was_computed_after_the_cancel_is_wasted_and_does_not_leave(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, windows=(1200,))
    gateway.put(prepare(1, TEXT), Start(1))

    def cancel_in_the_third_window() -> None:
        if gateway.model.units == 2:
            gateway.mailbox.put(Cancel(1, 0.0), 1)  # too late to cut the window short

    gateway.model.during = cancel_in_the_third_window
    gateway.run(1)

    frames = [event for event in gateway.events if isinstance(event, Item) and event.kind]
    assert [frame.units for frame in frames] == [50, 50, 100]  # the last one is a pause
    assert gateway.released(1).wasted == 50
    assert gateway.released(1).usage["audio_ms"] == 250


def test_a_window_that_was_cut_short_wastes_nothing(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, windows=(1200,))
    gateway.put(prepare(1, TEXT), Start(1))

    gateway.model.during = lambda: gateway.put(Cancel(1, 0.0)) if gateway.model.units == 2 else None
    gateway.run(1)

    assert gateway.released(1).wasted == 0
    assert gateway.of(1) == ["Prepared", "Item", "Released"]


def test_a_text_with_nothing_to_speak_is_refused_and_the_next_is_spoken(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.put(prepare(1, "!!!"), Start(1), prepare(2, TEXT), Start(2))

    gateway.run(1, 2)

    refused = next(event for event in gateway.events if isinstance(event, Refused))
    assert refused.fault.code == "empty_text"
    assert gateway.of(2) == ["Prepared", "Item", "Finished", "Released"]


def test_one_that_breaks_is_failed_and_released_and_the_other_goes_on(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.put(prepare(1, "hello. qqq."), Start(1), prepare(2, TEXT), Start(2))

    gateway.run(1, 2)

    assert gateway.of(1) == ["Prepared", "Item", "Failed", "Released"]
    assert gateway.of(2) == ["Prepared", "Item", "Finished", "Released"]
