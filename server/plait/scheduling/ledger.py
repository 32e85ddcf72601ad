"""The memory of the machine and of each app as one account book. No I/O, no clock.

On the machine's account are: each model that is loaded, or on its way in or out; of each stream
its buffers, and its KV cache where the engine takes that from the machine as it runs (of a
"reusable" one the model's charge holds it already). On an app's account: the KV cache of its
streams, of either kind, and their buffers. Kept prefixes are counted apart: they are worth their
memory only while nobody needs it, so a stream never waits for theirs.

Who asked first is served first: `holds` are the bytes that earlier ones wait for. It does NOT
know who waits for what, nor how memory is freed (see `residency`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plait.errors import ResourceNotAvailable

UNLIMITED_BYTES = 1 << 62


class Ledger:
    """All bytes. `on_freed` is called whenever somebody who waits might fit now, `on_crowded` when
    kept prefixes take what has just been granted to a stream.

    The machine's account is overdrawn only by a model that turned out larger than it was thought
    to be; nothing more is granted then.
    """

    def __init__(
        self,
        limit_bytes: int = UNLIMITED_BYTES,
        app_limits: Mapping[str, int] | None = None,
    ) -> None:
        self.limit_bytes = limit_bytes
        self.on_freed: Callable[[], None] = lambda: None
        self.on_crowded: Callable[[], None] = lambda: None
        self.streams_bytes = 0
        self.models: dict[str, int] = {}
        self.caches: dict[str, int] = {}
        self.holds: dict[str, int] = {}  # model: what its first stream in line waits for
        self._app_limits = dict(app_limits or {})
        self._apps: dict[str, int] = {}  # owners without anything on their account have no entry

    def __repr__(self) -> str:
        return f"<Ledger {self.used_bytes} of {self.limit_bytes} bytes, {self.models}>"

    @property
    def used_bytes(self) -> int:
        """All but kept prefixes."""
        return self.streams_bytes + sum(self.models.values())

    @property
    def cache_bytes(self) -> int:
        return sum(self.caches.values())

    @property
    def room_bytes(self) -> int:
        """Not granted to anybody; below 0 when overdrawn."""
        return self.limit_bytes - self.used_bytes

    def room_bytes_for(self, model: str) -> int:
        """What a stream of `model` may take now: others may have asked before it."""
        room_bytes = self.room_bytes
        for name, held_bytes in self.holds.items():
            if name == model:
                break
            room_bytes -= held_bytes
        return room_bytes

    def app_used_bytes(self, owner: str) -> int:
        return self._apps.get(owner, 0)

    def app_limit_bytes(self, owner: str) -> int | None:
        """None where it has none of its own."""
        return self._app_limits.get(owner)

    def app_rooms(self) -> dict[str, int]:
        """What each owner with a limit of its own may still take."""
        return {
            name: limit_bytes - self.app_used_bytes(name)
            for name, limit_bytes in self._app_limits.items()
        }

    def check_can_ever_fit(
        self, model: str, owner: str, *, machine_bytes: int, app_bytes: int
    ) -> None:
        """Raises ResourceNotAvailable, with the numbers, when a stream of a loaded model would
        wait in vain: with nothing else in memory it does not fit."""
        machine_limit_bytes = self.limit_bytes - self.models.get(model, 0)
        if machine_bytes > machine_limit_bytes:
            raise not_available(
                model,
                machine_bytes,
                machine_limit_bytes,
                "the memory budget leaves",
                "send less, or give it more (memory_budget_bytes)",
            )
        app_limit_bytes = self._app_limits.get(owner)
        if app_limit_bytes is not None and app_bytes > app_limit_bytes:
            raise not_available(
                model,
                app_bytes,
                app_limit_bytes,
                "the whole budget of this app is",
                "lower max_tokens or send less",
            )

    def charge_model(self, model: str, size_bytes: int) -> None:
        """It takes so much from now on; 0: it is gone."""
        assert size_bytes >= 0
        before_bytes = self.models.pop(model, 0)
        if size_bytes:
            self.models[model] = size_bytes
        if size_bytes < before_bytes:
            self.on_freed()

    def charge_cache(self, model: str, size_bytes: int) -> None:
        """Prefixes that it keeps take so much, by its own account."""
        self.caches.pop(model, None)
        if size_bytes:
            self.caches[model] = size_bytes

    def take(self, owner: str, *, machine_bytes: int, app_bytes: int) -> None:
        assert min(machine_bytes, app_bytes) >= 0, (machine_bytes, app_bytes)
        self.streams_bytes += machine_bytes
        if app_bytes:
            self._apps[owner] = self.app_used_bytes(owner) + app_bytes
        if self.caches and self.cache_bytes > self.room_bytes:
            self.on_crowded()

    def give_back(self, owner: str, *, machine_bytes: int, app_bytes: int) -> None:
        assert 0 <= machine_bytes <= self.streams_bytes, (machine_bytes, self)
        assert 0 <= app_bytes <= self.app_used_bytes(owner), (owner, app_bytes, self)
        self.streams_bytes -= machine_bytes
        left_bytes = self._apps.pop(owner, 0) - app_bytes
        if left_bytes:
            self._apps[owner] = left_bytes
        if machine_bytes or app_bytes:
            self.on_freed()


def not_available(
    model: str, required_bytes: int, available_bytes: int, has: str, then: str
) -> ResourceNotAvailable:
    """`has` introduces the available bytes, `then` says what to do."""
    return ResourceNotAvailable(
        f"{model} needs {required_bytes} bytes of memory for this, and {has}"
        f" {max(0, available_bytes)}: {then}",
        data={
            "model": model,
            "required_bytes": required_bytes,
            "available_bytes": max(0, available_bytes),
        },
        retry_after_ms=1000,
    )
