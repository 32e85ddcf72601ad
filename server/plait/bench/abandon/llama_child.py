"""llama.cpp's built-in server out of the package xllamacpp, in a process of its own.

`python -m plait.bench.abandon.llama_child`, as `child` describes. Model, slots, context and threads
are the ones Plait's worker would use; everything else is the server's default, batch sizes too
unless they are given. Two things are off, here as in Plait: prompts kept outside the slots, and its
web page.
"""

from __future__ import annotations

import sys

import msgspec

from plait.bench.abandon.child import take_stdout
from plait.engines.base import LoadSpec
from plait.errors import PlaitError

LOG_VERBOSITY = 4  # tells a prompt's tokens, and of them the cached ones


class Settings(msgspec.Struct):
    """`batch_tokens`: at most so many are computed at once; None: the server's default."""

    spec: LoadSpec
    batch_tokens: int | None = None


def main() -> None:
    tell = take_stdout()
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    spec = settings.spec
    try:
        import xllamacpp

        from plait.engines.llamacpp.server import allocated_tokens, read_facts, slot_context_tokens

        context_tokens = slot_context_tokens(spec, read_facts(spec.weights))
        params = xllamacpp.CommonParams()
        params.model.path = spec.weights
        params.n_parallel = spec.slots
        params.n_ctx = spec.slots * allocated_tokens(context_tokens)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = spec.threads
        if settings.batch_tokens is not None:
            params.n_batch = params.n_ubatch = settings.batch_tokens
        params.fit_params = False
        params.cache_ram_mib = 0
        params.cache_idle_slots = False
        params.ui = False
        params.verbosity = LOG_VERBOSITY
        params.endpoint_metrics = True
        params.port = 0
        server = xllamacpp.Server(params)
    except ImportError:
        tell({"error": "llama-server needs the package xllamacpp: pip install xllamacpp"})
    except (PlaitError, RuntimeError) as error:
        tell({"error": f"llama-server cannot load {spec.weights}: {error}"})
    else:
        tell({"url": server.listening_address})
        sys.stdin.buffer.read()
        del server


if __name__ == "__main__":
    main()
