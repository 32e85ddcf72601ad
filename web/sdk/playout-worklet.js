/**
 * The audio thread's half of playback: a queue of PCM16 samples, brought to the device's rate by a windowed
 * sinc, without a seam between chunks. Starts when enough is buffered, fades where it must break off, counts
 * where it ran dry, and says at what time which sample was played.
 * One file without imports, so that whoever bundles or copies the SDK has one file to serve.
 * process() allocates nothing: memory grows in push(), when a message arrives.
 */

/** Zero crossings of the sinc on each side. */
const HALF_WIDTH = 24;
/** Kernels per source sample; between two of them it is interpolated linearly (error below −100 dB). */
const PHASES = 512;
const KAISER_BETA = 8.5;
/** The pass band ends here, in parts of the lower Nyquist frequency. */
const ROLL_OFF = 0.94;
const FADE_SECONDS = 0.008;
/** Where samples are missing the last one dies away in this time constant instead of a step. */
const DECAY_SECONDS = 0.002;
/** After each shortage it waits for twice as much, up to this: few long gaps are easier to listen to than many. */
const LONGEST_START_SECONDS = 1;
const REPORT_SECONDS = 0.02;
const INAUDIBLE = 1e-4;
const FIRST_CAPACITY = 2 ** 17;

export class Playout {
  #ratio;
  #sourceRate;
  #startSamples;
  #half;
  #taps;
  #table;
  #ring = new Float32Array(FIRST_CAPACITY);
  /** Source samples written, read, and the fraction between two of them. */
  #written = 0;
  #index = 0;
  #fraction = 0;
  /** How many there will be; null: not known yet. @type {number | null} */
  #total = null;
  #stopping = false;
  #gain = 1;
  #gainStep;
  #decay;
  #last = 0;

  moving = false;
  underruns = 0;
  /** Nothing will be heard any more. */
  finished = false;

  /**
   * @param {number} sourceRate
   * @param {number} deviceRate
   * @param {number} startSeconds what must be there before it starts, or starts again
   */
  constructor(sourceRate, deviceRate, startSeconds) {
    const cutoff = sourceRate === deviceRate ? 1 : ROLL_OFF * Math.min(1, deviceRate / sourceRate);
    this.#sourceRate = sourceRate;
    this.#ratio = sourceRate / deviceRate;
    this.#half = Math.ceil(HALF_WIDTH / cutoff);
    this.#taps = 2 * this.#half;
    this.#table = kernels(this.#half, cutoff);
    this.#startSamples = Math.max(startSeconds * sourceRate, this.#half + 1);
    this.#gainStep = 1 / (FADE_SECONDS * deviceRate);
    this.#decay = Math.exp(-1 / (DECAY_SECONDS * deviceRate));
  }

  /** The source sample that is played next. */
  get position() {
    return this.#total === null ? this.#index : Math.min(this.#index, this.#total);
  }

  /** What must lie ready before it starts, or starts again. */
  get startSamples() {
    return this.#startSamples;
  }

