/** One line of the wire drawer, reused for whichever frame is in its place. */

import { h, icon, setText } from "./dom.js";
import { formatBytes, formatClock, streamHue } from "./format.js";
import { preview } from "./frames.js";

/** @import { Frame } from "./frames.js" */

const PHONE = matchMedia("(max-width: 719px)");

/** Height in pixels, as in the stylesheet: a finger needs more than a pointer. */
export function rowHeight() {
  return PHONE.matches ? 40 : 24;
}

export class WireRow {
  /** @type {Frame | null} */
  frame = null;
  #count = 0;

  /** @param {number} n @param {(frame: Frame) => void} onSelect */
  constructor(n, onSelect) {
    this.time = h("span", { class: "wire-time" });
    this.arrow = icon("down");
    this.dot = h("span", { class: "dot" });
    this.stream = h("span", { class: "wire-stream" }, this.dot);
    this.id = document.createTextNode("");
    this.stream.append(this.id);
    this.type = h("span", { class: "wire-type" });
    this.preview = h("span", { class: "wire-preview" });
    this.size = h("span", { class: "wire-size" });
    this.element = h(
      "div",
      {
        class: "wire-row",
        id: `wire-row-${n}`,
        role: "option",
        "data-testid": "wire-row",
        onclick: () => this.frame && onSelect(this.frame),
      },
      this.time,
      this.arrow,
      this.stream,
      h("span", { class: "wire-what" }, this.type, " ", this.preview),
      this.size,
    );
  }

  /** @param {Frame} frame @param {number} index @param {number} total @param {Frame | null} selected */
  show(frame, index, total, selected) {
    this.element.style.transform = `translateY(${index * rowHeight()}px)`;
    this.element.setAttribute("aria-selected", String(frame === selected));
    this.element.setAttribute("aria-posinset", String(index + 1));
    this.element.setAttribute("aria-setsize", String(total));
    if (frame === this.frame && frame.count === this.#count) return;
    this.frame = frame;
    this.#count = frame.count;
    this.element.dataset.direction = frame.direction;
    this.element.dataset.type = frame.type;
    this.arrow.setAttribute("class", `icon arrow-${frame.direction}`);
    this.dot.hidden = frame.streamId === null;
    if (frame.streamId !== null)
      this.dot.style.setProperty("--hue", String(streamHue(frame.streamId)));
    setText(this.time, formatClock(frame.at));
    setText(this.id, frame.streamId === null ? "–" : String(frame.streamId));
    setText(this.type, frame.type);
    setText(this.preview, preview(frame));
    setText(this.size, formatBytes(frame.bytes));
  }
}
