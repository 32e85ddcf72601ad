"""The life of one stream as its client sees it: what may come when, PROTOCOL.md §2, §5 and §8.

Pure: it is told what was sent and what came, in order, and answers with what was broken. What a
client has sent the server may not have read yet, so each rule is as strict as that allows. Does
NOT know sockets, nor what a case is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plait.conformance.fields import TERMINALS
from plait.conformance.media import Contents, Fault

WASTED: Final = {
    "chat": "tokens",
    "transcribe": "audio_ms",
    "synthesize": "audio_ms",
    "embed": "texts",
}
MAX_WINDOW = 256


@dataclass(slots=True)
class StreamRules:
    """`refusable`: opens with this id that have had no answer yet."""

    id: int
    contents: Contents
    window: int
    refusable: int = 1
    accepted: bool = False
    started: bool = False
    ended: str = ""
    refused: bool = False
    seq: int = 0
    acked: int = 0
    fenced: bool = False  # the server has read our cancel
    input_bytes: int = 0
    credit: int = -1  # items may come through here; -1: no limit

    def __post_init__(self) -> None:
        self.credit = self.window if self.window else -1

    # --- what was sent ---------------------------------------------------------------------------

    def sent_ack(self, seq: int, window: int | None) -> None:
        """A lower one is ignored with its window; a credit is never taken back."""
        if self.credit < 0 or seq < self.acked:
            return
        self.acked = seq
        self.window = window or self.window
        self.credit = max(self.credit, seq + self.window)

    # --- what came -------------------------------------------------------------------------------

    def receive(self, message: Mapping[str, Any]) -> list[Fault]:
        """A text message with this id, its fields already checked."""
        kind = message["type"]
        if kind == "rejected":
            return self._rejected()
        if self.refused and not self.accepted:
            return [("§2 G1", "nothing after `rejected`", kind)]
        if self.ended:
            return [("§2 G1", f"nothing after the terminal `{self.ended}`", kind)]
        if kind in TERMINALS:
            return self._terminal(message)
        if kind == "accepted":
            late = ("§2", "`accepted` only while pending, before `started`", kind)
            faults = [late] if self.started else []
            self.refusable -= not self.accepted
            self.accepted = True
            return faults
        if not self.accepted:
            return [("§2", f"`accepted` before `{kind}`", f"`{kind}` first")]
        return self._live(message)

    def receive_item(self, seq: int) -> list[Fault]:
        """An item of either kind."""
        faults: list[Fault] = []
        if self.ended or self.refused:
            faults.append(("§2 G1", "no item after the terminal", f"seq {seq}"))
        if not self.started:
            faults.append(("§2", "`started` before every item", f"seq {seq}"))
        if self.fenced:
            wanted = "no item once the cancel was read (a later ping had its pong)"
            faults.append(("§2 G4", wanted, f"seq {seq}"))
        if seq != self.seq + 1:
            faults.append(("§2 G1", f"seq {self.seq + 1}: from 1, without gaps", f"seq {seq}"))
        self.seq = seq
        if 0 <= self.credit < seq:
            wanted = f"items through {self.credit} at most (acknowledged + window)"
            faults.append(("§5", wanted, f"seq {seq}"))
        if self.credit >= 0 and seq - self.acked > MAX_WINDOW:
            faults.append(("§5", "at most 256 not acknowledged", f"{seq - self.acked}"))
        return faults

    def _rejected(self) -> list[Fault]:
        if self.refusable == 0:
            return [("§2 G1", "`accepted` or `rejected`, never both, once per open", "`rejected`")]
        self.refusable -= 1
        self.refused = self.refused or not self.accepted
        return []

    def _live(self, message: Mapping[str, Any]) -> list[Fault]:
        kind = message["type"]
        if kind == "started":
            if self.started:
                return [("§2", "`started` once", "another one")]
            self.started = True
            self.contents.format = message.get("format") or {}
            return self._check_started(message)
        if kind == "input_ack":
            if message["bytes"] < self.input_bytes:
                wanted = f"`bytes` never less than {self.input_bytes}"
                return [("§2", wanted, str(message["bytes"]))]
            self.input_bytes = message["bytes"]
            return []
        return self.receive_item(message["seq"]) + self.contents.data(message["data"])

    def _check_started(self, message: Mapping[str, Any]) -> list[Fault]:
        needed = {
            "chat": ("max_tokens", message),
            "synthesize": ("sample_rate", self.contents.format),
            "embed": ("dims", self.contents.format),
        }.get(self.contents.method)
        if needed is None or needed[0] in needed[1]:
            return []
        return [("§2", f"`started` of {self.contents.method} has {needed[0]}", str(message))]

    # --- terminals -------------------------------------------------------------------------------

    def _terminal(self, message: Mapping[str, Any]) -> list[Fault]:
        kind = self.ended = message["type"]
        faults: list[Fault] = []
        if not self.accepted:
            faults.append(("§2 G1", f"`accepted` before `{kind}`", f"`{kind}` alone"))
        if message.get("seq") != self.seq:
            wanted = f"the terminal's seq {self.seq}, that of the last item"
            faults.append(("§2 G1", wanted, str(message.get("seq"))))
        faults += self._check_timing(message) + self._check_usage(message)
        if kind == "cancelled":
            faults += self._check_cancelled(message)
        if kind == "done" and not self.started:
            faults.append(("§2", "`started` before `done`", "done"))
        reason = message.get("finish_reason", "stop")
        if self.contents.method not in ("chat", "") and reason != "stop":
            faults.append(("§2", "finish_reason `stop` of all methods but chat", reason))
        return faults

    def _check_usage(self, message: Mapping[str, Any]) -> list[Fault]:
        usage = message.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        cached, prompt = counts.get("cached_tokens", 0), counts.get("prompt_tokens", 0)
        if cached > prompt:
            return [("§2", "cached_tokens a part of prompt_tokens", str(usage))]
        return []

    def _check_timing(self, message: Mapping[str, Any]) -> list[Fault]:
        timing = message.get("timing")
        if not isinstance(timing, dict):
            return []  # said already, by its fields
        first = timing.get("first_item_ms")
        if (first is None) != (self.seq == 0):
            wanted = "first_item_ms null exactly when no item was sent"
            return [("§2", wanted, f"{first} with seq {self.seq}")]
        spans = [timing.get("queued_ms"), first, timing.get("total_ms")]
        known = [span for span in spans if isinstance(span, (int, float))]
        if known != sorted(known):
            return [("§2", "queued_ms ≤ first_item_ms ≤ total_ms", str(timing))]
        return []

    def _check_cancelled(self, message: Mapping[str, Any]) -> list[Fault]:
        released, stop_ms, wasted = (message.get(n) for n in ("released", "stop_ms", "wasted"))
        if released is False and (stop_ms is not None or wasted is not None):
            wanted = "stop_ms and wasted null when released is false"
            return [("§2 G3", wanted, f"{stop_ms}, {wasted}")]
        if released is True and stop_ms is None:
            return [("§2 G3", "stop_ms when released is true", "null")]
        if not self.started and released is not True:
            return [("§2 G7", "released true of a pending stream", f"{released}")]
        unit = WASTED.get(self.contents.method)
        if isinstance(wasted, dict) and not set(wasted) <= {unit}:
            return [("§2", f"wasted of {self.contents.method} in {unit}", str(wasted))]
        return []
