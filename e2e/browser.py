"""The browser under test: the one that is installed, with tabs that live while not in front."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Playwright

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A tab that is not in front still paints and keeps its timers: tests open several.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
]


def browser_path() -> str:
    """What `make test` found, or .ci/browser finds; it says what to install if there is none."""
    if path := os.environ.get("PLAIT_TEST_BROWSER"):
        return path
    finder = Path(__file__).parents[1] / ".ci" / "browser"
    found = subprocess.run([finder], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(found.stderr)
    return found.stdout.strip()


def launch(playwright: Playwright, *flags: str) -> Browser:
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=browser_path(), args=[*FLAGS, *root, *flags], timeout=60_000
    )
