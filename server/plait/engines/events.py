"""What a worker tells the gateway: how a load goes, what a job yields, that it gave all back.

msgspec structs that `engines/ipc.py` frames; those of one job come in the order in which its
adapter made them. Times are `time.monotonic()` seconds, as the commands'. Does NOT know streams.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from plait.errors import BY_CODE, Internal, PlaitError
from plait.wire.messages import FinishReason, Format

Usage = dict[str, int]


class Fault(msgspec.Struct, array_like=True):
    """A `PlaitError` on its way between processes."""

    code: str
    message: str
    param: str | None = None
    data: dict[str, Any] | None = None
    retry_after_ms: int | None = None

    @classmethod
    def of(cls, error: PlaitError) -> Fault:
        return cls(error.code, error.message, error.param, error.data, error.retry_after_ms)

    def to_error(self) -> PlaitError:
        """The error it stands for; a code we do not know is our own bug: `internal`."""
        leaf = BY_CODE.get(self.code, Internal)
        return leaf(
            self.message, param=self.param, data=self.data, retry_after_ms=self.retry_after_ms
        )


class EngineInfo(msgspec.Struct, array_like=True):
    """What the gateway needs to schedule for this engine.

    `kv_kind`: "freed" where a release returns KV memory, "reusable" where the cache is
    preallocated and a release only makes it available again. `format` goes into `started` of
    methods whose items are binary. `counts_busy`: its steps only wait for processes that compute,
    so `Stats.busy_seconds` is its own account and not the loop's. `cores`: the most it computes on
    at once, and `stream_cores` the most that one of its streams does; 0: as many as all of them.
    `loaded_bytes`: what its worker takes of the machine when it is idle, preallocated KV
    included; the worker measures it, an adapter leaves it 0.
    """

    engine: str
    model: str
    methods: list[str]
    slots: int
    context_tokens: int
    max_tokens: int
    kv_budget_bytes: int
    kv_kind: Literal["freed", "reusable"]
    format: Format | None = None
    counts_busy: bool = False
    cores: int = 1
    loaded_bytes: int = 0
    stream_cores: int = 0


class Stats(msgspec.Struct, array_like=True):
    """Gauges and counters read off the engine itself, not off the gateway's books.

    `kv_bytes` counts only what live jobs hold, `cache_bytes` what is kept of jobs that are over;
    `busy_seconds` and `dead_seconds` are cumulative wall seconds of stepping, the latter on behalf
    of jobs whose cancel had already arrived.
    """

    slots_used: int = 0
    kv_bytes: int = 0
    steps: int = 0
    busy_seconds: float = 0.0
    dead_seconds: float = 0.0
    cache_bytes: int = 0


class Loading(msgspec.Struct, tag="loading", array_like=True):
    phase: str
    percent: int | None = None


class Ready(msgspec.Struct, tag="ready", array_like=True):
    info: EngineInfo


class LoadFailed(msgspec.Struct, tag="load_failed", array_like=True):
    """The engine cannot be built; the worker exits. Retrying without a change is useless."""

    fault: Fault


class Prepared(msgspec.Struct, tag="prepared", array_like=True):
    """`max_tokens` is the effective bound: min(asked, server cap, room left in the context)."""

    job: int
    prompt_tokens: int
    reserve_bytes: int
    max_tokens: int


class Refused(msgspec.Struct, tag="refused", array_like=True):
    """`prepare` or `start` said no. The job is forgotten and holds nothing."""

    job: int
    fault: Fault


class Item(msgspec.Struct, tag="item", array_like=True):
    """One unit of output.

    kind 0: `data` is the item's JSON `data` member, encoded (`{"content":"Hi"}`).
    Other kinds: a binary frame of that kind (PROTOCOL.md §4), `data` its payload: whole samples
    of at most `wire.frames.MAX_AUDIO_FRAME_BYTES`, whole rows of at most `MAX_ROWS_BYTES`, which
    the worker loop asserts.
    A synthesize job sends `{"mark": …}` (units 0) before the first audio of each sentence, always;
    the gateway keeps the times for `heard` and passes the item on where `marks` was asked for.
    `units` is what the item cost (tokens, audio milliseconds, texts) and feeds `wasted`.
    `revises` above 0: takes the place of an unsent item of this job with the same number.
    """

    job: int
    data: bytes
    units: int = 1
    kind: int = 0
    flags: int = 0
    aux: int = 0
    revises: int = 0


class Consumed(msgspec.Struct, tag="consumed", array_like=True):
    """The job took that much of its input: UTF-8 bytes of text, and 16 more for each of embed's
    texts; payload of audio.

    Upload credit goes back to the client with it, so it is sent as the input is worked on, not as
    it arrives: what is fed and not consumed is bounded by the stream's `window_bytes`.
    """

    job: int
    bytes: int


class Starved(msgspec.Struct, tag="starved", array_like=True):
    """The job did all it can with the input it has, and does nothing until there is more or its
    end. Sent once per such wait, from the `step` that found it out; never once its input ended.

    `keeps_bytes`: what it keeps of its reservation meanwhile. `inputs`, which the worker loop fills
    in: how many `Feed` and `FinishInput` it had been told; one sent since makes this void.
    """

    job: int
    keeps_bytes: int = 0
    inputs: int = 0


class Finished(msgspec.Struct, tag="finished", array_like=True):
    """The job reached its natural end; `Released` follows (often in the same batch)."""

    job: int
    finish_reason: FinishReason
    usage: Usage


class Failed(msgspec.Struct, tag="failed", array_like=True):
    """The job broke; `Released` follows."""

    job: int
    fault: Fault
    usage: Usage


class Released(msgspec.Struct, tag="released", array_like=True):
    """Slot and KV of the job are back, nothing more is computed for it; one per started job.

    `at`: when. `wasted`: units computed after the cancel's arrival at the worker, else 0;
    `wasted_prompt`: chunks of prompt, likewise, each by its tokens.
    """

    job: int
    at: float
    wasted: int
    usage: Usage
    wasted_prompt: list[int] = []


class Pong(msgspec.Struct, tag="pong", array_like=True):
    n: int
    stats: Stats


class Gauges(msgspec.Struct, tag="gauges", array_like=True):
    """Stats outside a `Pong`: with each start, pause, resume and `Released`; gauges move at once.

    Sent by the worker loop, never by an adapter; `EngineProcess` keeps it and does not pass it on.
    """

    stats: Stats


JobEvent = Prepared | Refused | Item | Consumed | Starved | Finished | Failed | Released
Event = JobEvent | Loading | Ready | LoadFailed | Pong | Gauges
