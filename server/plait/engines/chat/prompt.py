"""From chat params to token ids, with the arithmetic of how much answer fits.

Renders the model's own chat template in a sandbox and tokenizes the result. Invariants: a control
token enters a prompt only through the template, never through a peer's text (`<|im_end|>` typed by
a user is encoded as plain characters); a prompt is never cut: it fits or is `context_overflow`.
One exception: a special token that is a single character cannot be told from the character.
Knows nothing of engines, slots or sampling; needs `tokenizer.json` and `tokenizer_config.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from plait.engines.chat.calls import CallParser
from plait.engines.chat.constraint import Watch
from plait.engines.chat.dialects import MARKS, dialect_of
from plait.engines.chat.grammar import Grammar, grammar_of
from plait.engines.chat.template import ChatTemplate
from plait.engines.chat.text import AnswerText, Vocabulary
from plait.engines.chat.tools import (
    as_text,
    in_system,
    in_user,
    names_of,
    template_message,
    tools_of,
)
from plait.errors import ContextOverflow, ModelLoadFailed, TemplateError
from plait.wire.messages import ChatMessage, ChatParams

# Ends of turn by their usual names: `eos_token` alone misses <|endoftext|> or <|eot_id|> beside it.
END_OF_TURN = frozenset({
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", "<|end|>",
    "<|return|>", "<|call|>", "<|eos|>", "<|eot|>", "<|endofturn|>", "<|end_of_turn|>",
    "<end_of_turn>", "<turn|>", "<eos>", "</s>", "<EOT>", "<|END_OF_TURN_TOKEN|>",
})  # fmt: skip

# Text averages 3 to 5 characters a token and 2 to 5 tokens of markup a message. What would need
# far less to fit is refused as it stands: to render and tokenize a mebibyte takes up to a second.
DOUBTFUL_CHARS_PER_TOKEN = 4
MOST_CHARS_PER_TOKEN = 16
LEAST_TOKENS_PER_MESSAGE = 2
CHEAP_CHARS = 16_384  # whatever the context: counted to the end, for the sake of a true number
BLOCK_CHARS = 4_096


class ChatTokenizer:
    """One model's prompt side: template, tokenizer and what its tokens mean as text."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate, eos_ids: frozenset[int]):
        self._tokenizer = tokenizer
        self._template = template
        self._special = _special_pattern(tokenizer)
        special = _special_tokens(tokenizer)
        self._dialect = dialect_of(template.tool_source, frozenset(special))
        self._mark_ids = {mark: special[name] for name, mark in MARKS.items() if name in special}
        self.vocabulary = Vocabulary(
            token_pieces(tokenizer),
            eos_ids,
            _skips_first_space(tokenizer),
            {token: mark.encode() for mark, token in self._mark_ids.items()},
        )

    @classmethod
    def load(cls, path: str | Path) -> ChatTokenizer:
        """`path`: the directory of tokenizer.json (or that file). Raises `ModelLoadFailed`.

        A missing or broken chat template does not fail the load, only the requests that need it.
        """
        directory = Path(path)
        if directory.is_file():
            directory = directory.parent
        try:
            tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
            config = json.loads((directory / "tokenizer_config.json").read_text("utf-8"))
            generation = directory / "generation_config.json"
            defaults = json.loads(generation.read_text("utf-8")) if generation.exists() else {}
        except Exception as error:  # tokenizers raises bare Exception
            raise ModelLoadFailed(
                "The model's tokenizer files are missing or unreadable; verify or pull the model."
            ) from error
        template = ChatTemplate.load(directory, config)
        return cls(tokenizer, template, _eos_ids(tokenizer, config, defaults))

    def encode_chat(self, params: ChatParams, *, context_tokens: int) -> list[int]:
        """Token ids of the rendered conversation. Raises `TemplateError`, `ContextOverflow`.

        The ids may still be too many (see `fit_answer`); only a text that is hopelessly long is
        refused here, because it would hold up every other job of the worker, and their cancels.
        """
        _refuse_at_sight(params.messages, context_tokens)
        text, mark = self._render(params)
        _refuse_length(len(text), context_tokens)
        if len(text) > max(CHEAP_CHARS, DOUBTFUL_CHARS_PER_TOKEN * context_tokens):
            self._refuse_hopeless(text, context_tokens)
        # Pieces are encoded apart, so no special token can form across a mark.
        return self._encode(text.split(mark))

    def grammar(self, params: ChatParams) -> Grammar | None:
        """What the answer must look like, in the language of llguidance; None: as it likes."""
        return grammar_of(params, self._dialect, self._mark_ids)

    def answer(
        self, params: ChatParams, max_tokens: int, grammar: Grammar | None = None
    ) -> AnswerText:
        """What becomes of the tokens of the answer; with tools, calls are told from text.

        Raises `InvalidRequest` for a grammar that cannot be compiled.
        """
        tools = tools_of(params)
        calls = watch = None
        if tools:
            calls = CallParser(self._dialect, names_of(tools), parallel=params.parallel_tool_calls)
        if grammar is not None:
            watch = Watch(grammar)
        return AnswerText(self.vocabulary, params.stop or [], max_tokens, calls, watch)

    def _render(self, params: ChatParams) -> tuple[str, str]:
        """A template that looks at no tools is told of them, and of calls, in plain words."""
        messages = [template_message(message) for message in params.messages]
        tools = tools_of(params)
        if self._template.tool_source is not None:
            return self._template.render(messages, tools, self._special)
        if not self._template.shows_calls:
            messages = [as_text(message) for message in messages]
        if not tools:
            return self._template.render(messages, None, self._special)
        try:
            return self._template.render(in_system(messages, tools), None, self._special)
        except TemplateError:  # some refuse the system's role
            return self._template.render(in_user(messages, tools), None, self._special)

    def _encode(self, pieces: list[str]) -> list[int]:
        # Only the batch call lets other threads run meanwhile, the command reader among them.
        encoded = self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
        return [token for encoding in encoded for token in encoding.ids]

    def _refuse_hopeless(self, text: str, context_tokens: int) -> None:
        """Count block by block, and stop at twice the limit if there is more to come."""
        tokens = 0
        for end in range(BLOCK_CHARS, len(text), BLOCK_CHARS):
            tokens += len(self._encode([text[end - BLOCK_CHARS : end]]))
            if tokens > 2 * context_tokens:
                raise _overflow(f"more than {tokens}", tokens, context_tokens)

    def as_json(self) -> str:
        """tokenizer.json, as read."""
        return str(self._tokenizer.to_str())

    def token_text(self, token: int) -> str:
        """How one token is named in logprobs: its text, or a special token's name."""
        pieces = self.vocabulary.pieces
        piece = pieces[token] if 0 <= token < len(pieces) else b""
        return piece.decode("utf-8", "replace") or self._tokenizer.id_to_token(token) or ""


