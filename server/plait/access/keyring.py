"""Which tokens open the door now, and whose they are. Pure: time is passed in.

A token is compared as its SHA-256, in constant time, with every one known, so that timing tells
neither how close it came nor which one it was. Does NOT know: files, connections, what an app may.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field

from plait.access.tokens import digest


@dataclass(frozen=True, slots=True)
class Grant:
    """What a good token stands for: an app's rights, or (app None) all that the server offers.

    `digest` names the token, `expires` is in seconds of the wall clock; None: never.
    """

    digest: bytes = field(repr=False)
    app: str | None
    expires: float | None = None

    def expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


ANYBODY = Grant(b"", None)  # of a server that asks for no token


class Keyring:
    """Without `required` everybody is let in, with whatever they show."""

    def __init__(self, grants: Iterable[Grant], *, required: bool) -> None:
        self._grants: dict[bytes, Grant] = {}
        for grant in grants:
            self._grants.setdefault(grant.digest, grant)
        self.required = required

    def find(self, token: bytes | None, now: float) -> Grant | None:
        """Whose token it is; None when it is nobody's, or has expired."""
        if not self.required:
            return ANYBODY
        shown = digest(token or b"")
        found: Grant | None = None
        for known, grant in self._grants.items():
            if hmac.compare_digest(known, shown):
                found = grant
        return None if found is None or token is None or found.expired(now) else found

    def renew(self, grant: Grant, now: float) -> Grant | None:
        """The same token's grant as of now; None when it does not open its app any more."""
        if grant is ANYBODY:
            return None if self.required else grant
        known = self._grants.get(grant.digest)
        if known is None or known.app != grant.app or known.expired(now):
            return None
        return known