  /** @param {Int16Array} samples */
  push(samples) {
    if (this.#total !== null) return;
    this.#reserve(samples.length);
    const mask = this.#ring.length - 1;
    for (let i = 0; i < samples.length; i += 1) {
      this.#ring[(this.#written + i) & mask] = /** @type {number} */ (samples[i]) / 32_768;
    }
    this.#written += samples.length;
  }

  /** There is no more: plays out, then is finished. */
  end() {
    if (this.#total !== null) return;
    const total = this.#written;
    this.push(new Int16Array(this.#taps)); // what the kernel reads beyond the last sample
    this.#total = total;
  }

  /** Fades out now and drops the rest. */
  stop() {
    this.#stopping = true;
  }

  /** @param {Float32Array} output */
  render(output) {
    for (let i = 0; i < output.length; i += 1) output[i] = this.#next();
    if (!this.moving && Math.abs(this.#last) < INAUDIBLE) {
      this.finished = this.#stopping || this.#index >= (this.#total ?? Number.POSITIVE_INFINITY);
    }
  }

  #next() {
    if (this.moving) this.#checkSupply();
    else if (this.#mayStart()) this.moving = true;
    if (!this.moving) {
      this.#last *= this.#decay;
      return this.#last;
    }
    if (this.#stopping) this.#gain = Math.max(0, this.#gain - this.#gainStep);
    else if (this.#gain < 1) this.#gain = Math.min(1, this.#gain + this.#gainStep);
    if (this.#stopping && this.#gain === 0) this.moving = false;
    this.#last = this.#gain * this.#interpolate();
    const step = this.#fraction + this.#ratio;
    const whole = Math.floor(step);
    this.#index += whole;
    this.#fraction = step - whole;
    return this.#last;
  }

  #mayStart() {
    if (this.#stopping) return false;
    if (this.#total !== null) return this.#index < this.#total;
    return this.#written - this.#index >= this.#startSamples;
  }

  #checkSupply() {
    if (this.#total === null) {
      if (this.#index + this.#half < this.#written) return;
      this.underruns += 1;
      const longest = LONGEST_START_SECONDS * this.#sourceRate;
      this.#startSamples = Math.max(this.#startSamples, Math.min(2 * this.#startSamples, longest));
      this.#gain = 0; // comes back with a fade
    } else if (this.#index < this.#total) return;
    this.moving = false;
  }

  #interpolate() {
    const ring = this.#ring;
    const table = this.#table;
    const taps = this.#taps;
    const mask = ring.length - 1;
    const phase = this.#fraction * PHASES;
    const row = Math.floor(phase);
    const between = phase - row;
    const first = this.#index - this.#half + 1;
    let k = row * taps;
    let sum = 0;
    for (let tap = 0; tap < taps; tap += 1, k += 1) {
      const low = /** @type {number} */ (table[k]);
      const high = /** @type {number} */ (table[k + taps]);
      sum += /** @type {number} */ (ring[(first + tap) & mask]) * (low + between * (high - low));
    }
    return sum;
  }

  /** @param {number} samples */
  #reserve(samples) {
    const oldest = this.#index - this.#taps;
    const needed = this.#written + samples - oldest;
    let capacity = this.#ring.length;
    if (needed <= capacity) return;
    while (capacity < needed) capacity *= 2;
    const ring = new Float32Array(capacity);
    const mask = this.#ring.length - 1;
    for (let at = oldest; at < this.#written; at += 1) {
      ring[at & (capacity - 1)] = /** @type {number} */ (this.#ring[at & mask]);
    }
    this.#ring = ring;
  }
}

/**
 * One row of taps per phase, and one more to interpolate towards; each row sums to one.
 *
 * @param {number} half taps on each side
 * @param {number} cutoff in parts of the source's Nyquist frequency
 */
function kernels(half, cutoff) {
  const taps = 2 * half;
  const table = new Float32Array((PHASES + 1) * taps);
  const row = new Float64Array(taps);
  for (let phase = 0; phase <= PHASES; phase += 1) {
    let sum = 0;
    for (let tap = 0; tap < taps; tap += 1) {
      const distance = tap - half + 1 - phase / PHASES;
      row[tap] = sinc(distance * cutoff) * kaiser(distance / half);
      sum += /** @type {number} */ (row[tap]);
    }
    for (let tap = 0; tap < taps; tap += 1) {
      table[phase * taps + tap] = /** @type {number} */ (row[tap]) / sum;
    }
  }
  return table;
}

/** @param {number} x */
function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** @param {number} x −1…1 over the window */
function kaiser(x) {
  return Math.abs(x) >= 1 ? 0 : bessel(KAISER_BETA * Math.sqrt(1 - x * x)) / bessel(KAISER_BETA);
}

/** Modified Bessel function of order zero, by its series. @param {number} x */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let n = 1; term > sum * 1e-12; n += 1) {
    term *= (x / (2 * n)) ** 2;
    sum += term;
  }
  return sum;
}

/** What exists on the audio thread only. @type {any} */
const scope = globalThis;

// Once per context, also where two copies of the SDK share one.
if (typeof scope.registerProcessor === "function" && !scope.plaitPlayout) {
  scope.plaitPlayout = true;
  scope.registerProcessor(
    "plait-playout",
    class extends scope.AudioWorkletProcessor {
      /** @param {{ processorOptions: { sourceRate: number, startSeconds: number } }} options */
      constructor({ processorOptions: { sourceRate, startSeconds } }) {
        super();
        this.playout = new Playout(sourceRate, scope.sampleRate, startSeconds);
        // Reused: postMessage copies it.
        this.report = {
          time: 0,
          position: 0,
          moving: false,
          underruns: 0,
          startSamples: 0,
          finished: false,
        };
        this.reportedFrame = 0;
        this.port.onmessage = (/** @type {any} */ { data }) => {
          if (data.samples) this.playout.push(data.samples);
          else if (data.end) this.playout.end();
          else this.playout.stop();
        };
      }

      /** @param {unknown} _inputs @param {Float32Array[][]} outputs */
      process(_inputs, outputs) {
        const output = /** @type {Float32Array} */ (outputs[0]?.[0]);
        const { playout, report } = this;
        playout.render(output);
        const frame = scope.currentFrame + output.length;
        const due = frame - this.reportedFrame >= REPORT_SECONDS * scope.sampleRate;
        if (due || playout.moving !== report.moving || playout.finished) {
          this.reportedFrame = frame;
          report.time = frame / scope.sampleRate;
          report.position = playout.position;
          report.moving = playout.moving;
          report.underruns = playout.underruns;
          report.startSamples = playout.startSamples;
          report.finished = playout.finished;
          this.port.postMessage(report);
        }
        return !playout.finished;
      }
    },
  );
}
