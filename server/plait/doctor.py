"""`plait doctor`: what this machine has, what is missing, and what to do next.

Only looks: engines are found through their package metadata, never imported (a broken native
library would end the doctor too), nothing is downloaded, no file is changed. Where the port is
taken, what listens there is asked once, on this machine only.
Does NOT know: how engines are loaded, what the server does.
"""

from __future__ import annotations

import ctypes.util
import errno
import json
import os
import platform
import shutil
import socket
import sys
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import psutil

from plait.config import Config, ConfigError
from plait.config_sources import load_config
from plait.config_tables import METHODS
from plait.configured import engine_of, wanted_models
from plait.installation import (
    ENGINE_PACKAGES,
    engine_missing,
    is_importable,
    program_name,
)
from plait.listening import PortUnavailable, bind, listen, playground_url
from plait.machine_cores import core_ids
from plait.machine_memory import default_budget_bytes
from plait.models import ModelDamaged, ModelStore, StoreError
from plait.models.store import default_root

Status = Literal["ok", "note", "fail"]

GB = 1e9
_LEAST_MEMORY_BYTES = 2 * GB  # the starter model with 4 slots takes about half of it
_LEAST_DISK_BYTES = 1 * GB
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ASKING_SECONDS = 1.0
_MOST_ANSWER_BYTES = 1 << 16
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
_MAC_BROWSERS = ("Google Chrome", "Chromium", "Safari", "Firefox")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `fail` keeps the server from starting; `note` does not. `next_step` is a command or
    a sentence, empty when there is nothing to do."""

    subject: str
    status: Status
    detail: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(finding.status != "fail" for finding in self.findings)

    @property
    def next_steps(self) -> list[str]:
        """What to do, the urgent first; ends with the command that starts the server."""
        ranked = sorted(self.findings, key=lambda finding: finding.status != "fail")
        steps = [finding.next_step for finding in ranked if finding.next_step]
        return [*steps, f"{program_name()} serve"] if self._ready else steps

    @property
    def _ready(self) -> bool:
        """Whether `plait serve`, as it is configured, would start now."""
        ports = [f for f in self.findings if f.subject == "port"]
        return self.healthy and all(f.status == "ok" and not f.next_step for f in ports)

    def as_json(self) -> str:
        findings = [asdict(finding) for finding in self.findings]
        report = {"healthy": self.healthy, "findings": findings, "next_steps": self.next_steps}
        return json.dumps(report, indent=1)

    def as_text(self) -> str:
        width = max(len(finding.subject) for finding in self.findings)
        lines = [f"{f.status:<5} {f.subject:<{width}}  {f.detail}" for f in self.findings]
        return "\n".join([*lines, "", "Next:", *(f"  {step}" for step in self.next_steps)])


def examine(config_file: Path | None = None) -> Report:
    """Look at everything; never raises for what it finds."""
    config, config_finding = _configuration(config_file)
    store = ModelStore()
    return Report(
        (
            *_machine(),
            config_finding,
            _budget(config),
            *(_engine(name, config) for name in ENGINE_PACKAGES),
            *_openblas(config.chat_engine),
            *_models(store, config),
            _disk(),
            _port(config),
            _browser(),
        )
    )


def _machine() -> tuple[Finding, ...]:
    cores, memory = os.cpu_count() or 1, psutil.virtual_memory()
    if hasattr(os, "sched_getaffinity"):  # a container may be given fewer
        cores = min(cores, len(os.sched_getaffinity(0)))
    enough = memory.available >= _LEAST_MEMORY_BYTES
    return (
        Finding("machine", "ok", f"{platform.system()} {platform.machine()}, {cores} cores"),
        Finding(
            "memory",
            "ok" if enough else "note",
            f"{memory.available / GB:.1f} of {memory.total / GB:.1f} GB available",
            "" if enough else "Close other programs: a chat model needs about 2 GB.",
        ),
        Finding("python", "ok", f"{platform.python_version()} at {sys.executable}"),
    )


def _budget(config: Config) -> Finding:
    """What all models together may take, and where that comes from."""
    memory_bytes = config.memory_budget_bytes or default_budget_bytes()
    by = "set" if config.memory_budget_bytes else "three quarters of what there is"
    cpus = len(core_ids(config.cores))
    detail = f"{memory_bytes / GB:.1f} GB of memory ({by}) and {cpus} cores for all models"
    return Finding("budget", "ok", detail)


def _configuration(file: Path | None) -> tuple[Config, Finding]:
    try:
        config = load_config(file)
        wanted = wanted_models(config)
    except ConfigError as error:
        step = "Correct the setting; docs/configuration.md lists them all."
        return Config(), Finding("configuration", "fail", str(error), step)
    parts = [f"{w.model} on {w.engine}" for w in wanted]
    parts += [f"no {method}" for method in METHODS if engine_of(config, method) == "off"]
    return config, Finding("configuration", "ok", "; ".join(parts))


def _engine(name: str, config: Config) -> Finding:
    subject = f"engine {name}"
    missing = engine_missing(name)
    if missing is None:
        versions = [f"{dist} {metadata.version(dist)}" for _, dist in ENGINE_PACKAGES[name]]
        return Finding(subject, "ok", ", ".join(versions))
    users = [wanted for wanted in wanted_models(config) if wanted.engine == name]
    if any(not wanted.optional for wanted in users):
        return Finding(subject, "fail", missing.reason, missing.next_step)
    if users:  # `auto` goes without it
        reason = f"{missing.reason}: no {users[0].method}"
        return Finding(subject, "note", reason, missing.next_step)
    return Finding(subject, "note", f"{missing.reason} (not needed)")


def _openblas(configured: str) -> tuple[Finding, ...]:
    if not sys.platform.startswith("linux") or not is_importable("mlx"):
        return ()
    found = ctypes.util.find_library("openblas")
    if found is not None:
        return (Finding("openblas", "ok", f"{found}, which makes mlx fast on this CPU"),)
    step = "apt install libopenblas0-pthread" if configured == "mlx" else ""
    detail = "not installed; mlx is many times slower on a Linux CPU without it"
    return (Finding("openblas", "note", detail, step),)


def _models(store: ModelStore, config: Config) -> tuple[Finding, ...]:
    findings = [_verified(store, model.name) for model in store.installed()]
    for wanted in wanted_models(config):
        model = wanted.model
        if wanted.engine != "scripted" and store.find(model) is None:
            step = f"{program_name()} models pull {model} (serve does it too)"
            findings.append(Finding(f"model {model}", "note", "not installed", step))
    return tuple(findings)


def _verified(store: ModelStore, name: str) -> Finding:
    subject = f"model {name}"
    try:
        model = store.verify(name)
    except ModelDamaged as error:
        return Finding(subject, "fail", error.message, error.next_step)
    except StoreError as error:  # removed meanwhile
        return Finding(subject, "note", error.message, error.next_step)
    forms = " and ".join(model.form_labels) or "not converted"
    return Finding(subject, "ok", f"{forms}, every byte verified")


def _disk() -> Finding:
    root = default_root()
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    enough = free >= _LEAST_DISK_BYTES
    step = "" if enough else "Free some room, or point PLAIT_HOME at another disk."
    return Finding("disk", "ok" if enough else "note", f"{free / GB:.1f} GB free in {root}", step)


def _port(config: Config) -> Finding:
    try:
        with bind(config.host, config.port) as listening:
            listen(listening, config.host, config.port)
            port = listening.getsockname()[1]
    except PortUnavailable as error:
        if getattr(error.__cause__, "errno", None) == errno.EADDRINUSE:
            return _taken(config, error)
        return Finding("port", "note", error.message, error.next_step)
    return Finding(
        "port", "ok", f"free; the playground will be {playground_url(config.host, port)}"
    )


def _taken(config: Config, error: PortUnavailable) -> Finding:
    page = urlsplit(playground_url(config.host, config.port))
    answer = _asked(str(page.hostname), config.port) if page.hostname in _LOOPBACK else b""
    if not answer:  # also a plait that still fetches its models: it has bound, and does not listen
        return Finding("port", "note", error.message, error.next_step)
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        ready = json.loads(body)["ready"]
    except (ValueError, LookupError, TypeError, RecursionError):
        protocol, status, *_ = [*head.decode("latin-1").split(maxsplit=2), "", ""]
        answers = f"answers HTTP {status[:3]}" if protocol.startswith("HTTP/") else "speaks no HTTP"
        detail = f"port {config.port} is taken by another program, which {answers}"
        return Finding("port", "note", detail, error.next_step)
    url = page.geturl()
    if ready is True:
        return Finding("port", "ok", f"Plait is serving here already: {url}", f"Open {url}")
    detail = f"Plait is serving here already, at {url}, but not every model is ready"
    return Finding("port", "note", detail, f"{url}readyz and its log say which.")


def _asked(host: str, port: int) -> bytes:
    """What answers there to a request for /readyz, as far as it came within a second."""
    answer, end = b"", time.monotonic() + _ASKING_SECONDS
    request = f"GET /readyz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, port), _ASKING_SECONDS) as asking:
            asking.sendall(request.encode())
            while (left := end - time.monotonic()) > 0 and len(answer) < _MOST_ANSWER_BYTES:
                asking.settimeout(left)
                if not (part := asking.recv(4096)):
                    break
                answer += part
    except OSError:
        pass  # what came until then tells what it is
    return answer


def _browser() -> Finding:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None and sys.platform == "darwin":
        found = next((n for n in _MAC_BROWSERS if Path(f"/Applications/{n}.app").exists()), None)
    if found is None:
        return Finding("browser", "note", "none found here; any browser that reaches the port does")
    return Finding("browser", "ok", found)
