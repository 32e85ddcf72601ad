/**
 * The audio thread's half of the echo guard: the microphone and what is played, side by side on one clock, brought down
 * to the rate at which they are compared (speech has its power below half of it), in blocks.
 * One file without imports, so that whoever bundles or copies the SDK has one file to serve.
 * process() allocates nothing but the message.
 */

const MODEL_RATE = 8000;
/** 16 ms. */
const BLOCK = 128;

/** A low-pass of fourth order: what the lower rate cannot hold is left out. */
class LowPass {
  #sections;

  /** @param {number} cutoff in parts of the rate */
  constructor(cutoff) {
    this.#sections = [0.5412, 1.3066].map((q) => section(cutoff, q));
  }

  /** @param {number} sample */
  take(sample) {
    let x = sample;
    for (const s of this.#sections) {
      const y = s.b * x + s.z1;
      s.z1 = 2 * s.b * x - s.a1 * y + s.z2;
      s.z2 = s.b * x - s.a2 * y;
      x = y;
    }
    return x;
  }
}

/** @param {number} cutoff @param {number} q */
function section(cutoff, q) {
  const w = 2 * Math.PI * cutoff;
  const alpha = Math.sin(w) / (2 * q);
  const a0 = 1 + alpha;
  const b = (1 - Math.cos(w)) / 2 / a0;
  return { b, a1: (-2 * Math.cos(w)) / a0, a2: (1 - alpha) / a0, z1: 0, z2: 0 };
}

export class EchoTap {
  #every;
  #mics;
  #outs;
  #count = 0;
  #filled = 0;
  #sampleRate;
  /** The newest whole one; reused. */
  block = { time: 0, mic: new Float32Array(BLOCK), played: new Float32Array(BLOCK) };

  /** @param {number} sampleRate */
  constructor(sampleRate) {
    this.#sampleRate = sampleRate;
    this.#every = Math.max(1, Math.floor(sampleRate / MODEL_RATE));
    this.#mics = new LowPass(0.42 / this.#every);
    this.#outs = new LowPass(0.42 / this.#every);
  }

  /**
   * @param {Float32Array | undefined} mic undefined: silence
   * @param {Float32Array | undefined} played
   * @param {number} frames
   * @param {number} frame on the context's clock, where they begin
   * @param {(block: EchoTap["block"]) => void} give
   */
  take(mic, played, frames, frame, give) {
    const { block } = this;
    for (let i = 0; i < frames; i += 1) {
      const heard = this.#mics.take(mic?.[i] ?? 0);
      const sound = this.#outs.take(played?.[i] ?? 0);
      this.#count = (this.#count + 1) % this.#every;
      if (this.#count > 0) continue;
      block.mic[this.#filled] = heard;
      block.played[this.#filled] = sound;
      this.#filled = (this.#filled + 1) % BLOCK;
      if (this.#filled > 0) continue;
      block.time = (frame + i + 1) / this.#sampleRate;
      give(block);
    }
  }
}

/** What exists on the audio thread only. @type {any} */
const scope = globalThis;

// Once per context, also where two copies of the SDK share one.
if (typeof scope.registerProcessor === "function" && !scope.plaitEcho) {
  scope.plaitEcho = true;
  scope.registerProcessor(
    "plait-echo",
    class extends scope.AudioWorkletProcessor {
      constructor() {
        super();
        this.tap = new EchoTap(scope.sampleRate);
        this.stopped = false;
        /** @param {EchoTap["block"]} block */
        this.give = (block) => this.port.postMessage(block);
        // Whatever it says, it says to stop.
        this.port.onmessage = () => {
          this.stopped = true;
        };
      }

      /** @param {Float32Array[][]} inputs microphone, what is played @param {Float32Array[][]} outputs */
      process(inputs, [outputs]) {
        // Its output is there to keep it running, and stays silent.
        const frames = outputs?.[0]?.length ?? 128;
        this.tap.take(inputs[0]?.[0], inputs[1]?.[0], frames, scope.currentFrame, this.give);
        return !this.stopped;
      }
    },
  );
}
