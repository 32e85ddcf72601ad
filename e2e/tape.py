"""What a page plays, recorded between its player and the speakers, sample by sample.

The page's own code is untouched: a script installed before it joins a recorder to whatever is
connected to the destination. The recorder's module is a blob, so the browser context must be made
with `bypass_csp`. Samples are 16-bit integers at the context's rate. Does NOT know speech.
"""

from __future__ import annotations

import base64
from array import array
from dataclasses import dataclass
from itertools import pairwise

from playwright.sync_api import Page

SCRIPT = """
(() => {
  const rate = RATE;
  const tape = { blocks: [], presses: [], context: null, recorder: null };
  window.tape = tape;
  if (rate) {
    const Native = AudioContext;
    window.AudioContext = class extends Native {
      constructor(options) { super({ ...options, sampleRate: rate }); }
    };
  }
  const module = `registerProcessor("e2e-tape", class extends AudioWorkletProcessor {
    process([input]) {
      const samples = input[0]?.slice() ?? new Float32Array(BLOCK);
      this.port.postMessage({ frame: currentFrame, samples });
      return true;
    }
  })`;
  const recorder = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
  const load = AudioWorklet.prototype.addModule;
  AudioWorklet.prototype.addModule = async function (url) {
    await load.call(this, url);
    await load.call(this, recorder);
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      if (!tape.recorder) {
        tape.context = this.context;
        tape.recorder = new AudioWorkletNode(this.context, "e2e-tape");
        tape.recorder.port.onmessage = ({ data }) => tape.blocks.push(data);
        connect.call(tape.recorder, target);
      }
      connect.call(this, tape.recorder);
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
  const pcm = new Int16Array(blocks.length * BLOCK);
  blocks.forEach(({ samples }, n) => {
    samples.forEach((x, i) => { pcm[n * BLOCK + i] = Math.round(x * 32767); });
  });
  const bytes = new Uint8Array(pcm.buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  const frames = blocks.map(({ frame }) => frame);
  return { rate: context.sampleRate, frames, pcm: btoa(text), presses };
}
"""
REACHED = """
([press, seconds]) => {
  const { blocks, presses, context } = window.tape;
  return blocks.at(-1).frame >= (presses[press] + seconds) * context.sampleRate;
}
"""
SOUNDS = "() => window.tape.blocks.at(-1)?.samples.some((sample) => Math.abs(sample) > 1e-4)"
BLOCK = 128


@dataclass(frozen=True)
class Recording:
    """`frames` has each block's first frame on the context's clock; `presses` are times on it."""

    rate: float
    frames: list[int]
    samples: list[int]  # BLOCK of them per block
    presses: list[float]

    @property
    def whole(self) -> bool:
        """No block is missing: a busy machine's audio thread leaves some out."""
        return all(b - a == BLOCK for a, b in pairwise(self.frames))

    @property
    def sounding(self) -> list[int]:
        """From the first to the last sample that is not silence."""
        loud = [i for i, sample in enumerate(self.samples) if abs(sample) > 3]
        return self.samples[loud[0] : loud[-1] + 1] if loud else []

    @property
    def last_sound(self) -> float:
        """When the last sample that is not silence was played, in seconds on the clock."""
        last = max(i for i, sample in enumerate(self.samples) if abs(sample) > 3)
        return (self.frames[last // BLOCK] + last % BLOCK) / self.rate


class Tape:
    """Records from the page's first sound on. `rate` stands for a device of another rate."""

    def __init__(self, page: Page, rate: int | None = None) -> None:
        self._page = page
        page.add_init_script(SCRIPT.replace("RATE", str(rate or 0)).replace("BLOCK", str(BLOCK)))

    def presses(self) -> int:
        """How many clicks and keys there were since the first sound."""
        return int(self._page.evaluate("() => window.tape.presses.length"))

    def wait_sound(self) -> None:
        """Until something sounds."""
        self._page.wait_for_function(SOUNDS)

    def wait_after(self, press: int, seconds: float) -> None:
        """Until that much was recorded after a press, on the audio's clock."""
        self._page.wait_for_function(REACHED, arg=[press, seconds])

    def read(self) -> Recording:
        taken = self._page.evaluate(READ.replace("BLOCK", str(BLOCK)))
        samples = list(array("h", base64.b64decode(taken["pcm"])))
        return Recording(taken["rate"], taken["frames"], samples, taken["presses"])
