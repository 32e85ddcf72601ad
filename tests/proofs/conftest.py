"""Real models behind real servers, one per engine for all proofs; and the dated report.

With PLAIT_TEST_PROOF=full the outcomes and the figures that tests gave to `record_property` are
written to docs/proofs/<date>.md.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from plait.models import ModelStore
from tests.live.server import LiveServer, live_server
from tests.proofs.sizes import CONTEXT_TOKENS, FULL, LISTENERS, MAX_TOKENS, SLOTS

HERE = Path(__file__).parent
REPORTS = HERE.parents[1] / "docs" / "proofs"
MODEL = "smollm2-135m-instruct"
SPEECH_MODEL = "kokoro-82m"
LISTENING_MODEL = "whisper-tiny.en"
PACKAGES = ("xllamacpp", "mlx-lm", "onnxruntime", "pywhispercpp")
Servers = Callable[[str], LiveServer]

_reports: list[pytest.TestReport] = []


@pytest.fixture(scope="package")
def servers() -> Iterator[Servers]:
    """Starts an engine's server when first asked for it."""
    running: dict[str, LiveServer] = {}
    with contextlib.ExitStack() as stack:

        def get(engine: str) -> LiveServer:
            if engine not in running:
                ModelStore().ensure(MODEL, "mlx" if engine == "mlx" else "llamacpp")
                settings: dict[str, Any] = {
                    "context_tokens": CONTEXT_TOKENS,
                    "max_tokens": MAX_TOKENS,
                }
                server = live_server(engine, slots=SLOTS, **settings)
                running[engine] = stack.enter_context(server)
            return running[engine]

        yield get


@pytest.fixture
def llamacpp(servers: Servers) -> Iterator[LiveServer]:
    yield from idle_around(servers("llamacpp"))


@pytest.fixture(params=["llamacpp", "mlx"])
def server(request: pytest.FixtureRequest, servers: Servers) -> Iterator[LiveServer]:
    """Each engine in turn."""
    yield from idle_around(servers(request.param))


@pytest.fixture(scope="package")
def shared_speech_server() -> Iterator[LiveServer]:
    ModelStore().ensure(SPEECH_MODEL, "kokoro-onnx")
    with live_server(speech="kokoro-onnx", speech_slots=SLOTS) as running:
        yield running


@pytest.fixture
def speech_server(shared_speech_server: LiveServer) -> Iterator[LiveServer]:
    """Chats by script and speaks with Kokoro on onnxruntime."""
    yield from idle_around(shared_speech_server)


@pytest.fixture(scope="package")
def shared_transcribe_server() -> Iterator[LiveServer]:
    ModelStore().ensure(LISTENING_MODEL, "whisper")
    with live_server(transcribe="whisper", transcribe_slots=LISTENERS) as running:
        yield running


@pytest.fixture
def transcribe_server(shared_transcribe_server: LiveServer) -> Iterator[LiveServer]:
    """Chats by script and listens with Whisper."""
    yield from idle_around(shared_transcribe_server)


def idle_around(server: LiveServer) -> Iterator[LiveServer]:
    """Idle before and after, so that a proof starts from nothing and leaves nothing."""
    server.wait_idle(30)
    yield server
    server.wait_idle(30)


# --- the report --------------------------------------------------------------------------------


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if FULL and "tests/proofs/" in report.nodeid and (report.when == "call" or report.failed):
        _reports.append(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _reports:
        return
    now = datetime.now(UTC)
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / f"{now:%Y-%m-%d}.md"
    path.write_text("\n".join([*heading(now), *map(row, _reports)]) + "\n", encoding="utf-8")


def heading(now: datetime) -> list[str]:
    passed = sum(report.passed for report in _reports)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    cores = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    return [
        f"# Proofs of {now:%Y-%m-%d %H:%M} UTC",
        "",
        f"Written by `make proof` (`tests/proofs` in full size): {passed} of {len(_reports)} hold.",
        f"Machine: {cores}, no GPU; Python {platform.python_version()}, {versions};"
        " models SmolLM2-135M-Instruct, Kokoro-82M, Whisper tiny.en and all-MiniLM-L6-v2.",
        f"Each server has {SLOTS} slots, for chats of {CONTEXT_TOKENS} tokens. Everything is"
        " measured over the wire, from outside the server.",
        "",
        "| proof | holds | measured | seconds |",
        "|---|---|---|---|",
    ]


def row(report: pytest.TestReport) -> str:
    name = report.nodeid.split("::")[-1].removeprefix("test_").replace("_", " ")
    measured = "; ".join(f"{what}: {value}" for what, value in report.user_properties)
    holds = "yes" if report.passed else "**no**"
    return f"| {name.replace('|', '/')} | {holds} | {measured} | {report.duration:.1f} |"
