/** Small SVG charts: a line over the last two minutes, and bars of the last stop times. No library. */

import { svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 56;

/** Readings further apart than this have nothing known between them. */
const GAP_SECONDS = 3;

export class LineChart {
  /** @param {string} label @param {number} seconds  the width in time; now is at the right */
  constructor(label, seconds) {
    this.seconds = seconds;
    this.line = svg("path", { class: "chart-line" });
    this.base = svg("path", { class: "chart-base", d: `M0 ${HEIGHT - 0.5}H${WIDTH}` });
    this.element = svg(
      "svg",
      {
        class: "chart",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": label,
      },
      this.base,
      this.line,
    );
  }

  /**
   * @param {{ age: number, value: number | null }[]} points  oldest first, ages in seconds; null leaves a gap
   * @param {number} top  value at the upper edge
   */
  update(points, top) {
    const scale = top > 0 ? (HEIGHT - 4) / top : 0;
    let pen = "M";
    let path = ""; // each run starts with a short dash, so that a lone value shows
    let before = Number.POSITIVE_INFINITY;
    for (const { age, value } of points) {
      if (value === null || before - age > GAP_SECONDS) pen = "M";
      before = age;
      if (value === null) continue;
      const x = WIDTH * (1 - age / this.seconds);
      const y = HEIGHT - 1 - Math.min(value, top) * scale;
      path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}${pen === "M" ? "h2" : ""}`;
      pen = "L";
    }
    this.line.setAttribute("d", path);
  }
}

const BAR = 4;
const GAP = 2;
const SPARK_HEIGHT = 20;

export class Sparkline {
  /** @param {number} bars */
  constructor(bars) {
    const width = bars * (BAR + GAP) - GAP;
    this.rects = Array.from({ length: bars }, (_, index) =>
      svg("rect", { x: index * (BAR + GAP), width: BAR, rx: 1 }),
    );
    this.element = svg(
      "svg",
      {
        class: "sparkline",
        width,
        height: SPARK_HEIGHT,
        viewBox: `0 0 ${width} ${SPARK_HEIGHT}`,
        "aria-hidden": "true",
      },
      ...this.rects,
    );
  }

  /** Right-aligned: the newest is the last bar; "late" has no known height. @param {(number | "late")[]} values */
  update(values) {
    const top = Math.max(1, ...values.filter((value) => value !== "late"));
    const offset = this.rects.length - values.length;
    for (const [index, rect] of this.rects.entries()) {
      const value = values[index - offset];
      const height =
        value === "late"
          ? SPARK_HEIGHT
          : Math.max(2, Math.round(((value ?? 0) / top) * SPARK_HEIGHT));
      rect.setAttribute("class", sparkClass(value));
      rect.setAttribute("height", String(height));
      rect.setAttribute("y", String(SPARK_HEIGHT - height));
    }
  }
}

/** @param {number | "late" | undefined} value */
function sparkClass(value) {
  if (value === undefined) return "spark-none";
  return value === "late" ? "spark-late" : "spark-bar";
}
