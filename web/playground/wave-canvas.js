/** A canvas that fills its box at the device's pixels, whatever becomes of the box. Knows nothing of what is drawn. */

import { h } from "./dom.js";

/** @param {() => void} onResize  it is empty now, and must be drawn anew @param {string} [className] */
export function createWaveCanvas(onResize, className = "wave") {
  const canvas = h("canvas", { class: className, "aria-hidden": "true" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const element = h("div", { class: "wave-box" }, canvas);
  new ResizeObserver(() => {
    const { width, height } = element.getBoundingClientRect();
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    onResize();
  }).observe(element);
  return { element, canvas, context };
}
