/**
 * The audio thread's half of capture: what a MediaStream gives, in blocks of the declared encoding, at the context's own
 * rate, and how loud each is. Silence where the source gives nothing, so times stay those of the clock.
 * One file without imports, so that whoever bundles or copies the SDK has one file to serve.
 * process() allocates one array per block, which is handed over.
 */

const BLOCK_SECONDS = 0.03;

export class Capture {
  #channels;
  #float;
  #length;
  #block;
  #filled = 0;
  #squares = 0;
  #peak = 0;

  /**
   * @param {number} sampleRate
   * @param {number} channels 1 or 2: interleaved
   * @param {boolean} float pcm_f32le, else pcm_s16le
   */
  constructor(sampleRate, channels, float) {
    this.#channels = channels;
    this.#float = float;
    this.#length = Math.round(BLOCK_SECONDS * sampleRate) * channels;
    this.#block = this.#empty();
  }

  /**
   * @param {Float32Array[]} planes one per channel; none: silence
   * @param {number} frames
   * @param {(block: ReturnType<Capture["flush"]>) => void} give
   */
  take(planes, frames, give) {
    const channels = this.#channels;
    for (let i = 0; i < frames; i += 1) {
      for (let channel = 0; channel < channels; channel += 1) {
        const sample = planes[channel]?.[i] ?? 0;
        const size = Math.abs(sample);
        if (size > this.#peak) this.#peak = size;
        this.#squares += sample * sample;
        this.#block[this.#filled] = this.#float ? sample : int16(sample);
        this.#filled += 1;
      }
      if (this.#filled === this.#length) give(this.flush());
    }
  }

  /** What there is of the block, and a new one. */
  flush() {
    const samples = this.#block.subarray(0, this.#filled);
    const rms = this.#filled === 0 ? 0 : Math.sqrt(this.#squares / this.#filled);
    const block = { samples, rms, peak: this.#peak };
    this.#block = this.#empty();
    this.#filled = this.#squares = this.#peak = 0;
    return block;
  }

  #empty() {
    return this.#float ? new Float32Array(this.#length) : new Int16Array(this.#length);
  }
}

/** @param {number} sample */
function int16(sample) {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)));
}

/** What exists on the audio thread only. @type {any} */
const scope = globalThis;

// Once per context, also where two copies of the SDK share one.
if (typeof scope.registerProcessor === "function" && !scope.plaitCapture) {
  scope.plaitCapture = true;
  scope.registerProcessor(
    "plait-capture",
    class extends scope.AudioWorkletProcessor {
      /** @param {{ processorOptions: { channels: number, float: boolean } }} options */
      constructor({ processorOptions: { channels, float } }) {
        super();
        this.capture = new Capture(scope.sampleRate, channels, float);
        this.ended = false;
        /** @param {ReturnType<Capture["flush"]>} block */
        this.give = (block) => {
          const time = scope.currentFrame / scope.sampleRate;
          this.port.postMessage({ ...block, time, ended: this.ended }, [block.samples.buffer]);
        };
        // Whatever it says, it says to stop: the last block goes out, short as it is.
        this.port.onmessage = () => {
          if (this.ended) return;
          this.ended = true;
          this.give(this.capture.flush());
        };
      }

      /** @param {Float32Array[][]} inputs @param {Float32Array[][]} outputs */
      process([planes = []], [outputs]) {
        // Its output is there to keep it running, and stays silent.
        const frames = outputs?.[0]?.length ?? 128;
        if (!this.ended) this.capture.take(planes, frames, this.give);
        return !this.ended;
      }
    },
  );
}
