/**
 * The colours of a chart on a canvas, as its style sheet has them. Asking for them makes the browser work out all
 * styles, so they are asked for once, until something makes them others.
 */

const NAMES = /** @type {const} */ ({
  low: "--heat-low",
  high: "--heat-high",
  none: "--heat-none",
  text: "--chart-text",
  ink: "--chart-ink",
  halo: "--chart-halo",
});

/** @typedef {Record<keyof typeof NAMES | "family", string>} Colours  family: of its letters */

export class ChartColours {
  #element;
  /** @type {Colours | null} */
  #known = null;

  /** @param {Element} element */
  constructor(element) {
    this.#element = element;
  }

  forget() {
    this.#known = null;
  }

  /** @returns {Colours} */
  get now() {
    this.#known ??= this.#read();
    return this.#known;
  }

  #read() {
    const style = getComputedStyle(this.#element);
    const found = Object.entries(NAMES).map(([key, name]) => [key, style.getPropertyValue(name)]);
    return /** @type {Colours} */ ({ ...Object.fromEntries(found), family: style.fontFamily });
  }
}
