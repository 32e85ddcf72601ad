/**
 * Which lines are looked at, in whichever view: one, or a pair. The views of one card share it, so that pointing at a
 * cell marks the points and the lines it stands for. Knows neither views nor vectors.
 */

/** @typedef {{ a: number, b: number | null }} Pointing  b: null, or the same: only one line */

export class Pointed {
  /** @type {Pointing | null} */
  #now = null;
  #onChange;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  get now() {
    return this.#now;
  }

  /** @param {Pointing | null} pointing */
  point(pointing) {
    if (pointing?.a === this.#now?.a && pointing?.b === this.#now?.b) return;
    this.#now = pointing;
    this.#onChange();
  }

  /** Lines. */
  get all() {
    if (!this.#now) return [];
    const { a, b } = this.#now;
    return b === null || b === a ? [a] : [a, b];
  }

  /** @param {number} index */
  has(index) {
    return this.#now !== null && (this.#now.a === index || this.#now.b === index);
  }
}
