/**
 * Lines as points on a plane: what is near in meaning lies near. Points move little while more lines come; the one
 * looked at is joined to those it is most alike. Drawn at the device's pixels in the theme's colours. One Tab stop;
 * arrows go from line to line. Knows vectors and places, not streams.
 */

import { ChartColours } from "./chart-colours.js";
import { h } from "./dom.js";
import { inPieces } from "./pieces.js";
import { layOut, pointOf } from "./projection.js";
import { placeLabels } from "./scatter-labels.js";
import { nearest } from "./similarity.js";
import { onThemeChange } from "./theme-watch.js";
import { createWaveCanvas } from "./wave-canvas.js";

/** @import { Pointed } from "./pointed.js" */
/** @import { Place, Plane } from "./projection.js" */
/** @import { Vector } from "./similarity.js" */

/** More would be a cloud, and take the page's time. */
export const MAX_POINTS = 2_000;
const MARGIN = 22;
const REACH = 24;
/** So many have their line beside them, where there is room. */
const LABELLED = 24;
const NEIGHBOURS = 3;
/** So many are drawn as one likes it; more, as fast as one can. */
const CROWD = 200;

export class Scatter {
  #canvas;
  #context;
  #colours;
  #pointed;
  /** @type {Vector[]} */
  #vectors = [];
  /** @type {string[]} */
  #lines = [];
  /** @type {Plane | null} */
  #plane = null;
  /** How many lines the plane was made from. */
  #planned = 0;
  #planning = false;
  #all = false;
  /** By line, on the plane. @type {(Place | null)[]} */
  #flat = [];
  /** By line, in pixels of the device; null: it has no place. @type {({ x: number, y: number } | null)[]} */
  #points = [];

