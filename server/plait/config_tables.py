"""The tables of `plait.toml`: `[[models]]`, models beside the default ones, and `[apps.NAME]`.

A table that exists is valid in itself; what needs the whole configuration (that names are unique,
that an app's models exist) is checked where it is known. Does NOT know: flat settings, the
environment, how a token is made or compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from plait.config_checks import ConfigError, check_origins, nearest

MethodName = Literal["chat", "transcribe", "synthesize", "embed"]
Capability = Literal["chat", "transcribe", "synthesize", "embed", "metrics", "admin"]

METHODS: Final[tuple[MethodName, ...]] = ("chat", "transcribe", "synthesize", "embed")
CAPABILITIES: Final[tuple[Capability, ...]] = (*METHODS, "metrics", "admin")

# Names are metric labels and owners of queue turns: short, and no text of a peer's.
APP_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")

Bytes = Annotated[int, Meta(ge=0)]
T = TypeVar("T", bound=msgspec.Struct)


class ModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is served beside the default one of its method (`chat`, `transcribe`,
    `synthesize`, `embed`). `engine` auto is the method's own; 0 is the flat setting of that name
    (of other methods than chat: `speech_slots` and its like). With `preload` it is loaded at the
    start, else for the first stream that asks for it.
    """

    method: MethodName
    model: Annotated[str, Meta(min_length=1, max_length=1024)]
    engine: str = "auto"
    slots: Annotated[int, Meta(ge=0, le=256)] = 0
    context_tokens: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    max_tokens: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    kv_budget_bytes: Bytes = 0
    preload: bool = False


class AppTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what, with how much. `capabilities`: methods, `metrics`, `admin`. `models`: names
    as in `welcome`; none means all. `origins`: pages that may connect with this app's tokens,
    besides the server's own `allowed_origins`. `max_streams`, `opens_per_second` and
    `memory_budget_bytes` (KV caches and stream buffers) hold over all its connections; 0: no bound
    but the server's own. `token_hashes` are `sha256:<hex>`; `plait token create` keeps its own.
    """

    token_hashes: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = METHODS
    models: tuple[str, ...] = ()
    max_streams: Annotated[int, Meta(ge=0, le=65536)] = 0
    memory_budget_bytes: Bytes = 0
    opens_per_second: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    origins: tuple[str, ...] = ()


def read_models(raw: object, where: str) -> tuple[ModelTable, ...]:
    """Raises ConfigError naming the table and the field."""
    if not isinstance(raw, list):
        raise ConfigError(f"models in {where} must be tables: write [[models]].", key="models")
    return tuple(
        _convert(table, ModelTable, f"[[models]] number {number} in {where}")
        for number, table in enumerate(raw, 1)
    )


def read_apps(raw: object, where: str) -> dict[str, AppTable]:
    """Raises ConfigError naming the app and the field."""
    if not isinstance(raw, dict):
        raise ConfigError(f"apps in {where} must be tables: write [apps.NAME].", key="apps")
    apps: dict[str, AppTable] = {}
    for name, table in raw.items():
        if not APP_NAME.fullmatch(name):
            raise ConfigError(
                f"[apps.{name}] in {where}: a name has 1 to 32 of a-z, 0-9, - and _, and begins"
                " with a letter.",
                key="apps",
            )
        app = apps[name] = _convert(table, AppTable, f"[apps.{name}] in {where}")
        check_origins(app.origins, f"origins of [apps.{name}] in {where}", "apps")
        for value in app.token_hashes:
            if not TOKEN_HASH.fullmatch(value):
                raise ConfigError(
                    f"[apps.{name}] in {where}: a token hash is sha256: and 64 hex digits; run"
                    f" `plait token create {name}` to get a token.",
                    key="apps",
                )
    return apps


def _convert(table: Any, kind: type[T], where: str) -> T:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table.")
    known = [field.name for field in msgspec.structs.fields(kind)]
    if unknown := _first_unknown(table, known):
        hint = nearest(unknown, known) or f" Known are: {', '.join(known)}."
        raise ConfigError(f"{where}: unknown key {unknown!r}.{hint}")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}.") from None


def _first_unknown(keys: Iterable[str], known: list[str]) -> str | None:
    return next((key for key in keys if key not in known), None)
