"""Opens a GGUF model in llama.cpp's in-process server, with a prefill chunk that fits a step.

The server insists on a listener; it gets a socket in a private directory, unlinked before anybody
could find it, and a random key. Its caches outside the slots are off (what a slot holds is reused
as `seats` says, and by nobody else), and so is its log, which holds prompts. Knows nothing of jobs.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import xllamacpp

from plait.engines.base import LoadSpec, Report
from plait.engines.llamacpp.wire import decode_chunk
from plait.errors import ModelLoadFailed
from plait.models.errors import StoreError
from plait.models.gguf_facts import ModelFacts
from plait.models.gguf_file import read_gguf

STEP_TARGET_SECONDS = 0.05
MAX_CHUNK_TOKENS = 512
CPU_CHUNK_TOKENS = 4
MIN_CONTEXT_TOKENS = 64
CONTEXT_STEP_TOKENS = 256  # llama.cpp's own granularity for the context of a slot

_PROCESSING = re.compile(r"^llamacpp:requests_processing (\d+)", re.MULTILINE)


def read_facts(weights: str) -> ModelFacts:
    """Raises `ModelLoadFailed` for a missing, truncated or foreign file: the library may crash."""
    path = Path(weights)
    if not weights or not path.is_file():
        raise ModelLoadFailed("The model's weights are missing; pull the model again.")
    try:
        return ModelFacts.of(read_gguf(path))
    except (StoreError, TypeError, ValueError) as error:
        raise ModelLoadFailed(
            "The model's weights are no usable GGUF file; verify or pull the model again."
        ) from error


def slot_context_tokens(spec: LoadSpec, facts: ModelFacts) -> int:
    """Room of one slot: asked, trained, and what the budget leaves. Raises `ModelLoadFailed`."""
    tokens = min(spec.context_tokens, facts.context_tokens)
    if spec.kv_budget_bytes:
        tokens = min(tokens, spec.kv_budget_bytes // (spec.slots * facts.kv_bytes_per_token))
    if tokens < MIN_CONTEXT_TOKENS:
        raise ModelLoadFailed(
            f"A KV budget of {spec.kv_budget_bytes} bytes leaves {tokens} tokens for each of "
            f"{spec.slots} slots; at least {MIN_CONTEXT_TOKENS} are needed. Raise it or use fewer."
        )
    return tokens


def allocated_tokens(context_tokens: int) -> int:
    return -(-context_tokens // CONTEXT_STEP_TOKENS) * CONTEXT_STEP_TOKENS


def open_server(spec: LoadSpec, context_tokens: int, report: Report) -> tuple[Any, int]:
    """-> (server, tokens of a prefill chunk), warmed up. Raises `ModelLoadFailed`.

    The chunk is fixed when the server is built, so it is opened with a guess, timed, and opened
    again only if the guess was far off. A chunk is never smaller than the slots: each decode step
    needs a place for every one of them.
    """
    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    on_gpu = any(device["type"] != cpu for device in xllamacpp.get_device_info())
    most = max(spec.slots, min(MAX_CHUNK_TOKENS, context_tokens // 2))
    guess = max(spec.slots, most if on_gpu else CPU_CHUNK_TOKENS)
    report("reading weights", None)
    server = _open(spec, context_tokens, guess, on_gpu=on_gpu)
    report("measuring", None)
    chunk = fitting_chunk(guess, _chunk_seconds(server, guess), least=spec.slots, most=most)
    if chunk >= 2 * guess or chunk < 0.7 * guess:
        del server
        server = _open(spec, context_tokens, chunk, on_gpu=on_gpu)
        _chunk_seconds(server, chunk, runs=1)  # the first pass is slow: not a peer's business
        return server, chunk
    return server, guess


def fitting_chunk(tokens: int, seconds: float, *, least: int, most: int) -> int:
    """How many tokens take `STEP_TARGET_SECONDS`, when `tokens` took `seconds`."""
    fitting = int(tokens * STEP_TARGET_SECONDS / max(seconds, 1e-6))
    return max(least, min(fitting, most))


def slots_processing(server: Any) -> int:
    """By llama.cpp's own account; it answers between its steps."""
    processing = _PROCESSING.search(server.handle_metrics())
    return int(processing[1]) if processing else 0


def _open(spec: LoadSpec, context_tokens: int, chunk_tokens: int, *, on_gpu: bool) -> Any:
    slot_tokens = allocated_tokens(context_tokens)
    params = xllamacpp.CommonParams()
    params.model.path = spec.weights
    params.n_parallel = spec.slots
    params.n_ctx = spec.slots * slot_tokens
    params.n_batch = params.n_ubatch = chunk_tokens
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = spec.threads
    params.fit_params = False
    params.warmup = False  # measuring does it
    if on_gpu:
        params.n_gpu_layers = 999
    params.ctx_shift = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.slot_prompt_similarity = 0.0
    params.verbosity = -1
    params.endpoint_metrics = True
    params.endpoint_slots = False
    params.endpoint_props = False
    params.n_threads_http = 1
    params.api_keys = [secrets.token_urlsafe(32)]
    # The library would refuse to start on a broken template; prompts come to it as token ids.
    params.chat_template = "chatml"
    params.use_jinja = False
    with tempfile.TemporaryDirectory(prefix="plait-") as private:
        params.hostnames = [f"{private}/llama.sock"]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelLoadFailed(
                "llama.cpp cannot load the model: its file is damaged, of an unknown "
                "architecture, or too big for this machine. Verify the model or use another."
            ) from error


def _chunk_seconds(server: Any, tokens: int, runs: int = 3) -> float:
    """Best time of one prefill chunk: other processes only ever make it longer."""
    return min(_time_chunk(server, tokens) for _ in range(runs))


def _time_chunk(server: Any, tokens: int) -> float:
    times: list[float] = []

    def receive(raw: str) -> bool:
        if decode_chunk(raw).prompt_progress is not None:
            times.append(time.monotonic())
        return False

    body = {
        "prompt": [index % 100 + 3 for index in range(tokens)],
        "n_predict": 1,
        "stream": True,
        "return_progress": True,
        "cache_prompt": False,
    }
    server.handle_completions(msgspec.json.encode(body).decode(), receive)
    if len(times) < 2:
        raise ModelLoadFailed("llama.cpp loaded the model but cannot compute with it.")
    return times[-1] - times[0]
