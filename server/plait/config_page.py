"""docs/configuration.md, printed from config.py (`python -m plait.config_page`).

A test holds the page in step. Does NOT know: where a value comes from, or the values of a run.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field
from typing import Any

from plait.config import SPECS, env_name

EXAMPLE = (
    'chat_model = "hf:org/name/file.gguf"  # or "./model.gguf"',
    "slots = 2",
    "context_tokens = 8192",
    'allowed_origins = ["https://app.example"]',
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
        "The TOML file has one flat table of the keys below. Lists in the environment are separated"
        " by commas.",
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
        "Not settings, but read: `PLAIT_HOME` (where models are kept; default: the user's cache"
        " directory), `PLAIT_CONFIG` (the TOML file), `PLAIT_TOKEN` (one more token).",
        "",
    ]
    return "\n".join(lines)


def _default(spec: Field[Any]) -> str:
    if spec.default_factory is not MISSING:
        return str(spec.metadata["shown"])
    if spec.default == ():
        return "none"
    shown = str(spec.default).lower() if isinstance(spec.default, bool) else spec.default
    return f"`{shown}`"


def _bounds(spec: Field[Any]) -> str:
    low, high, choices = (spec.metadata[part] for part in ("low", "high", "choices"))
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if low is None:
        return ""
    return f"{low:g} …" if high is None else f"{low:g} … {high:.0f}"


if __name__ == "__main__":
    sys.stdout.write(markdown())
