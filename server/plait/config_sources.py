"""Where settings come from: defaults < `plait.toml` < `PLAIT_*` environment < command line.

Each value is typed as its setting asks, and a mistake names the key, where it was written and the
nearest known key. Does NOT know: what a setting means, or its bounds (see `config`).
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from plait.config import SPECS, TABLES, Config
from plait.config_checks import ConfigError, nearest
from plait.config_tables import read_apps, read_models

DEFAULT_FILE = "plait.toml"
ENV_PREFIX = "PLAIT_"
# PLAIT_ variables that are no settings: where models live, which file to read, one more token.
OTHER_ENV = ("PLAIT_HOME", "PLAIT_CONFIG", "PLAIT_TOKEN")
# Set by Kubernetes for a service called "plait", and by test suites: never a misspelt setting.
FOREIGN_ENV = ("PLAIT_SERVICE_", "PLAIT_PORT_", "PLAIT_TEST_")


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    arguments: Mapping[str, object] | None = None,
) -> Config:
    """Merge the four sources into a Config.

    `file` None means `$PLAIT_CONFIG`, else `plait.toml` in the working directory where there is
    one. `arguments` maps setting names to command-line values; None values are skipped.
    Raises ConfigError naming the key and the nearest known key.
    """
    environ = os.environ if environ is None else environ
    file = _find_file(file, environ)
    values = _from_file(file)
    sources = dict.fromkeys(values, str(file))
    values |= (from_environment := _from_environment(environ))
    sources |= {name: env_name(name) for name in from_environment}
    for name, value in (arguments or {}).items():
        if value is not None:
            sources[name] = f"--{name.replace('_', '-')}"
            values[name] = _typed(name, value, shown=sources[name])
    extra_token = environ.get("PLAIT_TOKEN", "").strip()
    if extra_token:
        values["tokens"] = (*values.get("tokens", ()), extra_token)
    try:
        return Config(**values)
    except ConfigError as error:
        if error.key not in sources:
            raise
        raise ConfigError(f"{error} ({sources[error.key]} sets it.)", key=error.key) from None


def _find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    if file is None and environ.get("PLAIT_CONFIG"):
        file = Path(environ["PLAIT_CONFIG"])
    if file is None:
        return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None
    if not file.is_file():
        raise ConfigError(
            f"there is no configuration file {file}. Create it or leave --config out."
        )
    return file


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as TOML: {error}.") from error
    tables: dict[str, Any] = {}
    if "models" in raw:
        tables["models"] = read_models(raw.pop("models"), str(file))
    if "apps" in raw:
        tables["apps"] = read_apps(raw.pop("apps"), str(file))
    for key in raw:
        if key not in SPECS:
            raise _unknown(key, (*SPECS, *TABLES), where=str(file))
    flat = {key: _typed(key, value, shown=f"{key} in {file}") for key, value in raw.items()}
    return flat | tables


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in environ.items():
        if not key.startswith(ENV_PREFIX) or key in OTHER_ENV or key.startswith(FOREIGN_ENV):
            continue
        name = key.removeprefix(ENV_PREFIX).lower()
        if name not in SPECS or key != env_name(name):
            raise _unknown(key, (*map(env_name, SPECS), *OTHER_ENV), where="the environment")
        values[name] = _parse_text(name, text, key)
    return values


def env_name(name: str) -> str:
    return ENV_PREFIX + name.upper()


def _parse_text(name: str, text: str, key: str) -> object:
    kind = type(_default(name))
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is str:
        return text
    try:
        return _boolean(text) if kind is bool else kind(text)
    except ValueError:
        hint = ""
        if name == "port" and text.startswith("tcp://"):
            hint = " Kubernetes sets it for a service called plait: use enableServiceLinks: false."
        raise ConfigError(
            f"{key} must be {_KIND_WORDS[kind]}, not {text!r}.{hint}", key=key
        ) from None


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(text) from None


_KIND_WORDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple: "a list of strings",
}


def _typed(name: str, value: object, shown: str) -> object:
    if name not in SPECS:
        raise _unknown(name, SPECS, where="the command line")
    kind = type(_default(name))
    if kind is tuple and isinstance(value, (list, tuple)):
        if all(isinstance(item, str) and item for item in value):
            return tuple(value)
    elif kind is float and type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    elif type(value) is kind:  # not isinstance: true is no port
        return value
    written = "this" if name == "tokens" else repr(value)
    hint = ""
    if kind is tuple and isinstance(value, str):
        quoted = '"…"' if name == "tokens" else json.dumps(value, ensure_ascii=False)
        hint = f" Write {name} = [{quoted}]."
    raise ConfigError(f"{shown} must be {_KIND_WORDS[kind]}, not {written}.{hint}", key=name)


def _default(name: str) -> Any:
    spec = SPECS[name]
    if spec.default_factory is not MISSING:
        return spec.default_factory()
    return spec.default


def _unknown(key: str, known: Iterable[str], where: str) -> ConfigError:
    known = tuple(known)
    # What all names of the environment begin with must not make any two of them alike.
    prefix = ENV_PREFIX if key.startswith(ENV_PREFIX) else ""
    hint = nearest(key.removeprefix(prefix), (name.removeprefix(prefix) for name in known))
    hint = hint.replace("'", f"'{prefix}", 1) or " docs/configuration.md lists them all."
    return ConfigError(f"unknown setting {key!r} in {where}.{hint}", key=key)
