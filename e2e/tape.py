"""What a page plays, recorded between its player and the speakers, sample by sample.

The page's own code is untouched: a script installed before it joins a recorder to whatever is
connected to the destination. Samples are 16-bit integers at the context's rate. Does NOT know
speech.
"""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

MODULE_PATH = "/static/playground/e2e-tape.js"
MODULE = """
registerProcessor("e2e-tape", class extends AudioWorkletProcessor {
  process([input]) {
    if (input[0]) this.port.postMessage({ frame: currentFrame, samples: input[0].slice() });
    return true;
  }
});
"""
SCRIPT = """
(() => {
  const rate = RATE;
  const tape = { blocks: [], presses: [], context: null };
  window.tape = tape;
  if (rate) {
    const Native = AudioContext;
    window.AudioContext = class extends Native {
      constructor(options) { super({ ...options, sampleRate: rate }); }
    };
  }
  const load = AudioWorklet.prototype.addModule;
  AudioWorklet.prototype.addModule = async function (url) {
    await load.call(this, url);
    await load.call(this, "MODULE_PATH");
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      tape.context = this.context;
      const recorder = new AudioWorkletNode(this.context, "e2e-tape");
      recorder.port.onmessage = ({ data }) => tape.blocks.push(data);
      connect.call(this, recorder);
      connect.call(recorder, target);
    }
    return connect.call(this, target, ...rest);
  };
  const note = () => tape.context && tape.presses.push(tape.context.currentTime);
  addEventListener("click", note, true);
  addEventListener("keydown", note, true);
})();
"""
READ = """
() => {
  const { blocks, presses, context } = window.tape;
  const samples = blocks.flatMap((block) => [...block.samples].map((x) => Math.round(x * 32767)));
  return { rate: context.sampleRate, frames: blocks.map((block) => block.frame), samples, presses };
}
"""
BLOCK = 128


@dataclass(frozen=True)
class Recording:
    """`start` is the first sample's frame on the context's clock; `presses` are times on it."""

    rate: float
    start: int
    samples: list[int]
    whole: bool  # no block of the audio thread is missing
    presses: list[float]

    @property
    def sounding(self) -> list[int]:
        """From the first to the last sample that is not silence."""
        loud = [i for i, sample in enumerate(self.samples) if abs(sample) > 3]
        return self.samples[loud[0] : loud[-1] + 1] if loud else []

    @property
    def last_sound(self) -> float:
        """When the last sample that is not silence was played, in seconds on the clock."""
        last = max(i for i, sample in enumerate(self.samples) if abs(sample) > 3)
        return (self.start + last) / self.rate


class Tape:
    """Records from the page's first sound on. `rate` stands for a device of another rate."""

    def __init__(self, page: Page, rate: int | None = None) -> None:
        self._page = page
        page.route(
            f"**{MODULE_PATH}",
            lambda route: route.fulfill(body=MODULE, content_type="text/javascript"),
        )
        script = SCRIPT.replace("RATE", str(rate or 0)).replace("MODULE_PATH", MODULE_PATH)
        page.add_init_script(script)

    def read(self) -> Recording:
        taken = self._page.evaluate(READ)
        frames = taken["frames"]
        whole = all(after - before == BLOCK for before, after in zip(frames, frames[1:], strict=False))
        start = frames[0] if frames else 0
        return Recording(taken["rate"], start, taken["samples"], whole, taken["presses"])
