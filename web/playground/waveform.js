/**
 * The waveform of one speech on a canvas: what was heard in the stream's colour, what is ready in a lighter ink,
 * what is still to come as a line, and the playhead. Drawn when asked, at the device's pixels, in the theme's
 * colours. Knows peaks and times, not streams.
 */

import { createWaveCanvas } from "./wave-canvas.js";

/** @import { Peaks } from "./peaks.js" */

const BAR = 2;
const GAP = 1;
const SMALLEST = 1;
/** The width in time follows in about this time when the length turns out to be another. */
const SETTLE_MS = 120;

export class Waveform {
  #canvas;
  #context;
  #still = matchMedia("(prefers-reduced-motion: reduce)");
  /** Seconds from edge to edge, as drawn. */
  #span = 0;
  #drawnAt = 0;

  /** @param {() => void} onResize  it must be drawn anew */
  constructor(onResize) {
    const { element, canvas, context } = createWaveCanvas(onResize);
    this.element = element;
    this.#canvas = canvas;
    this.#context = context;
  }

  /** Another speech: it takes its width at once. */
  reset() {
    this.#span = 0;
  }

  /**
   * @param {Peaks} peaks
   * @param {number} span  seconds from edge to edge
   * @param {number} heard  seconds
   * @returns {boolean} true while it still moves by itself
   */
  draw(peaks, span, heard) {
    const moving = this.#follow(span);
    const { width, height } = this.#canvas;
    if (width === 0 || height === 0) return false;
    const scale = devicePixelRatio;
    const context = this.#context;
    const style = getComputedStyle(this.#canvas);
    const colours = {
      heard: style.getPropertyValue("--wave-heard"),
      ready: style.getPropertyValue("--wave-ready"),
      line: style.getPropertyValue("--wave-line"),
    };
    context.clearRect(0, 0, width, height);
    const step = Math.max(1, Math.round((BAR + GAP) * scale));
    const bar = Math.max(1, Math.round(BAR * scale));
    const perPixel = this.#span / width;
    const middle = height / 2;
    const head = Math.min(width, heard / perPixel);
    for (let x = 0; x < width; x += step) {
      const from = x * perPixel;
      const known = from < peaks.seconds;
      // The ear's scale, not the amplitude's: quiet speech is still speech.
      const loud = known ? Math.sqrt(peaks.between(from, from + step * perPixel)) : 0;
      const half = Math.max(SMALLEST * scale * 0.5, loud * (middle - 2 * scale));
      context.fillStyle = known ? (x < head ? colours.heard : colours.ready) : colours.line;
      context.fillRect(x, Math.round(middle - half), bar, Math.max(1, Math.round(2 * half)));
    }
    if (heard > 0 && heard < peaks.seconds) {
      context.fillStyle = colours.heard;
      context.fillRect(Math.round(head), 0, Math.max(1, Math.round(1.5 * scale)), height);
    }
    return moving;
  }

  /** @param {number} span */
  #follow(span) {
    const now = performance.now();
    const elapsed = now - this.#drawnAt;
    this.#drawnAt = now;
    const jump = this.#span === 0 || this.#still.matches || elapsed > 1_000;
    this.#span += (span - this.#span) * (jump ? 1 : Math.min(1, elapsed / SETTLE_MS));
    if (Math.abs(this.#span - span) < 0.002 * span) this.#span = span;
    return this.#span !== span;
  }
}
