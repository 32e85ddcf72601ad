/**
 * The audio thread's half of the echo guard: how loud the microphone is, how loud what is played, and how much of the
 * first the second explains, all on one clock.
 * One file without imports, so that whoever bundles or copies the SDK has one file to serve.
 * process() allocates nothing.
 */

const BLOCK_SECONDS = 0.016;
/** From the loudspeaker's node into the microphone's: buffers, air, and a wireless loudspeaker. */
const REACH_SECONDS = 0.4;

export class EchoModel {
  #length;
  #levels;
  #at = 0;
  #filled = 0;
  #mic = 0;
  #out = 0;
  #gain = 1;
  report = { time: 0, level: 0, played: 0, explained: 0 };

  /** @param {number} sampleRate */
  constructor(sampleRate) {
    this.#length = Math.round(BLOCK_SECONDS * sampleRate);
    this.#levels = new Float32Array(Math.ceil(REACH_SECONDS / BLOCK_SECONDS));
  }

  /**
   * @param {Float32Array | undefined} mic undefined: silence
   * @param {Float32Array | undefined} played
   * @param {number} frames
   * @param {number} frame of the context's clock, where they begin
   * @param {number} sampleRate
   * @param {(report: EchoModel["report"]) => void} give
   */
  take(mic, played, frames, frame, sampleRate, give) {
    for (let i = 0; i < frames; i += 1) {
      const a = mic?.[i] ?? 0;
      const b = played?.[i] ?? 0;
      this.#mic += a * a;
      this.#out += b * b;
      this.#filled += 1;
      if (this.#filled < this.#length) continue;
      this.#close((frame + i + 1) / sampleRate);
      give(this.report);
    }
  }

  /** @param {number} time */
  #close(time) {
    const level = Math.sqrt(this.#mic / this.#length);
    const played = Math.sqrt(this.#out / this.#length);
    this.#levels[this.#at] = played;
    this.#at = (this.#at + 1) % this.#levels.length;
    this.#filled = this.#mic = this.#out = 0;
    let loudest = 0;
    for (const each of this.#levels) loudest = Math.max(loudest, each);
    this.report.time = time;
    this.report.level = level;
    this.report.played = played;
    this.report.explained = this.#gain * loudest;
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
        this.model = new EchoModel(scope.sampleRate);
        this.stopped = false;
        /** @param {EchoModel["report"]} report */
        this.give = (report) => this.port.postMessage(report);
        // Whatever it says, it says to stop.
        this.port.onmessage = () => {
          this.stopped = true;
        };
      }

      /** @param {Float32Array[][]} inputs microphone, what is played @param {Float32Array[][]} outputs */
      process(inputs, [outputs]) {
        // Its output is there to keep it running, and stays silent.
        const frames = outputs?.[0]?.length ?? 128;
        const { currentFrame, sampleRate } = scope;
        this.model.take(
          inputs[0]?.[0],
          inputs[1]?.[0],
          frames,
          currentFrame,
          sampleRate,
          this.give,
        );
        return !this.stopped;
      }
    },
  );
}
