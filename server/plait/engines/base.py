"""The worker contract: what an adapter must do, and what crosses the process border.

Commands go gateway -> worker, events come worker -> gateway; both are msgspec structs that
`engines/ipc.py` frames. An adapter satisfies `Engine`: it is driven by one thread (the worker
loop), knows jobs and nothing of sockets, streams or scheduling. A paused job that is resumed by
recomputation carries its sampler state, or its usage says `reseeded: 1`.

Times are `time.monotonic()` seconds: the clock is shared by all processes of one host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

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


class LoadSpec(msgspec.Struct, array_like=True):
    """What a worker loads, and for which method; its first frame. Paths are the catalogue's, never
    a client's.

    `max_tokens` is the server's cap for one answer, `context_tokens` the room of one slot.
    `kv_budget_bytes` 0 means slots x context. `options` is for adapters' and tests' own knobs.
    """

    engine: str
    model: str
    slots: int
    context_tokens: int
    max_tokens: int
    method: str = "chat"
    kv_budget_bytes: int = 0
    weights: str = ""
    tokenizer: str = ""
    threads: int = 1
    options: dict[str, Any] = {}


# --- commands: gateway -> worker ---------------------------------------------------------------


class Prepare(msgspec.Struct, tag="prepare", array_like=True):
    """Make `job` ready to start; answered by `Prepared` or `Refused`.

    `scope` names who may share cached prefixes with this job (the connection; later the app).
    `params` is the method's validated params struct as a plain dict (defaults left out).
    """

    job: int
    method: str
    params: dict[str, Any]
    scope: str


class Start(msgspec.Struct, tag="start", array_like=True):
    """A slot and the reservation are held: compute. Follows `Prepared`."""

    job: int


class Feed(msgspec.Struct, tag="feed", array_like=True):
    """More input: audio bytes for transcribe, texts for synthesize (one) and embed."""

    job: int
    audio: bytes | None = None
    texts: list[str] | None = None


class FinishInput(msgspec.Struct, tag="finish_input", array_like=True):
    job: int


class Pause(msgspec.Struct, tag="pause", array_like=True):
    """Stop computing `job`, keep what it has. The reservation stays."""

    job: int


class Resume(msgspec.Struct, tag="resume", array_like=True):
    job: int


class Cancel(msgspec.Struct, tag="cancel", array_like=True):
    """Release everything `job` holds; `stamp` is when the gateway read the cancel."""

    job: int
    stamp: float


class Ping(msgspec.Struct, tag="ping", array_like=True):
    """Answered by `Pong` from the worker loop itself, so an answer proves forward progress."""

    n: int


class Shutdown(msgspec.Struct, tag="shutdown", array_like=True):
    """Release all jobs, close the engine, exit 0."""


Command = Prepare | Start | Feed | FinishInput | Pause | Resume | Cancel | Ping | Shutdown


# --- events: worker -> gateway -----------------------------------------------------------------


class EngineInfo(msgspec.Struct, array_like=True):
    """What the gateway needs to schedule for this engine.

    `kv_kind`: "freed" where a release returns KV memory, "reusable" where the cache is
    preallocated and a release only makes it available again. `format` goes into `started` of
    methods whose items are binary.
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


class Stats(msgspec.Struct, array_like=True):
    """Gauges and counters read off the engine itself, not off the gateway's books.

    `kv_bytes` counts only what live jobs hold; `busy_seconds` and `dead_seconds` are cumulative
    wall seconds of stepping, the latter on behalf of jobs whose cancel had already arrived.
    """

    slots_used: int = 0
    kv_bytes: int = 0
    steps: int = 0
    busy_seconds: float = 0.0
    dead_seconds: float = 0.0


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
    Other kinds: a binary frame of that kind (PROTOCOL.md §4), `data` its payload.
    A synthesize job sends `{"mark": …}` (units 0) before the first audio of each sentence, always;
    the gateway keeps the times for `heard` and passes the item on where `marks` was asked for.
    `units` is what the item cost (tokens, audio milliseconds, texts) and feeds `wasted`.
    """

    job: int
    data: bytes
    units: int = 1
    kind: int = 0
    flags: int = 0
    aux: int = 0


class Consumed(msgspec.Struct, tag="consumed", array_like=True):
    """The job took that much of its input (UTF-8 bytes of texts, payload of audio).

    Upload credit goes back to the client with it, so it is sent as the input is worked on, not as
    it arrives: what is fed and not consumed is bounded by the stream's `window_bytes`.
    """

    job: int
    bytes: int


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

    `at`: when. `wasted`: units computed after the cancel's arrival at the worker, else 0.
    """

    job: int
    at: float
    wasted: int
    usage: Usage


class Pong(msgspec.Struct, tag="pong", array_like=True):
    n: int
    stats: Stats


class Gauges(msgspec.Struct, tag="gauges", array_like=True):
    """Stats outside a `Pong`: sent with each start and each `Released`, so gauges move at once.

    Sent by the worker loop, never by an adapter; `EngineProcess` keeps it and does not pass it on.
    """

    stats: Stats


Event = (
    Loading
    | Ready
    | LoadFailed
    | Prepared
    | Refused
    | Item
    | Consumed
    | Finished
    | Failed
    | Released
    | Pong
    | Gauges
)


class CancelFlags(Protocol):
    """Sticky per-job flags, set by the command reader thread the moment a cancel arrives."""

    def stamp(self, job: int) -> float | None:
        """When the cancel of `job` arrived at the worker, or None."""


class Engine(Protocol):
    """An adapter around one model library. All calls but `interrupt` come from one thread.

    Built by `load(spec, flags, report)` of its module (see `Loader`). Errors for the
    peer are raised as `plait.errors` leaves; anything else that `step` raises is a crash.
    """

    @property
    def info(self) -> EngineInfo: ...

    def prepare(self, job: Prepare) -> Prepared:
        """Template, tokenize, size. Holds no slot and no KV. Raises a typed error to refuse."""

    def start(self, job: int) -> None:
        """Take the slot. Called only after `prepare`, and never above `info.slots` running jobs."""

    def feed(self, feed: Feed) -> None: ...

    def finish_input(self, job: int) -> None: ...

    def pause(self, job: int) -> None: ...

    def resume(self, job: int) -> None: ...

    def cancel(self, job: int) -> None:
        """Release everything of `job`, prepared or started. Idempotent; unknown ids are ignored.

        A started job's `Released` comes from this or a later `step`; a merely prepared one holds
        nothing and yields no event.
        """

    def interrupt(self) -> None:
        """From the command reader thread: a command waits, so cut a long or blocking step short."""

    def step(self) -> list[Event]:
        """One bounded unit of work for all jobs (aim <= 50 ms). [] when there was nothing to do.

        May block up to its bound while jobs run elsewhere (llama.cpp's threads); never when idle.
        """

    @property
    def idle(self) -> bool:
        """No job would make progress in `step`: the worker loop may sleep until a command."""

    def stats(self) -> Stats:
        """`slots_used` and `kv_bytes` as the engine itself knows them."""

    def close(self) -> None: ...


Report = Callable[[str, int | None], None]
"""Tells the gateway how a load goes: (phase, percent or None)."""


class Loader(Protocol):
    """The module-level `load` of an adapter. Raises `ModelLoadFailed`."""

    def __call__(self, spec: LoadSpec, flags: CancelFlags, report: Report) -> Engine: ...
