/** In place of a panel whose method this connection has not: why, and what to do. */

import { h } from "./dom.js";

/**
 * @param {import("./store.js").Store} store
 * @param {object} lack
 * @param {string} lack.testid
 * @param {string} lack.method
 * @param {string} lack.title
 * @param {string} lack.kind  of model
 * @param {string} lack.model  the one to install
 * @param {number} lack.megabytes
 */
export function createAbsent(store, { testid, method, title, kind, model, megabytes }) {
  const heading = h("h2");
  const why = h("p");
  const commands = h("pre", { class: "commands" }, `plait models pull ${model}\nplait serve`);
  const hint = h("p", { class: "hint" });
  const show = () => {
    const { app } = store.state;
    commands.hidden = app !== null;
    heading.textContent = app === null ? title : `The app ${app} does not ${method} here`;
    why.textContent =
      app === null
        ? `It started without a ${kind} model. Stop it, install the model (about ${megabytes} MB, once), and start it again:`
        : `Either it lacks the capability ${method} in plait.toml, or it may use none of the server’s ${kind} models.`;
    hint.textContent =
      app === null
        ? "plait doctor says what is missing. In a checkout, make serve does all of it."
        : "plait doctor says which models the server has.";
  };
  store.subscribe(["connection"], show);
  show();
  return h(
    "section",
    { class: "empty", "data-testid": testid, hidden: true },
    heading,
    why,
    commands,
    hint,
  );
}