def fit_answer(
    prompt_tokens: int, asked: int | None, *, max_tokens: int, context_tokens: int
) -> int:
    """Effective bound of the answer: min(asked, server's `max_tokens`, room left).

    Raises `ContextOverflow` when the prompt leaves no room for a single token.
    """
    room = context_tokens - prompt_tokens
    if room < 1:
        raise _overflow(f"{prompt_tokens}", prompt_tokens, context_tokens)
    return min(max_tokens if asked is None else asked, max_tokens, room)


def _overflow(count: str, prompt_tokens: int, limit: int) -> ContextOverflow:
    return ContextOverflow(
        f"The prompt has {count} tokens; prompt and answer together may have {limit}. "
        "Shorten the messages.",
        param="messages",
        data={"prompt_tokens": prompt_tokens, "limit": limit},
    )


def _refuse_at_sight(messages: list[ChatMessage], context_tokens: int) -> None:
    tokens = LEAST_TOKENS_PER_MESSAGE * len(messages)
    if tokens > context_tokens:
        raise _overflow(f"at least {tokens}", tokens, context_tokens)
    _refuse_length(sum(len(message.content or "") for message in messages), context_tokens)


def _refuse_length(chars: int, context_tokens: int) -> None:
    tokens = chars // MOST_CHARS_PER_TOKEN
    if chars > CHEAP_CHARS and tokens > context_tokens:
        raise _overflow(f"at least {tokens}", tokens, context_tokens)


