"""What the gateway tells a worker: what to load, and then one command after another per job.

msgspec structs that `engines/ipc.py` frames; `engines/base.py` says what an adapter makes of them.
Times are `time.monotonic()` seconds: the clock is shared by all processes of one host. Does NOT
know who may run when (see `scheduling`).
"""

from __future__ import annotations

from typing import Any

import msgspec


class LoadSpec(msgspec.Struct, array_like=True):
    """What a worker loads, and for which method; its first frame. Paths are the catalogue's, never
    a client's.

    `max_tokens` is the server's cap for one answer, `context_tokens` the room of one slot.
    `kv_budget_bytes` 0 means slots x context. `memory_bytes`: what the loaded worker is expected to
    take of the machine, weights, libraries and preallocated KV. `prefix_cache_bytes`: how much the
    prefixes that nobody holds any more may take. `options`: adapters' and tests' own knobs.
    `cpus`: what it loads and computes on until `UseCores` says otherwise; [] leaves it all.
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
    memory_bytes: int = 0
    prefix_cache_bytes: int = 0
    options: dict[str, Any] = {}
    cpus: list[int] = []


class Prepare(msgspec.Struct, tag="prepare", array_like=True):
    """Make `job` ready to start; answered by `Prepared` or `Refused`.

    `scope` names who may share cached prefixes with this job: the app, or without declared ones
    the connection.
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


class UseCores(msgspec.Struct, tag="use_cores", array_like=True):
    """Compute on these CPUs only, all threads and children of the worker, from now on.

    Applied by the command reader thread itself, so it waits for no step; ids as in
    `os.sched_getaffinity`. Where a system cannot bind threads it has no effect.
    """

    cpus: list[int]


class KeepPrefixes(msgspec.Struct, tag="keep_prefixes", array_like=True):
    """Cached prefixes of jobs that are over may take so many bytes from now on; 0 drops all."""

    max_bytes: int


class Ping(msgspec.Struct, tag="ping", array_like=True):
    """Answered by `Pong` from the worker loop itself, so an answer proves forward progress."""

    n: int


class Shutdown(msgspec.Struct, tag="shutdown", array_like=True):
    """Release all jobs, close the engine, exit 0."""


Command = (
    Prepare
    | Start
    | Feed
    | FinishInput
    | Pause
    | Resume
    | Cancel
    | UseCores
    | KeepPrefixes
    | Ping
    | Shutdown
)
