/** One frame looked at: its title, its JSON in ink or its header, a copy of it to take along. */

import { copyButton, h, iconButton } from "./dom.js";
import { describe, timesOf } from "./frames.js";
import { inkJson } from "./ink.js";

/** @import { Frame } from "./frames.js" */

/** @param {Frame} frame @param {() => void} close @returns {HTMLElement[]} */
export function detailOf(frame, close) {
  const text = describe(frame);
  const way = frame.direction === "in" ? "Received" : "Sent";
  return [
    h(
      "header",
      {},
      h("h3", {}, `${way} ${frame.type}${timesOf(frame)}`),
      h(
        "div",
        { class: "tools" },
        copyButton("Copy this frame", () => text),
        iconButton("close", "Close this frame", close),
      ),
    ),
    h("pre", { tabindex: "0" }, ...(frame.header ? [text] : inkJson(text))),
  ];
}
