"""What llama.cpp's in-process completion call takes and gives, as JSON text.

Every sampler setting is always sent, and the list of samplers too, so that a default of the library
can never leak into an answer. Knows the library's names; knows no jobs, threads or slots.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plait.wire.messages import ChatParams

RANDOM_SEED = 0xFFFFFFFF  # llama.cpp's own mark for "draw one"; never sent
REPLACEMENT = "\ufffd"
COLDEST = 1e-4  # below, dividing by the temperature overflows; the draw is the maximum anyway


class Progress(msgspec.Struct):
    """Prompt tokens: `processed` of `total` are in the cache, `cache` were there before."""

    total: int
    cache: int
    processed: int


class Alternative(msgspec.Struct):
    id: int
    logprob: float | None = None  # null: minus infinity


class TokenEntry(msgspec.Struct):
    """One token. `bytes`: what the library shows for it, with those of hidden tokens before it."""

    id: int
    bytes: list[int] = []
    logprob: float | None = None
    top_logprobs: list[Alternative] = []


class Logprobs(msgspec.Struct):
    content: list[TokenEntry] = []


class Choice(msgspec.Struct):
    text: str = ""
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class Verbose(msgspec.Struct):
    """`tokens`: the id of the chunk's token; of a chunk without one, 0 or nothing."""

    tokens: list[int] = []


class Timings(msgspec.Struct):
    predicted_n: int = 0


class Chunk(msgspec.Struct):
    """One callback: prompt progress, a token, the end (`finish_reason`), or an error."""

    choices: list[Choice] = []
    prompt_progress: Progress | None = None
    timings: Timings | None = None
    error: dict[str, Any] | None = None
    verbose: Verbose | None = msgspec.field(name="__verbose", default=None)

    @property
    def token(self) -> TokenEntry | None:
        if self.prompt_progress is not None or not self.choices:
            return None
        choice = self.choices[0]
        if choice.logprobs is not None and choice.logprobs.content:
            return choice.logprobs.content[0]
        if self.verbose is None or not self.verbose.tokens:
            return None
        # What is no UTF-8 cannot be told from its text.
        shown = [] if REPLACEMENT in choice.text else list(choice.text.encode())
        return TokenEntry(self.verbose.tokens[0], shown)

    @property
    def finish_reason(self) -> str | None:
        return self.choices[0].finish_reason if self.choices else None

    @property
    def predicted(self) -> int:
        """Tokens sampled so far by this request, hidden ones included."""
        return self.timings.predicted_n if self.timings else 0


decode_chunk = msgspec.json.Decoder(Chunk).decode


def completion_body(
    params: ChatParams,
    *,
    prompt: list[int],
    max_tokens: int,
    seed: int,
    slot: int,
    cache_prompt: bool,
    context_tokens: int,
    grammar: str | None = None,
) -> str:
    """The request for `prompt` (token ids) in `slot`, at most `max_tokens` more.

    `grammar`: of llguidance, from the first token of this request on. It stands beside the list of
    samplers: a token it refuses is drawn again among those it allows. Token ids come back inside
    logprobs, for which the library sorts the whole vocabulary at every token (a tenth of the time
    of a small model), or as `verbose` details, of which the last chunk brings a prompt's worth
    unless `response_fields` says otherwise; hidden parts of characters are found out by
    `timings_per_token`.
    """
    body = {
        "prompt": prompt,
        "n_predict": max_tokens,
        "stream": True,
        "id_slot": slot,
        "cache_prompt": cache_prompt,
        "return_progress": True,
        "timings_per_token": True,
        **_token_ids(params),
        "seed": seed,
        **_sampling(params, context_tokens),
    }
    if grammar is not None:
        body["grammar"] = grammar
    return msgspec.json.encode(body).decode()


def _token_ids(params: ChatParams) -> dict[str, Any]:
    if params.logprobs is False:
        return {"verbose": True, "response_fields": ["tokens"]}
    return {"logprobs": max(1, int(params.logprobs))}


def grammar_body() -> str:
    """A request that makes llama.cpp read the model's vocabulary for its grammars."""
    body = {"prompt": [1], "n_predict": 1, "grammar": '%llguidance {}\nstart: "a"'}
    return msgspec.json.encode(body).decode()


def probe_body(slot: int, context_tokens: int) -> str:
    """A prompt one token too long for `slot`: refused when its turn comes, without computing.

    `context_tokens` as llama.cpp has allocated them. The slot's cache stays as it is.
    """
    body = {"prompt": [0] * (context_tokens + 1), "n_predict": 0, "id_slot": slot}
    return msgspec.json.encode(body).decode()


def _sampling(params: ChatParams, context_tokens: int) -> dict[str, Any]:
    off = {
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "dry_multiplier": 0.0,
        "xtc_probability": 0.0,
        "typical_p": 1.0,
        "top_n_sigma": -1.0,
        "dynatemp_range": 0.0,
        "mirostat": 0,
        "ignore_eos": False,
        "stop": [],  # matched by us: over text, not per token, and with a true hold-back
    }
    penalties = {
        "repeat_penalty": params.repetition_penalty,
        "repeat_last_n": context_tokens,  # the whole prompt and answer, also across a resume
    }
    if params.temperature < COLDEST:
        greedy = {"samplers": ["penalties", "top_k"], "top_k": 1, "temperature": 0.0}
        return {**off, **penalties, **greedy}
    return {
        **off,
        **penalties,
        "samplers": ["penalties", "top_k", "top_p", "min_p", "temperature"],
        "temperature": params.temperature,
        "top_k": params.top_k,
        "top_p": params.top_p,
        "min_p": params.min_p,
    }
