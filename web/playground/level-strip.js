/**
 * How loud it was, on a canvas: bars in the stream's colour where somebody talked, in a lighter ink where it was
 * only sound, a line where nothing is yet. While it is recorded the newest is at the right edge once the strip is
 * full, or, where motion is unwanted, a full strip begins anew; afterwards the strip shows all of it. Knows levels
 * and times, not streams.
 */

import { createWaveCanvas } from "./wave-canvas.js";

/** @import { Levels, Talk } from "./levels.js" */

const BAR = 2;
const PITCH = 3;
const SECONDS_PER_BAR = 0.1;
/** Of talk whose loudness is not known. */
const TALK = 0.16;

/**
 * @typedef {object} Sight
 * @property {Levels} levels
 * @property {Talk} talk
 * @property {number} seconds  of audio there is
 * @property {number | null} whole  seconds from edge to edge; null: as recorded, the newest in sight
 * @property {{ start: number, end: number } | null} marked
 */

export class LevelStrip {
  #canvas;
  #context;
  #still = matchMedia("(prefers-reduced-motion: reduce)");

  /** @param {() => void} onResize  it must be drawn anew */
  constructor(onResize) {
    const { element, canvas, context } = createWaveCanvas(onResize);
    this.element = element;
    this.#canvas = canvas;
    this.#context = context;
  }

  /** @param {Sight} sight */
  draw({ levels, talk, seconds, whole, marked }) {
    const { width, height } = this.#canvas;
    if (width === 0 || height === 0) return;
    const scale = devicePixelRatio;
    const pitch = Math.max(1, Math.round(PITCH * scale));
    const bars = Math.ceil(width / pitch);
    const perBar = whole === null ? SECONDS_PER_BAR : Math.max(SECONDS_PER_BAR, whole / bars);
    const first = whole === null ? firstBar(seconds, bars, this.#still.matches) : 0;
    const context = this.#context;
    const colours = this.#colours();
    context.clearRect(0, 0, width, height);
    if (marked) {
      const from = (marked.start / perBar - first) * pitch;
      const to = (marked.end / perBar - first) * pitch;
      context.fillStyle = colours.marked;
      context.fillRect(Math.round(from), 0, Math.max(pitch, Math.round(to - from)), height);
    }
    const middle = height / 2;
    const bar = Math.max(1, Math.round(BAR * scale));
    for (let index = 0; index < bars; index += 1) {
      const from = (first + index) * perBar;
      const known = from < seconds;
      const talking = known && talk.between(from, from + perBar);
      // The ear's scale, not the amplitude's: quiet speech is still speech.
      const loud = known ? Math.sqrt(levels.between(from, from + perBar)) : 0;
      const half = Math.max(scale * 0.5, (loud || (talking ? TALK : 0)) * (middle - 2 * scale));
      context.fillStyle = talking ? colours.talk : known ? colours.sound : colours.line;
      const top = Math.round(middle - half);
      context.fillRect(index * pitch, top, bar, Math.max(1, Math.round(2 * half)));
    }
  }

  #colours() {
    const style = getComputedStyle(this.#canvas);
    return {
      talk: style.getPropertyValue("--wave-heard"),
      sound: style.getPropertyValue("--wave-ready"),
      line: style.getPropertyValue("--wave-line"),
      marked: style.getPropertyValue("--wave-marked"),
    };
  }
}

/**
 * What stands at the left edge of a strip of so many bars: whole bars, so that nothing trembles.
 * @param {number} seconds @param {number} bars @param {boolean} still
 */
export function firstBar(seconds, bars, still) {
  const known = Math.ceil(seconds / SECONDS_PER_BAR);
  if (still) return Math.floor(Math.max(0, known - 1) / bars) * bars;
  return Math.max(0, known - bars);
}
