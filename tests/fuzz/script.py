"""An input of the fuzzer: a sequence of steps, each one a letter and what it is about.

Steps are divided by two bytes that no UTF-8 holds, so every text stays whole. The seeds are the
examples of tests/vectors, alone and in sequences a client would send; the words are what the
protocol is made of. Does NOT know what a step does (see `checks`) nor how it is varied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plait.errors import BY_CODE
from plait.wire.codec import encode_binary
from plait.wire.messages import PARAMS

DIVIDER = b"\xfe\xff"
VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "plait.v1.json").read_text("utf-8")
)
METHODS = {name.encode()[:1]: name for name in PARAMS}

MOST_CHARACTERS = 24  # of a word
AWKWARD = (
    '"\\ud800"', "NaN", "-Infinity", "1e999", "-0.0", "18446744073709551616", '"\\u0000"',
    "[" * 70, "]" * 70, '{"a":' * 70, "}" * 70, '"i\\u0064":',
)  # fmt: skip

# What a step is: its letter, then its bytes.
TEXT, TEXT_BYTES, BINARY, FORGET, WAIT = b"t", b"T", b"b", b"f", b"n"
LIMITS, SERVER, PARAMS_OF, CREDIT = b"l", b"s", b"p", b"w"
JSON_STEPS = (TEXT, TEXT_BYTES, SERVER)


def joined(steps: list[bytes]) -> bytes:
    return DIVIDER.join(steps)


def divided(data: bytes) -> list[bytes]:
    return data.split(DIVIDER)


def seeds() -> Iterator[bytes]:
    """Each vector by itself, then whole conversations."""
    for vector in VECTORS["client"]:
        message = vector["message"]
        yield TEXT + _text(message)
        if message["type"] == "open":
            yield PARAMS_OF + message["method"].encode()[:1] + _text(message.get("params", {}))
    for vector in VECTORS["server"]:
        yield SERVER + _text(vector["message"])
    for vector in VECTORS["invalid_client"]:
        yield TEXT + vector["text"].encode("utf-8", "surrogatepass")
    for vector in [*VECTORS["binary"], *VECTORS["invalid_binary"]]:
        yield BINARY + bytes.fromhex(vector["hex"])
    yield CREDIT + bytes(range(0, 255, 7))
    # Sends, acks with and without a window, uploads and what is taken of them.
    yield CREDIT + bytes((4, 40, 0, 9, 5, 3, 1, 2, 0, 9, 1, 0, 2, 30, 3, 20, 2, 20, 3, 40))
    yield from _conversations()


def _conversations() -> Iterator[bytes]:
    opens = {v["message"]["method"]: v["message"] for v in reversed(VECTORS["client"])
             if v["message"]["type"] == "open"}  # fmt: skip
    for id, (method, message) in enumerate(opens.items(), 1):
        yield joined(
            [
                LIMITS + bytes([id, id, id, id]),
                TEXT + _text({**message, "id": 1}),
                BINARY + encode_binary(2, 0, 1, 0, 0, b"\0" * 8),
                TEXT + _text({"type": "input", "id": 1, "text": "One."}),
                TEXT_BYTES + _text({"type": "input", "id": 1, "texts": ["One."]}),
                TEXT + _text({"type": "ack", "id": 1, "seq": 0, "window": 8}),
                TEXT + _text({"type": "end", "id": 1}),
                WAIT + b"\x10",
                TEXT + _text({**message, "id": 2}),
                TEXT + _text({"type": "cancel", "id": 1, "heard_ms": 20.5}),
                FORGET + b"\0",
                TEXT + _text({"type": "ping", "n": id}),
                PARAMS_OF + method.encode()[:1] + _text(message["params"]),
            ]
        )


def _text(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


def words() -> list[str]:
    """Every field and short value of the vectors, every code, and what readers of JSON trip on."""
    found = {*BY_CODE, *AWKWARD}
    nodes: list[Any] = [*VECTORS["client"], *VECTORS["server"]]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            found.update(node)
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, str) and len(node) < MOST_CHARACTERS:
            found.add(node)
    return sorted(found - {""})


def dictionary() -> str:
    """`words` as libFuzzer reads them."""
    lines = []
    for word in words():
        quoted = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}"
            for byte in word.encode()
        )
        lines.append(f'"{quoted}"')
    return "\n".join(lines) + "\n"
