"""Memory arithmetic: what is reserved, what is free, what can never fit. No I/O, no clock.

The budget is in bytes of KV cache; a reservation is sized by the adapter the way its engine
really allocates (`Prepared.reserve_bytes`).
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.errors import ResourceNotAvailable


@dataclass(slots=True)
class Budget:
    """Bytes reserved against a limit. Owned by one scheduler."""

    limit_bytes: int
    reserved_bytes: int = 0

    @property
    def available_bytes(self) -> int:
        return self.limit_bytes - self.reserved_bytes

    def check_can_ever_fit(self, model: str, required_bytes: int) -> None:
        """Raises ResourceNotAvailable, with the numbers, when waiting would be in vain."""
        if required_bytes > self.limit_bytes:
            raise ResourceNotAvailable(
                f"{model} would need {required_bytes} bytes of KV cache for this request, and its "
                f"whole budget is {self.limit_bytes}: lower max_tokens or shorten the messages",
                data={
                    "model": model,
                    "required_bytes": required_bytes,
                    "available_bytes": self.limit_bytes,
                },
            )

    def reserve(self, required_bytes: int) -> None:
        assert 0 <= required_bytes <= self.available_bytes, (required_bytes, self)
        self.reserved_bytes += required_bytes

    def release(self, held_bytes: int) -> None:
        assert 0 <= held_bytes <= self.reserved_bytes, (held_bytes, self)
        self.reserved_bytes -= held_bytes
