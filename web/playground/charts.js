/** Small SVG charts: a line over the last two minutes, and bars of the last stop times. No library. */

import { svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 56;

export class LineChart {
  /** @param {string} label @param {number} points  how many fill the width */
  constructor(label, points) {
    this.points = points;
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
   * @param {(number | null)[]} values  oldest first; null leaves a gap
   * @param {number} [top]  value at the upper edge; default: the largest
   */
  update(values, top = Math.max(0, ...values.map((value) => value ?? 0))) {
    const step = WIDTH / (this.points - 1);
    const offset = this.points - values.length;
    const scale = top > 0 ? (HEIGHT - 4) / top : 0;
    let pen = "M";
    let path = ""; // each run starts with a short dash, so that a lone value shows
    for (const [index, value] of values.entries()) {
      if (value === null) {
        pen = "M";
        continue;
      }
      const y = HEIGHT - 1 - Math.min(value, top) * scale;
      path += `${pen}${((index + offset) * step).toFixed(1)} ${y.toFixed(1)}${pen === "M" ? "h2" : ""}`;
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

  /** Right-aligned: the newest is the last bar. @param {number[]} values */
  update(values) {
    const top = Math.max(1, ...values);
    const offset = this.rects.length - values.length;
    for (const [index, rect] of this.rects.entries()) {
      const value = values[index - offset];
      const height =
        value === undefined ? 2 : Math.max(2, Math.round((value / top) * SPARK_HEIGHT));
      rect.setAttribute("class", value === undefined ? "spark-none" : "spark-bar");
      rect.setAttribute("height", String(height));
      rect.setAttribute("y", String(SPARK_HEIGHT - height));
    }
  }
}
