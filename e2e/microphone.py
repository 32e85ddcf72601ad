"""Chromium's fake microphone: a browser whose every recording is a known clip, over and over.

The clip begins when the microphone is opened, at a rate of its own; the page's AudioContext gets
the same, as with a device of that rate. What a busy machine garbles comes again in the next round.
"""

from __future__ import annotations

import wave
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright

from e2e.browser import launch

RATE_SCRIPT = """
(() => {
  const Native = AudioContext;
  window.AudioContext = class extends Native {
    constructor(options) { super({ ...options, sampleRate: RATE }); }
  };
})();
"""


def write_clip(path: Path, pcm: bytes, rate: int) -> Path:
    """Mono 16-bit samples as a WAV file."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    return path


def launch_with_microphone(playwright: Playwright, clip: Path) -> Browser:
    """It allows every page its microphone, unasked."""
    return launch(
        playwright,
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={clip}",
    )


def set_device_rate(page: Page, rate: int) -> None:
    page.add_init_script(RATE_SCRIPT.replace("RATE", str(rate)))
