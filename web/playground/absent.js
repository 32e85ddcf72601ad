/** In place of a panel whose method the server does not offer: why, and what to do. */

import { h } from "./dom.js";

/**
 * @param {object} lack
 * @param {string} lack.testid
 * @param {string} lack.title
 * @param {string} lack.kind  of model
 * @param {string} lack.model  the one to install
 * @param {number} lack.megabytes
 */
export function createAbsent({ testid, title, kind, model, megabytes }) {
  return h(
    "section",
    { class: "empty", "data-testid": testid, hidden: true },
    h("h2", {}, title),
    h(
      "p",
      {},
      `It started without a ${kind} model. Stop it, install the model (about ${megabytes} MB, once), and start it again:`,
    ),
    h("pre", { class: "commands" }, `plait models pull ${model}\nplait serve`),
    h(
      "p",
      { class: "hint" },
      "plait doctor says what is missing. In a checkout, make serve does all of it.",
    ),
  );
}
