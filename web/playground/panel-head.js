/** The bar above a panel: its name, its tabs, and at the far end what concerns the panel as a whole. */

import { h } from "./dom.js";

/**
 * @param {string} title @param {(Node | null)[]} beside next to the name
 * @param {(Node | null)[]} ending at the far end
 */
export function panelHead(title, beside, ending) {
  return h(
    "header",
    { class: "panel-head" },
    h("h1", {}, title),
    ...beside,
    h("span", { class: "spacer" }),
    ...ending,
  );
}