def reserve_bytes(tokens: int, bytes_per_token: int, step_tokens: int = 1) -> int:
    """KV bytes of `tokens` cache cells, rounded up to the engine's allocation step."""
    return -(-tokens // step_tokens) * step_tokens * bytes_per_token


def token_pieces(tokenizer: Tokenizer) -> list[bytes]:
    """Bytes of each token id; special tokens are empty. Raises `ModelLoadFailed`."""
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    to_bytes = _piece_decoder(tokenizer)
    pieces = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for text, token in vocabulary.items():
        pieces[token] = to_bytes(text)
    for token, added in tokenizer.get_added_tokens_decoder().items():
        pieces[token] = b"" if added.special else added.content.encode()
    return pieces


def _piece_decoder(tokenizer: Tokenizer) -> Callable[[str], bytes]:
    kinds = _decoder_kinds(tokenizer)
    if "ByteLevel" in kinds:
        return _byte_level_piece
    if "ByteFallback" in kinds or "Metaspace" in kinds:
        return _sentencepiece_piece
    raise ModelLoadFailed(
        f"The model's tokenizer decodes with {sorted(kinds) or 'nothing'}; "
        "supported are ByteLevel, ByteFallback and Metaspace."
    )


def _decoder_steps(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    if tokenizer.decoder is None:
        return []
    decoder = json.loads(tokenizer.decoder.__getstate__())
    return list(decoder.get("decoders", [decoder]))


def _decoder_kinds(tokenizer: Tokenizer) -> set[str]:
    return {step["type"] for step in _decoder_steps(tokenizer)}


def _skips_first_space(tokenizer: Tokenizer) -> bool:
    return any(
        (step["type"] == "Strip" and step["start"] > 0)
        or (step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        for step in _decoder_steps(tokenizer)
    )


def _byte_table() -> dict[str, int]:
    """GPT-2's stand-ins: printable characters are themselves, the other bytes follow from 256."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    stand_ins = {256 + index: byte for index, byte in enumerate(hidden)}
    return {chr(char): byte for char, byte in {**{b: b for b in shown}, **stand_ins}.items()}


_BYTES = _byte_table()
_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level_piece(text: str) -> bytes:
    if all(char in _BYTES for char in text):
        return bytes(_BYTES[char] for char in text)
    return text.encode()  # a token outside the scheme decodes as itself


def _sentencepiece_piece(text: str) -> bytes:
    byte = _FALLBACK.fullmatch(text)
    return bytes([int(byte[1], 16)]) if byte else text.replace("\u2581", " ").encode()


def _special_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    added = tokenizer.get_added_tokens_decoder()
    return {known.content: token for token, known in added.items() if known.special}


def _special_pattern(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """Matches every special token's text, the longest first."""
    texts = [text for text in _special_tokens(tokenizer) if len(text) > 1]
    texts.sort(key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts))) if texts else None


def _eos_ids(
    tokenizer: Tokenizer, config: dict[str, Any], generation: dict[str, Any]
) -> frozenset[int]:
    """Every end of turn: the configured one, generation_config's, and the well-known names."""
    named = config.get("eos_token")
    names = {named["content"] if isinstance(named, dict) else named}
    listed = generation.get("eos_token_id")
    ids: set[int | None] = set(listed if isinstance(listed, list) else [listed])
    ids |= {tokenizer.token_to_id(name) for name in names if isinstance(name, str)}
    added = tokenizer.get_added_tokens_decoder()
    ids |= {token for token, known in added.items() if known.content in END_OF_TURN}
    known_ids = frozenset(token for token in ids if token is not None)
    if not known_ids:
        raise ModelLoadFailed("The model names no end-of-turn token, so no answer could end.")
    return known_ids