  /** @param {Pointed} pointed */
  constructor(pointed) {
    this.#pointed = pointed;
    const { element, canvas, context } = createWaveCanvas(() => this.draw(), "plane");
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
        "aria-roledescription": "scatter plot",
        "aria-label":
          "Every line as a point; what is alike lies near. Arrow keys go from line to line.",
        "data-testid": "scatter",
        onpointermove: (/** @type {PointerEvent} */ event) => this.#hover(event),
        onpointerleave: () => this.#pointed.point(null),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
        onfocus: () => this.#focused(),
        onblur: () => this.#pointed.point(null),
      },
      element,
    );
  }

  /** Another batch. @param {string[]} lines */
  begin(lines) {
    this.#lines = lines;
    this.#vectors = [];
    this.#all = false;
    this.#plane = null;
    this.#planned = 0;
    this.#flat = [];
    this.element.dataset.points = "0";
    this.draw();
  }

  /** @param {Vector[]} vectors  those known before, and more @param {boolean} all  no more will come */
  show(vectors, all) {
    this.#vectors = vectors;
    this.#all = all;
    const known = Math.min(vectors.length, MAX_POINTS);
    // The plane is made anew when there is twice as much to tell apart, and once more at the end.
    const due = known >= Math.max(3, this.#planned * 2) || (all && known > this.#planned);
    if (due && !this.#planning) void this.#plan(vectors, known);
    if (!this.#plane || known === this.#flat.length) return;
    for (let index = this.#flat.length; index < known; index += 1) {
      const vector = vectors[index];
      this.#flat.push(vector ? pointOf(this.#plane, vector) : null);
    }
    this.draw();
  }

  /** @param {Vector[]} vectors @param {number} known */
  async #plan(vectors, known) {
    this.#planning = true;
    this.#planned = known;
    const wanted = () => vectors === this.#vectors;
    const made = await inPieces(layOut(vectors.slice(0, known), this.#plane), wanted);
    this.#planning = false;
    if (wanted() && made) {
      this.#plane = made.plane;
      this.#flat = made.flat;
      this.draw();
    }
    this.show(this.#vectors, this.#all); // what came meanwhile
  }

  /** The colours of the page, or of the stream, are others. */
  recolour() {
    this.#colours.forget();
    this.draw();
  }

  draw() {
    const { width, height } = this.#canvas;
    if (width === 0 || height === 0) return;
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    this.#points = this.#place(width, height);
    this.element.dataset.points = String(this.#points.filter((point) => point).length);
    const colours = this.#colours.now;
    const scale = devicePixelRatio;
    this.#drawNeighbours(colours, scale);
    const radius = this.#points.length > CROWD ? 2 : this.#points.length > LABELLED ? 3 : 4;
    this.#drawPoints(colours, radius * scale);
    this.#drawLabels(colours, scale, radius);
  }

  /** @param {{ high: string, ink: string }} colours @param {number} radius */
  #drawPoints({ high, ink }, radius) {
    const context = this.#context;
    context.fillStyle = high;
    context.globalAlpha = this.#points.length > CROWD ? 0.7 : 1;
    if (this.#points.length > CROWD) {
      for (const at of this.#points)
        if (at) context.fillRect(at.x - radius, at.y - radius, 2 * radius, 2 * radius);
    } else {
      for (const at of this.#points) if (at) this.#dot(at, radius);
    }
    context.globalAlpha = 1;
    context.fillStyle = ink;
    for (const index of this.#pointed.all) {
      const at = this.#points[index];
      if (at) this.#dot(at, radius + 1.5 * devicePixelRatio);
    }
  }

  /** @param {{ x: number, y: number }} at @param {number} radius */
  #dot({ x, y }, radius) {
    this.#context.beginPath();
    this.#context.arc(x, y, radius, 0, 2 * Math.PI);
    this.#context.fill();
  }

  /** Where each line lies, in pixels of the device. @param {number} width @param {number} height */
  #place(width, height) {
    const known = this.#flat.filter((place) => place !== null);
    const span = (/** @type {0 | 1} */ axis) => {
      const values = known.map((place) => place[axis]);
      return { low: Math.min(...values), high: Math.max(...values) };
    };
    const [horizontal, vertical] = [span(0), span(1)];
    const margin = MARGIN * devicePixelRatio;
    // One measure for both directions: a distance is a distance whichever way it goes.
    const unit = Math.min(
      (width - 2 * margin) / (horizontal.high - horizontal.low || 1),
      (height - 2 * margin) / (vertical.high - vertical.low || 1),
    );
    return this.#flat.map(
      (place) =>
        place && {
          x: width / 2 + (place[0] - (horizontal.low + horizontal.high) / 2) * unit,
          y: height / 2 - (place[1] - (vertical.low + vertical.high) / 2) * unit,
        },
    );
  }

  /** @param {{ ink: string }} colours @param {number} scale */
  #drawNeighbours({ ink }, scale) {
    const from = this.#pointed.now;
    const start = from && this.#points[from.a];
    if (!from || !start) return;
    const context = this.#context;
    context.strokeStyle = ink;
    context.lineWidth = 1.5 * scale;
    const ends =
      from.b === null || from.b === from.a
        ? nearest(this.#vectors.slice(0, MAX_POINTS), from.a, NEIGHBOURS)
        : [{ index: from.b, cosine: 1 }];
    for (const { index, cosine } of ends) {
      const end = this.#points[index];
      if (!end) continue;
      context.globalAlpha = Math.max(0.15, cosine);
      context.beginPath();
      context.moveTo(start.x, start.y);
      context.lineTo(end.x, end.y);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** @param {{ text: string, ink: string, halo: string }} colours @param {number} scale @param {number} radius */
  #drawLabels({ text, ink, halo }, scale, radius) {
    const known = this.#points.filter((point) => point).length;
    const wanted = [...this.#points.entries()]
      .filter(([index]) => known <= LABELLED || this.#pointed.has(index))
      .sort(([a], [b]) => Number(this.#pointed.has(b)) - Number(this.#pointed.has(a)));
    if (wanted.length === 0) return;
    const context = this.#context;
    context.font = `${11 * scale}px ${this.#colours.now.family}`;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const labels = placeLabels(
      wanted.map(([index, point]) => ({ text: this.#lines[index] ?? "", index, point })),
      {
        width: this.#canvas.width,
        height: this.#canvas.height,
        gap: (radius + 4) * scale,
        line: 14 * scale,
        measure: (words) => context.measureText(words).width,
        taken: this.#points.filter((point) => point !== null),
      },
    );
    for (const { x, y, text: words, index } of labels) {
      context.strokeStyle = halo;
      context.lineWidth = 3 * scale;
      context.strokeText(words, x, y);
      context.fillStyle = this.#pointed.has(index) ? ink : text;
      context.fillText(words, x, y);
    }
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const scale = devicePixelRatio;
    const [x, y] = [(event.clientX - left) * scale, (event.clientY - top) * scale];
    let closest = -1;
    let shortest = REACH * scale;
    for (const [index, point] of this.#points.entries()) {
      const distance = point ? Math.hypot(point.x - x, point.y - y) : Number.POSITIVE_INFINITY;
      if (distance < shortest) [closest, shortest] = [index, distance];
    }
    this.#pointed.point(closest < 0 ? null : { a: closest, b: null });
  }

  #focused() {
    if (this.#points.length === 0) return;
    this.#pointed.point(this.#pointed.now ?? { a: this.#next(-1, 1), b: null });
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const back = event.key === "ArrowLeft" || event.key === "ArrowUp";
    const on = event.key === "ArrowRight" || event.key === "ArrowDown";
    if ((!back && !on) || this.#points.length === 0) return;
    event.preventDefault();
    this.#pointed.point({ a: this.#next(this.#pointed.now?.a ?? -1, on ? 1 : -1), b: null });
  }

  /** The next line that has a place, round and round. @param {number} from @param {1 | -1} step */
  #next(from, step) {
    const count = this.#points.length;
    for (let tries = 1; tries <= count; tries += 1) {
      const index = (from + step * tries + count * 2) % count;
      if (this.#points[index]) return index;
    }
    return 0;
  }
}
