"""The loop of one stream's process, at the other end of its socket, with scripted ears."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.engines.whisper.child import serve
from plait.engines.whisper.messages import (
    Ask,
    Audio,
    Broken,
    End,
    Ended,
    FromChild,
    GiveBack,
    Grant,
    Listen,
    Measure,
    Measured,
    Resting,
    Said,
    ToChild,
    Took,
    decode_from_child,
    frame,
    reader,
)
from plait.engines.whisper.stream_loop import BACKLOG_SECONDS
from plait.engines.whisper.unheard import FLOOD_SECONDS, SLICE_BYTES
from tests.engines.whisper.scripted_ears import ScriptedEars

WAIT_SECONDS = 20.0
PARAMS = {"sample_rate": 16_000}
FLOOD_BYTES = int(FLOOD_SECONDS * 32_000)


class Adapter:
    """Its end of the socket; the loop runs in a thread, as it would in a process."""

    def __init__(self) -> None:
        self.sock, self._theirs = socket.socketpair()
        self.sock.settimeout(WAIT_SECONDS)
        self._reader = reader()
        self._said: list[FromChild] = []
        self._ears = ScriptedEars(None)
        self._thread = threading.Thread(target=serve, args=(self._theirs, self._ears))
        self._thread.start()

    def say(self, *messages: ToChild) -> None:
        self.sock.sendall(b"".join(map(frame, messages)))

    def audio(self, text: str) -> None:
        self.say(Audio(memoryview(text.encode()), 0.0))

    def decode(self, text: str) -> None:
        """Until it is in a decode of that audio, which holds it."""
        self.say(Listen(PARAMS))
        self.audio(text)
        self.hear(Ask)
        self.say(Grant())
        assert self._ears.decoding.wait(WAIT_SECONDS)

    def hear(self, kind: type[Any]) -> list[FromChild]:
        """Everything up to the first of that kind, which is the last."""
        heard: list[FromChild] = []
        while not heard or not isinstance(heard[-1], kind):
            while not self._said:
                data = self.sock.recv(65536)
                assert data, f"the loop ended; it said {heard}"
                for payload in self._reader.feed(data):
                    self._said += decode_from_child(payload)
            heard.append(self._said.pop(0))
        return heard

    def close(self) -> None:
        self.sock.close()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()
        self._theirs.close()


@pytest.fixture
def adapter() -> Iterator[Adapter]:
    adapter = Adapter()
    yield adapter
    adapter.close()


def test_each_decode_takes_a_permit_and_gives_it_back(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS))
    adapter.audio("one ")
    assert adapter.hear(Ask) == [Took(4), Ask(closing=False)]

    adapter.say(Grant())

    given, said = adapter.hear(Said)
    assert given == GiveBack()
    assert isinstance(said, Said)
    assert (said.revises, b'"one"' in said.data) == (1, True)


def test_a_wish_that_becomes_urgent_is_told(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS))
    adapter.audio("one ")
    adapter.hear(Ask)

    adapter.audio("closing ")

    assert adapter.hear(Ask)[-1] == Ask(closing=True)


def test_a_voice_is_told_while_a_decode_runs(adapter: Adapter, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    adapter.decode(f"gate={gate} ")

    adapter.audio("voice ")

    assert adapter.hear(Said) == [Took(6), Said(b'{"event":"voice"}', 0, 0)]
    gate.touch()
    assert adapter.hear(GiveBack) == [GiveBack()]


def test_what_is_heard_during_a_decode_is_decoded_next(adapter: Adapter, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    adapter.decode(f"gate={gate} ")
    adapter.audio("two ")
    assert adapter.hear(Took) == [Took(4)]

    gate.touch()

    assert adapter.hear(Ask)[0] == GiveBack()
    adapter.say(Grant())
    said = adapter.hear(Said)[-1]
    assert isinstance(said, Said)
    assert b'"two"' in said.data


def test_a_flood_waits_for_the_decode_that_runs(adapter: Adapter, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    adapter.decode(f"gate={gate} ")
    adapter.audio(("x" * 99 + " ") * (FLOOD_BYTES // 100 + 1))
    gate.touch()

    told = [type(message) for message in adapter.hear(Ask)]
    assert told == [GiveBack, Said, Ask]
    adapter.say(Grant())
    assert adapter.hear(Took)


def test_the_end_of_audio_waits_for_the_decode_that_runs(adapter: Adapter, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    adapter.decode(f"gate={gate} ")
    adapter.audio("two ")
    adapter.say(End())
    adapter.hear(Took)

    gate.touch()

    adapter.hear(Ask)
    adapter.say(Grant())
    assert b'"two"' in adapter.hear(Ended)[-2].data  # type: ignore[union-attr]


def test_it_ends_when_all_is_said(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS), Audio(memoryview(b"one"), 0.0), End())
    adapter.hear(Ask)
    adapter.say(Grant())

    assert isinstance(adapter.hear(Ended)[-2], Said)


def test_nothing_said_is_an_end_too(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS), End())

    assert adapter.hear(Ended) == [Ended()]


def test_without_input_it_rests_and_says_how_much_it_had(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS))
    assert adapter.hear(Resting) == [Resting(0)]

    adapter.audio("half")
    adapter.audio("way")

    assert adapter.hear(Resting)[-1] == Resting(2)


def test_a_flood_is_listened_to_only_with_a_permit(adapter: Adapter) -> None:
    flood = ("x" * 99 + " ") * (FLOOD_BYTES // 100 + 1)
    adapter.say(Listen(PARAMS))
    adapter.audio(flood)
    assert adapter.hear(Ask) == [Ask(closing=False)]

    adapter.say(Grant())

    took = [message for message in adapter.hear(GiveBack) if isinstance(message, Took)]
    assert sum(message.bytes for message in took) > 0
    assert all(message.bytes <= SLICE_BYTES for message in took)


def test_what_waits_to_be_decoded_bounds_what_is_listened_to(adapter: Adapter) -> None:
    words = "w " * int(2 * BACKLOG_SECONDS)  # each of them lasts a second, to these ears
    adapter.say(Listen(PARAMS))
    for word in words.split():
        adapter.audio(f"{word} ")
    adapter.hear(Ask)
    adapter.say(End())

    taken = 0
    for _ in range(2):
        adapter.say(Grant())
        heard = adapter.hear(Said)
        taken += sum(message.bytes for message in heard if isinstance(message, Took))
        said = heard[-1]
        assert isinstance(said, Said)
        assert said.data.count(b"w") <= BACKLOG_SECONDS + 1
    assert taken < len(words)


def test_a_permit_for_which_nothing_is_left_is_given_back(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS), Grant())

    assert adapter.hear(GiveBack) == [GiveBack()]


def test_what_breaks_it_is_said_without_what_it_was_about(adapter: Adapter) -> None:
    adapter.say(Listen(PARAMS))
    adapter.audio("raise ")
    adapter.hear(Ask)
    adapter.say(Grant())

    broken = adapter.hear(Broken)[-1]

    assert isinstance(broken, Broken)
    assert broken.fault.code == "generation_failed"
    assert "secret" not in broken.fault.message


def test_it_leaves_an_adapter_that_left(adapter: Adapter, tmp_path: Path) -> None:
    adapter.say(Listen(PARAMS))
    adapter.audio(f"gate={tmp_path / 'gate'} ")
    adapter.hear(Ask)  # closed by the fixture, which waits for its end


def test_it_leaves_once_the_decode_that_runs_is_over(adapter: Adapter, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    adapter.decode(f"gate={gate} ")

    adapter.sock.close()

    gate.touch()  # the fixture waits for its end


def test_a_measurement_says_what_a_decode_costs(adapter: Adapter) -> None:
    adapter.say(Measure(1.0))

    (measured,) = adapter.hear(Measured)

    assert isinstance(measured, Measured)
    assert measured.seconds >= 0
