"""docs/configuration.md, printed from config.py (`python -m plait.config_page`).

A test holds the page in step. Does NOT know: where a value comes from, or the values of a run.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field
from inspect import cleandoc
from typing import Any

import msgspec

from plait.config import SPECS
from plait.config_sources import env_name
from plait.config_tables import AppTable, ModelTable

EXAMPLE = (
    'chat_model = "hf:org/name/file.gguf"  # or "./model.gguf"',
    "slots = 2",
    "context_tokens = 8192",
    'allowed_origins = ["https://app.example"]',
)

TABLES_EXAMPLE = (
    "[[models]]                     # beside the default ones; loaded when it is asked for",
    'method = "chat"',
    'model = "hf:org/name/file.gguf"',
    "slots = 2",
    "",
    "[apps.notes]                   # `plait token create notes` prints its token, once",
    'capabilities = ["chat", "embed"]',
    "max_streams = 8",
    "memory_budget_bytes = 2_000_000_000",
    'origins = ["https://notes.example"]',
)


def markdown() -> str:
    """docs/configuration.md: every setting with its default, bounds and meaning."""
    lines = [
        "# Configuration",
        "",
        "<!-- Printed by `python -m plait.config_page`; edit server/plait/config.py instead. -->",
        "",
        "Later wins: defaults, `plait.toml` (or `--config FILE`, `$PLAIT_CONFIG`), environment,"
        " command line.",
        "The TOML file has the keys below, and tables for more models and for apps (further down)."
        " Lists in the environment are separated by commas.",
        "An unknown key or a wrong type stops the start and names the nearest key.",
        "`plait.toml` is read from the directory in which `plait` is started, if it is there:",
        "",
        "```toml",
        *EXAMPLE,
        "```",
        "",
        "| key | default | bounds | environment | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, spec in SPECS.items():
        lines.append(
            f"| `{name}` | {_default(spec)} | {_bounds(spec)} | `{env_name(name)}` |"
            f" {spec.metadata['doc']} |"
        )
    lines += [
        "",
        *_tables(),
        "Not settings, but read: `PLAIT_HOME` (where models are kept; default: the user's cache"
        " directory), `PLAIT_CONFIG` (the TOML file), `PLAIT_TOKEN` (one more token).",
        "",
    ]
    return "\n".join(lines)


def _tables() -> list[str]:
    """The part about `[[models]]` and `[apps.NAME]`; meanings are those of the structs."""
    lines = ["## More models, and apps", "", "```toml", *TABLES_EXAMPLE, "```", ""]
    for title, struct in (("[[models]]", ModelTable), ("[apps.NAME]", AppTable)):
        lines += [f"### `{title}`", "", *cleandoc(struct.__doc__ or "").split("\n"), ""]
        lines += ["| key | default |", "|---|---|"]
        for field in msgspec.structs.fields(struct):
            lines.append(f"| `{field.name}` | {_table_default(field)} |")
        lines.append("")
    return lines


def _table_default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default == ():
        return "none"
    if isinstance(field.default, tuple):
        return ", ".join(f"`{value}`" for value in field.default)
    return f"`{_written(field.default)}`"


def _default(spec: Field[Any]) -> str:
    if spec.default_factory is not MISSING:
        return str(spec.metadata["shown"])
    if spec.default == ():
        return "none"
    return f"`{_written(spec.default)}`"


def _written(value: object) -> str:
    """As TOML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bounds(spec: Field[Any]) -> str:
    low, high, choices = (spec.metadata[part] for part in ("low", "high", "choices"))
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if low is None:
        return ""
    return f"{low:g} …" if high is None else f"{low:g} … {high:.0f}"


if __name__ == "__main__":
    sys.stdout.write(markdown())
