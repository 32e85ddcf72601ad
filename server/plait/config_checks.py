"""What a setting's value must be, and how to say that it is not.

Every message names the setting, the value and what to write instead; a token is never shown.
Does NOT know: which settings there are, where their values come from.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Iterable
from dataclasses import Field
from typing import Any

_HOST_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_HOST_LABEL}(?:\.{_HOST_LABEL})*\.?")
# As browsers send it: lower case, no path. The host may be a name, IPv4, [IPv6] or an extension.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_ALIKE = 0.66  # from here on a misspelling is more likely than another word


class ConfigError(ValueError):
    """A setting is unknown, has the wrong type or is out of bounds.

    `key` names the setting as the operator wrote it (file key or environment variable).
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


def check_bounds(spec: Field[Any], value: Any) -> None:
    """Raises ConfigError for a value outside its choices or bounds, or an empty string."""
    low, high, choices = (spec.metadata[part] for part in ("low", "high", "choices"))
    if choices and value not in choices:
        raise ConfigError(
            f"{spec.name} must be one of {', '.join(choices)}, not {value!r}."
            + nearest(str(value), choices),
            key=spec.name,
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{spec.name} must be a finite number, not {value}.", key=spec.name)
    if low is not None and value < low:
        raise ConfigError(f"{spec.name} must be at least {low:g}, not {value}.", key=spec.name)
    if high is not None and value > high:
        raise ConfigError(f"{spec.name} must be at most {high:.0f}, not {value}.", key=spec.name)
    if isinstance(value, str) and not value:
        raise ConfigError(f"{spec.name} must not be empty.", key=spec.name)


def check_host(host: str) -> None:
    """Raises ConfigError for what is neither an address nor can be a host's name."""
    if is_address(host) or _HOST_NAME.fullmatch(host):
        return
    raise ConfigError(
        f"host must be an address or a host's name, not {host!r}. Write it without scheme and"
        " port, like 127.0.0.1 or plait.example.",
        key="host",
    )


def check_origins(
    origins: Iterable[str], shown: str = "allowed_origins", key: str = "allowed_origins"
) -> None:
    """Raises ConfigError for an origin that no browser ever sends; `shown`: where it stands."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(
                f"{shown} must be scheme://host or scheme://host:port, not {origin!r}."
                " Write it in lower case and without a path, like https://app.example.",
                key=key,
            )


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(_bare(host))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether `host` (an address or `localhost`) is reachable from this machine only."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(_bare(host)).is_loopback


def _bare(host: str) -> str:
    """Without the brackets that an IPv6 address has in a URL."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'port'?`, or nothing when no known word comes close."""
    close = difflib.get_close_matches(word, tuple(known), n=1, cutoff=_ALIKE)
    return f" Did you mean {close[0]!r}?" if close else ""
