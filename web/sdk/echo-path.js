/**
 * The way from loudspeaker to microphone, as an adaptive filter learns it (normalised least mean squares of partitioned
 * blocks in the frequency domain), and what of the microphone it does not explain. Parts of the way that have something
 * to say learn faster. Pure arithmetic: does not know who talks. Allocates nothing after its construction.
 */

import { Fourier, SIZE } from "./echo-fourier.js";

/** Samples of a block. */
export const BLOCK = SIZE / 2;
const BINS = BLOCK + 1;
/** So many blocks, 0.48 s: buffers, air, a room's tail, and a wireless loudspeaker. */
const PARTS = 30;
/** Of what is wrong so much is put right at once. */
const STEP = 0.7;
/** Of the loudest part's share, at least. */
const LEAST_SHARE = 0.1;
/** Steps get smaller where much is unexplained, as while two talk. */
const CAUTION = 0.5;
const TINY = 1e-9;

export class EchoPath {
  #fourier = new Fourier();
  /** Spectra of what was played, newest at `#newest`, and of the way. */
  #playedRe = planes();
  #playedIm = planes();
  #wayRe = planes();
  #wayIm = planes();
  #newest = 0;
  #constrained = 0;
  /** Of the steps. */
  #shares = new Float64Array(PARTS).fill(1 / PARTS);
  #power = new Float64Array(BINS);
  #unexplained = new Float64Array(BINS);
  #input = new Float64Array(SIZE);
  #re = new Float64Array(SIZE);
  #im = new Float64Array(SIZE);
  /** Of the newest block: what was to be heard, and what else was. */
  echo = new Float64Array(BLOCK);
  error = new Float64Array(BLOCK);

  /**
   * @param {Float32Array} played the next block
   * @param {Float32Array} mic what was heard meanwhile
   */
  explain(played, mic) {
    this.#take(played);
    this.#predict();
    for (let i = 0; i < BLOCK; i += 1) {
      this.echo[i] = this.#re[BLOCK + i] / SIZE;
      this.error[i] = mic[i] - this.echo[i];
    }
  }

  /** From the block explained last. @param {number} trust in that nobody talked */
  learn(trust) {
    const [re, im] = [this.#re, this.#im];
    re.fill(0, 0, BLOCK);
    re.set(this.error, BLOCK);
    im.fill(0);
    this.#fourier.transform(re, im, 1);
    for (let bin = 0; bin < BINS; bin += 1) {
      const [r, m] = [re[bin], im[bin]];
      const unexplained = 0.8 * this.#unexplained[bin] + 0.2 * (r * r + m * m);
      this.#unexplained[bin] = unexplained;
      const step = (trust * STEP) / (this.#power[bin] + CAUTION * unexplained + TINY);
      re[bin] = r * step;
      im[bin] = m * step;
    }
    this.#adapt();
    this.#constrain();
    this.#share();
  }

  /** @param {Float32Array} played */
  #take(played) {
    this.#input.copyWithin(0, BLOCK);
    this.#input.set(played, BLOCK);
    this.#newest = (this.#newest + PARTS - 1) % PARTS;
    this.#re.set(this.#input);
    this.#im.fill(0);
    this.#fourier.transform(this.#re, this.#im, 1);
    const [re, im] = [this.#playedRe[this.#newest], this.#playedIm[this.#newest]];
    for (let bin = 0; bin < BINS; bin += 1) {
      const [r, m] = [this.#re[bin], this.#im[bin]];
      if (re) re[bin] = r;
      if (im) im[bin] = m;
    }
  }

  /** What should be heard now, into #re. */
  #predict() {
    const [re, im] = [this.#re, this.#im];
    const power = this.#power;
    re.fill(0);
    im.fill(0);
    power.fill(0);
    for (let part = 0; part < PARTS; part += 1) {
      const at = (this.#newest + part) % PARTS;
      const share = this.#shares[part];
      const [xr, xi] = [this.#playedRe[at], this.#playedIm[at]];
      const [wr, wi] = [this.#wayRe[part], this.#wayIm[part]];
      for (let bin = 0; bin < BINS; bin += 1) {
        const [xre, xim] = [xr[bin], xi[bin]];
        re[bin] += xre * wr[bin] - xim * wi[bin];
        im[bin] += xre * wi[bin] + xim * wr[bin];
        power[bin] += share * (xre * xre + xim * xim);
      }
    }
    this.#mirror();
    this.#fourier.transform(re, im, -1);
  }

  /** The errors' spectrum, each line times its step, is in #re and #im. */
  #adapt() {
    const [re, im] = [this.#re, this.#im];
    for (let part = 0; part < PARTS; part += 1) {
      const at = (this.#newest + part) % PARTS;
      const share = this.#shares[part];
      const [xr, xi] = [this.#playedRe[at], this.#playedIm[at]];
      const [wr, wi] = [this.#wayRe[part], this.#wayIm[part]];
      for (let bin = 0; bin < BINS; bin += 1) {
        wr[bin] += share * (xr[bin] * re[bin] + xi[bin] * im[bin]);
        wi[bin] += share * (xr[bin] * im[bin] - xi[bin] * re[bin]);
      }
    }
  }

  /** Parts that have something to say learn faster. */
  #share() {
    let most = 0;
    for (let part = 0; part < PARTS; part += 1) {
      let sum = 0;
      const [wr, wi] = [this.#wayRe[part], this.#wayIm[part]];
      for (let bin = 0; bin < BINS; bin += 1) sum += wr[bin] * wr[bin] + wi[bin] * wi[bin];
      this.#shares[part] = Math.sqrt(sum);
      most = Math.max(most, this.#shares[part]);
    }
    let total = 0;
    for (let part = 0; part < PARTS; part += 1) {
      this.#shares[part] += LEAST_SHARE * most + TINY;
      total += this.#shares[part];
    }
    for (let part = 0; part < PARTS; part += 1) this.#shares[part] /= total;
  }

  /** A way of one part has BLOCK samples, not SIZE: one part after the other is put right. */
  #constrain() {
    const part = this.#constrained;
    this.#constrained = (part + 1) % PARTS;
    const [re, im] = [this.#re, this.#im];
    re.fill(0);
    im.fill(0);
    re.set(this.#wayRe[part]);
    im.set(this.#wayIm[part]);
    this.#mirror();
    this.#fourier.transform(re, im, -1);
    for (let i = 0; i < BLOCK; i += 1) re[i] /= SIZE;
    re.fill(0, BLOCK);
    im.fill(0);
    this.#fourier.transform(re, im, 1);
    this.#wayRe[part].set(re.subarray(0, BINS));
    this.#wayIm[part].set(im.subarray(0, BINS));
  }

  /** Real signals: the upper half of a spectrum is the lower one's mirror. */
  #mirror() {
    for (let bin = 1; bin < BLOCK; bin += 1) {
      this.#re[SIZE - bin] = this.#re[bin];
      this.#im[SIZE - bin] = -this.#im[bin];
    }
  }
}

function planes() {
  return Array.from({ length: PARTS }, () => new Float64Array(BINS));
}
