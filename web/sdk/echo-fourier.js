/**
 * The Fourier transform of the echo filter's blocks: of one size, in place. Arrays are indexed within their bounds
 * throughout.
 */

export const SIZE = 256;

export class Fourier {
  #cos = new Float64Array(SIZE / 2);
  #sin = new Float64Array(SIZE / 2);
  #swap = new Uint16Array(SIZE);

  constructor() {
    const bits = Math.log2(SIZE);
    for (let i = 0; i < SIZE / 2; i += 1) {
      this.#cos[i] = Math.cos((2 * Math.PI * i) / SIZE);
      this.#sin[i] = Math.sin((2 * Math.PI * i) / SIZE);
    }
    for (let i = 0; i < SIZE; i += 1) {
      let at = 0;
      for (let bit = 0; bit < bits; bit += 1) at |= ((i >> bit) & 1) << (bits - 1 - bit);
      this.#swap[i] = at;
    }
  }

  /**
   * @param {Float64Array} re
   * @param {Float64Array} im
   * @param {1 | -1} sign −1: inverse, not scaled
   */
  transform(re, im, sign) {
    for (let i = 0; i < SIZE; i += 1) {
      const j = this.#swap[i];
      if (j <= i) continue;
      const a = re[i];
      const b = im[i];
      re[i] = re[j];
      im[i] = im[j];
      re[j] = a;
      im[j] = b;
    }
    for (let half = 1; half < SIZE; half *= 2) {
      const step = SIZE / (2 * half);
      for (let first = 0; first < SIZE; first += 2 * half) {
        for (let k = 0; k < half; k += 1) {
          const c = this.#cos[k * step];
          const s = -sign * this.#sin[k * step];
          const i = first + k;
          const j = i + half;
          const r = re[j] * c - im[j] * s;
          const m = re[j] * s + im[j] * c;
          re[j] = re[i] - r;
          im[j] = im[i] - m;
          re[i] = re[i] + r;
          im[i] = im[i] + m;
        }
      }
    }
  }
}
