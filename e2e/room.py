"""A room with a microphone and a loudspeaker in it, in which somebody talks when a test says so.

The page's own code is untouched: a script installed before it answers `getUserMedia` with a stream
in which there is a quiet room, what the page plays, softer and a moment later, and the user's words
(as `scripted.hearing` names them: tones). So an echo is as sure as a word, and nobody's clip has to
be timed. It also notes, on the audio clock, when the loudspeaker sounded and when turns were shown
to be interrupted. Its recorder is a blob: the browser context has to bypass the CSP.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from playwright.sync_api import Page

from plait.engines.scripted.hearing import GAP_SECONDS, STEP_HZ, TONE_SECONDS, WORDS

ECHO = 0.3  # of the page's own sound is in the microphone
DELAY_SECONDS = 0.08
PAUSE_SECONDS = 0.5
SCRIPT = """
(() => {
  const room = { interruptions: [], sounding: [] };
  window.room = room;
  const Native = AudioContext;
  const connect = AudioNode.prototype.connect;
  window.AudioContext = class extends Native {
    constructor(options) {
      super(options);
      furnish(this);
    }
  };

  function furnish(context) {
    if (room.context) return;
    room.context = context;
    room.microphone = context.createMediaStreamDestination();
    room.loudspeaker = new GainNode(context);
    const softer = new GainNode(context, { gain: ECHO });
    const later = new DelayNode(context, { delayTime: DELAY });
    connect.call(room.loudspeaker, softer);
    connect.call(softer, later);
    connect.call(later, room.microphone);
    const hum = context.createBuffer(1, context.sampleRate, context.sampleRate);
    hum.getChannelData(0).forEach((_, at, samples) => {
      samples[at] = 0.002 * (Math.random() - 0.5);
    });
    const quiet = new AudioBufferSourceNode(context, { buffer: hum, loop: true });
    connect.call(quiet, room.microphone);
    quiet.start();
    room.ready = record(context);
  }

  async function record(context) {
    const module = `registerProcessor("e2e-room", class extends AudioWorkletProcessor {
      process([[samples]]) {
        if (samples?.some((sample) => Math.abs(sample) > 1e-4)) this.port.postMessage(currentTime);
        return true;
      }
    })`;
    const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
    await context.audioWorklet.addModule(url);
    const recorder = new AudioWorkletNode(context, "e2e-room");
    recorder.port.onmessage = ({ data }) => room.sounding.push(data);
    connect.call(room.loudspeaker, recorder);
    connect.call(recorder, context.destination); // silent, and kept running by it
  }

  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode && this.context === room.context)
      connect.call(this, room.loudspeaker);
    return connect.call(this, target, ...rest);
  };

  room.say = (frequencies, each, sounding) => {
    const { context, microphone } = room;
    frequencies.forEach((frequency, index) => {
      const voice = new OscillatorNode(context, { frequency });
      const loud = new GainNode(context, { gain: 0.5 });
      connect.call(voice, loud);
      connect.call(loud, microphone);
      const at = context.currentTime + 0.05 + index * each;
      voice.start(at);
      voice.stop(at + sounding);
    });
  };

  navigator.mediaDevices.getUserMedia = async () => {
    if (!room.context) new AudioContext();
    await room.ready;
    return room.microphone.stream.clone();
  };

  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const { testid, state } = target.dataset;
      if (testid === "turn" && state === "interrupted")
        room.interruptions.push(room.context.currentTime);
    }
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });
})();
"""


SOUNDED = "(blocks) => room.sounding.length >= blocks"
HEARD_BLOCKS = 100  # of 128 samples: more than a quarter of a second


class Room:
    """Furnished before the page opens. Without an echo its loudspeaker is a pair of headphones."""

    def __init__(self, page: Page, echo: float = ECHO) -> None:
        self._page = page
        script = SCRIPT.replace("ECHO", str(echo)).replace("DELAY", str(DELAY_SECONDS))
        page.add_init_script(script)

    def say(self, words: str) -> None:
        """Begins now, and lasts 0.2 s for each word."""
        pitches = [STEP_HZ * (WORDS.index(word) + 1) for word in words.split()]
        timing = [TONE_SECONDS + GAP_SECONDS, TONE_SECONDS]
        self._page.evaluate(
            "([pitches, ...timing]) => room.say(pitches, ...timing)", [pitches, *timing]
        )

    def sounded(self) -> int:
        """How many blocks of sound the loudspeaker has had."""
        return int(self._page.evaluate("() => room.sounding.length"))

    def wait_sounded(self, since: int) -> None:
        """Until somebody must have heard something since there were so many."""
        self._page.wait_for_function(SOUNDED, arg=since + HEARD_BLOCKS)

    def interruptions(self) -> list[float]:
        """When turns were shown to be so: a moment after they were."""
        times: list[float] = self._page.evaluate("() => room.interruptions")
        return times

    def silent_from(self) -> float:
        """Where the loudspeaker's first sound ended, with half a second of silence behind it."""
        times: list[float] = self._page.evaluate("() => room.sounding")
        ends = (here for here, there in pairwise([*times, inf]) if there - here > PAUSE_SECONDS)
        return next(ends)
