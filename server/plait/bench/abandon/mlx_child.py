"""mlx_lm.server in a process of its own, with the same fast BLAS Plait gives mlx, and watched.

`python -m plait.bench.abandon.mlx_child`, as `child` describes. The server is the package's own,
unchanged but for two things: it says where it listens, and its `BatchGenerator` tells of every
step which sequences it computed. Steps take tens of milliseconds, telling one some microseconds.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from time import monotonic
from typing import Any

import msgspec

from plait.bench.abandon.child import take_stdout
from plait.engines.base import LoadSpec
from plait.engines.mlx import blas

Tell = Callable[[dict[str, Any]], None]
PROMPTS_AT_ONCE = 8  # the package's default


def main() -> None:
    tell = take_stdout()
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadSpec)
    blas.preload()
    try:
        import mlx.core as mx
        from mlx_lm import server
    except ImportError:
        tell({"error": "mlx_lm.server needs the packages mlx and mlx-lm: pip install plait[mlx]"})
        return
    if sys.platform == "linux":
        mx.disable_compile()  # as Plait does: it starts a C++ compiler in the middle of answers
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    _watch(server, tell)
    sys.argv = ["mlx_lm.server", *options(spec)]
    server.main()


def options(spec: LoadSpec) -> list[str]:
    """The slots bound both kinds of concurrency; nothing is kept of answered prompts."""
    return [
        *("--model", spec.weights),
        *("--port", "0"),
        *("--decode-concurrency", str(spec.slots)),
        *("--prompt-concurrency", str(min(spec.slots, PROMPTS_AT_ONCE))),
        *("--prompt-cache-size", "0"),
        *("--max-tokens", str(spec.max_tokens)),
    ]


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(0)  # the package has no way to stop while it computes


def _watch(server: Any, tell: Tell) -> None:
    class Announcing(ThreadingHTTPServer):
        def server_activate(self) -> None:
            super().server_activate()
            tell({"url": f"http://127.0.0.1:{self.server_address[1]}"})

    run_http = server._run_http_server

    def run_announcing(host: str, port: int, generator: Any) -> None:
        run_http(host, port, generator, server_class=Announcing)

    server._run_http_server = run_announcing
    server.BatchGenerator = watched(server.BatchGenerator, tell)


def watched(generator: Any, tell: Tell) -> Any:
    """The class, telling what it does: `insert`, `begin` (out of the queue), `step`, `remove`."""

    class Watched(generator):  # type: ignore[misc]
        def insert_segments(self, segments: Any, *rest: Any, **named: Any) -> Any:
            lengths = [sum(len(part) for part in parts) for parts in segments]
            uids = super().insert_segments(segments, *rest, **named)
            tell({"insert": list(zip(uids, lengths, strict=True)), "at": monotonic()})
            return uids

        def _make_batch(self, count: int) -> Any:
            waiting = [sequence[0] for sequence in self._unprocessed_sequences]
            tell({"begin": waiting[:count]})
            return super()._make_batch(count)

        def next(self) -> Any:
            begin = monotonic()
            prompts, tokens = super().next()
            if prompts or tokens:
                tell(
                    {
                        "step": [begin, monotonic()],
                        "read": [[p.uid, p.progress[0]] for p in prompts],
                        "made": [[t.uid, t.finish_reason is not None] for t in tokens],
                    }
                )
            return prompts, tokens

        def remove(self, uids: Any, *rest: Any, **named: Any) -> Any:
            tell({"remove": list(uids), "at": monotonic()})
            return super().remove(uids, *rest, **named)

    return Watched


if __name__ == "__main__":
    main()
