/**
 * How alike each line is to each other, as a square of cells: the darker, the more alike. Drawn at the device's pixels
 * in the theme's colours. One Tab stop; arrows go from pair to pair. Knows similarities and places, not vectors.
 */

import { ChartColours } from "./chart-colours.js";
import { h } from "./dom.js";
import { onThemeChange } from "./theme-watch.js";
import { createWaveCanvas } from "./wave-canvas.js";

/** @import { Pointed } from "./pointed.js" */
/** @import { Similarity } from "./similarity.js" */

/** Numbers stand at the edges where a row is this high. */
const NUMBERED = 11;
const GUTTER = 20;
/** Cells are told apart by a line where they are this large. */
const LINED = 6;

/** By key, from the pair (a, b). @type {Record<string, [number, number]>} */
const STEPS = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
};

export class HeatMap {
  #canvas;
  #context;
  #colours;
  #pointed;
  /** @type {Similarity | null} */
  #similarity = null;
  /** Rows it has room for. */
  #rows = 0;
  #drawn = "";

  /** @param {Pointed} pointed */
  constructor(pointed) {
    this.#pointed = pointed;
    const { element, canvas, context } = createWaveCanvas(() => this.draw(), "heat");
    this.#canvas = canvas;
    this.#context = context;
    this.#colours = new ChartColours(canvas);
    onThemeChange(() => this.recolour());
    this.element = h(
      "div",
      {
        class: "chart-box square",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "heat map",
        "aria-label": "Similarity of every line to every other. Arrow keys go from pair to pair.",
        "data-testid": "heat-map",
        onpointermove: (/** @type {PointerEvent} */ event) => this.#hover(event),
        onpointerleave: () => this.#pointed.point(null),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
        onfocus: () => this.#focused(),
        onblur: () => this.#pointed.point(null),
      },
      element,
    );
  }

  /** @param {Similarity} similarity @param {number} rows  there will be so many */
  show(similarity, rows) {
    const shown = Math.min(rows, similarity.most);
    const key = `${similarity.count}/${shown}`;
    if (similarity === this.#similarity && key === this.#drawn) return;
    this.#drawn = key;
    this.#similarity = similarity;
    this.#rows = shown;
    this.element.dataset.rows = String(similarity.count);
    this.draw();
  }

  /** The colours of the page, or of the stream, are others. */
  recolour() {
    this.#colours.forget();
    this.draw();
  }

  draw() {
    const { width, height } = this.#canvas;
    const similarity = this.#similarity;
    if (width === 0 || height === 0 || !similarity) return;
    const { cell, gutter } = this.#place();
    const colours = this.#colours.now;
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    context.fillStyle = colours.none;
    context.fillRect(gutter, gutter, cell * this.#rows, cell * this.#rows);
    this.#drawCells(similarity, colours);
    if (gutter > 0) this.#drawNumbers(colours);
    this.#drawPointed(colours);
  }

  /** Pixels of the device. */
  #place() {
    const scale = devicePixelRatio;
    const { width, height } = this.#canvas;
    const side = Math.min(width, height);
    const rows = Math.max(1, this.#rows);
    const gutter = (side - GUTTER * scale) / rows >= NUMBERED * scale ? GUTTER * scale : 0;
    return { cell: (side - gutter) / rows, gutter, scale };
  }

  /** @param {Similarity} similarity @param {{ low: string, high: string }} colours */
  #drawCells(similarity, { low, high }) {
    const { cell, gutter, scale } = this.#place();
    const context = this.#context;
    const line = cell >= LINED * scale ? Math.max(1, Math.round(scale)) : 0;
    const edge = (/** @type {number} */ index) => Math.round(gutter + index * cell);
    for (let a = 0; a < similarity.count; a += 1) {
      for (let b = 0; b < similarity.count; b += 1) {
        const value = similarity.of(a, b);
        if (Number.isNaN(value)) continue;
        const [x, y] = [edge(b), edge(a)];
        const box = /** @type {const} */ ([x, y, edge(b + 1) - x - line, edge(a + 1) - y - line]);
        context.globalAlpha = 1;
        context.fillStyle = low;
        context.fillRect(...box);
        context.globalAlpha = Math.min(1, Math.max(0, value));
        context.fillStyle = high;
        context.fillRect(...box);
      }
    }
    context.globalAlpha = 1;
  }

  /** @param {{ text: string, ink: string }} colours */
  #drawNumbers({ text, ink }) {
    const { cell, gutter, scale } = this.#place();
    const context = this.#context;
    context.font = `${11 * scale}px ${this.#colours.now.family}`;
    context.textBaseline = "middle";
    for (let index = 0; index < this.#rows; index += 1) {
      const middle = gutter + (index + 0.5) * cell;
      context.fillStyle = this.#pointed.has(index) ? ink : text;
      context.textAlign = "right";
      context.fillText(String(index + 1), gutter - 5 * scale, middle);
      context.textAlign = "center";
      context.fillText(String(index + 1), middle, gutter / 2);
    }
  }

  /** @param {{ ink: string }} colours */
  #drawPointed({ ink }) {
    const { now } = this.#pointed;
    if (!now) return;
    const { cell, gutter, scale } = this.#place();
    const context = this.#context;
    const side = cell * this.#rows;
    const line = Math.max(1, Math.round(1.5 * scale));
    context.strokeStyle = ink;
    context.lineWidth = line;
    if (now.a >= this.#rows) return;
    if (now.b === null) {
      context.strokeRect(gutter, gutter + now.a * cell, side - line, cell - line / 2);
    } else if (now.b < this.#rows) {
      context.strokeRect(
        gutter + now.b * cell,
        gutter + now.a * cell,
        cell - line / 2,
        cell - line / 2,
      );
    }
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const { cell, gutter, scale } = this.#place();
    const b = Math.floor(((event.clientX - left) * scale - gutter) / cell);
    const a = Math.floor(((event.clientY - top) * scale - gutter) / cell);
    const inside = a >= 0 && b >= 0 && a < this.#known && b < this.#known;
    this.#pointed.point(inside ? { a, b } : null);
  }

  get #known() {
    return this.#similarity?.count ?? 0;
  }

  #focused() {
    if (this.#known === 0) return;
    this.#pointed.point(this.#pointed.now ?? { a: 0, b: Math.min(1, this.#known - 1) });
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = STEPS[event.key];
    if (!step || this.#known === 0) return;
    event.preventDefault();
    const { a, b } = this.#pointed.now ?? { a: 0, b: 0 };
    const within = (/** @type {number} */ index) => Math.min(this.#known - 1, Math.max(0, index));
    this.#pointed.point({ a: within(a + step[0]), b: within((b ?? a) + step[1]) });
  }
}
