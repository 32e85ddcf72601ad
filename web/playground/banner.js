/** The line above the panel when all is not well; it counts down while the server is shutting down. */

import { h, setText } from "./dom.js";

const TICK_MS = 1000;

/** @param {import("./store.js").Store} store @param {HTMLElement} root */
export function createBanner(store, root) {
  const text = h("span");
  const left = h("span", { "aria-hidden": "true" }); // a screen reader hears it once, not every second
  const banner = h(
    "p",
    { class: "banner", role: "alert", hidden: true, "data-testid": "banner" },
    text,
    left,
  );
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const show = () => {
    clearTimeout(timer);
    const { detail, state, leavingAt } = store.state.connection;
    setText(text, detail);
    banner.hidden = detail === "";
    const leftMs = state === "open" && leavingAt !== null ? leavingAt - performance.now() : 0;
    setText(left, leftText(leftMs));
    if (leftMs > 0) timer = setTimeout(show, leftMs % TICK_MS || TICK_MS);
  };
  root.prepend(banner);
  store.subscribe(["connection"], show);
}

/** @param {number} leftMs */
export function leftText(leftMs) {
  return leftMs > 0 ? ` · ${Math.ceil(leftMs / TICK_MS)} s left` : "";
}
