"""Binary frames as a client reads them, and what items of each method must be: PROTOCOL.md §3, §4.

`Contents` is told a stream's items in order and answers with what is wrong in each. Does NOT know
seqs, windows nor terminals (see `stream_rules`).
"""

from __future__ import annotations

import array
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HEADER: Final = struct.Struct("<BBHIII")
AUDIO_OUT, AUDIO_IN, ROWS = 1, 2, 3
LAST_OF_SENTENCE = 1
KNOWN_FLAGS = 7
MAX_AUDIO_BYTES = 16 * 1024
MAX_FRAME_BYTES = 64 * 1024
SAMPLE_BYTES = {"pcm_s16le": 2, "pcm_f32le": 4}

Fault = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Frame:
    version: int
    kind: int
    flags: int
    id: int
    seq: int
    aux: int
    payload: bytes


def read_frame(data: bytes) -> Frame:
    """Raises struct.error when the header is not whole."""
    version, kind, flags, id, seq, aux = HEADER.unpack_from(data)
    return Frame(version, kind, flags, id, seq, aux, data[HEADER.size :])


def audio_in(id: int, payload: bytes, *, version: int = 1, kind: int = AUDIO_IN) -> bytes:
    return HEADER.pack(version, kind, 0, id, 0, 0) + payload


@dataclass(slots=True)
class Contents:
    """What has come of one stream. `format`: as `started` said."""

    method: str
    params: Mapping[str, Any]
    format: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 0
    rows: int = 0  # embed: texts answered
    last_of_sentence: bool = True
    segment: int = 0  # transcribe: the one that may be shown
    revision: int = 0
    text: str = ""  # chat: the answer; synthesize: the marks' texts; transcribe: finals

    def data(self, data: Mapping[str, Any]) -> list[Fault]:
        """An `item` message's data."""
        read = {
            "chat": self._chat,
            "transcribe": self._transcribe,
            "synthesize": self._synthesize,
            "embed": self._embed,
        }
        return read[self.method](data) if self.method in read else []

    def frame(self, frame: Frame) -> list[Fault]:
        """A binary frame of this stream."""
        faults = [
            ("§4", "version 1", str(frame.version)) if frame.version != 1 else None,
            ("§4", "unused flags 0", bin(frame.flags)) if frame.flags & ~KNOWN_FLAGS else None,
        ]
        if frame.kind == AUDIO_OUT and self.method == "synthesize":
            return [fault for fault in faults if fault] + self._audio(frame)
        if frame.kind == ROWS and self.method == "embed":
            return [fault for fault in faults if fault] + self._rows(frame)
        return [("§4", f"frames of {self.method}'s kind", f"kind {frame.kind}")]

    # --- per method ----------------------------------------------------------------------------

    def _chat(self, data: Mapping[str, Any]) -> list[Fault]:
        content, calls = data.get("content"), data.get("tool_calls")
        if content is None and not calls:
            return [("§3 chat", "an item with `content` or `tool_calls`", repr(data)[:200])]
        if content is not None and not isinstance(content, str):
            return [("§3 chat", "`content` a string", repr(content)[:200])]
        self.text += content or ""
        return []

    def _transcribe(self, data: Mapping[str, Any]) -> list[Fault]:
        if "event" in data:
            known = data["event"] in ("speech_started", "speech_stopped")
            return [] if known else [("§3 transcribe", "a known event", repr(data)[:200])]
        segment = data.get("segment")
        if not isinstance(segment, dict):
            return [("§3 transcribe", "`segment` or `event`", repr(data)[:200])]
        index, revision = segment.get("index"), segment.get("revision")
        if index != self.segment:
            wanted = f"segment {self.segment} (dense, the next one only after it is final)"
            return [("§3 transcribe", wanted, f"segment {index}")]
        if not isinstance(revision, int) or revision <= self.revision:
            wanted = f"a revision above {self.revision}"
            return [("§3 transcribe", wanted, f"revision {revision}")]
        self.revision = revision
        if segment.get("is_final"):
            self.segment, self.revision = self.segment + 1, 0
            self.text += segment.get("text", "") + " "
        return []

    def _synthesize(self, data: Mapping[str, Any]) -> list[Fault]:
        mark = data.get("mark")
        if not isinstance(mark, dict) or not isinstance(mark.get("text"), str):
            return [("§3 synthesize", "a `mark` with its text", repr(data)[:200])]
        self.text += mark["text"]
        if not self.params.get("marks"):
            return [("§3 synthesize", "no marks, as none were asked for", repr(data)[:200])]
        return []

    def _embed(self, data: Mapping[str, Any]) -> list[Fault]:
        index, self.rows = self.rows, self.rows + 1
        if data.get("index") != index:
            return [("§3 embed", f"index {index}: dense and in order", f"{data.get('index')}")]
        if "error" in data:
            return []
        vector = data.get("embedding")
        if self.params.get("encoding") != "json" or not isinstance(vector, list):
            return [("§3 embed", "`embedding` only with encoding json", repr(data)[:100])]
        return self._check_vector(vector)

    def _audio(self, frame: Frame) -> list[Fault]:
        faults: list[Fault] = []
        size = SAMPLE_BYTES.get(str(self.format.get("encoding")), 2)
        size *= int(self.format.get("channels", 1))
        if len(frame.payload) > MAX_AUDIO_BYTES:
            faults.append(("§4", "audio of at most 16 KiB a frame", f"{len(frame.payload)} bytes"))
        if frame.aux != self.samples:
            wanted = f"aux {self.samples}, the offset of the first sample"
            faults.append(("§4", wanted, f"aux {frame.aux}"))
        if len(frame.payload) % size:
            faults.append(("§4", "whole samples", f"{len(frame.payload)} bytes"))
        self.samples = frame.aux + len(frame.payload) // size
        self.last_of_sentence = bool(frame.flags & LAST_OF_SENTENCE)
        return faults

    def _rows(self, frame: Frame) -> list[Fault]:
        faults: list[Fault] = []
        dims = int(self.format.get("dims", 0))
        if not dims or len(frame.payload) % (4 * dims) or not frame.payload:
            return [("§4", "whole rows of `dims` float32", f"{len(frame.payload)} bytes, {dims}")]
        if frame.aux != self.rows:
            faults.append(("§4", f"aux {self.rows}, the index of its row", f"aux {frame.aux}"))
        values = array.array("f", frame.payload)
        for begin in range(0, len(values), dims):
            faults += self._check_vector(values[begin : begin + dims].tolist())
        self.rows = frame.aux + len(values) // dims
        return faults

    def _check_vector(self, vector: list[Any]) -> list[Fault]:
        if not all(isinstance(each, (int, float)) and math.isfinite(each) for each in vector):
            return [("§3 embed", "finite vectors", repr(vector)[:100])]
        length = math.sqrt(sum(each * each for each in vector))
        if self.params.get("normalize", True) and abs(length - 1) > 1e-3:
            return [("§3 embed", "vectors of unit length", f"length {length:.4f}")]
        return []
