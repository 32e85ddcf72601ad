/** Asks for a token in a dialog that cannot be dismissed: without one there is nothing to show. */

import { h, icon } from "./dom.js";

/** @param {boolean} refused  the last one was not accepted @returns {Promise<string>} */
export function askToken(refused) {
  return new Promise((resolve) => {
    const input = h("input", {
      type: "password",
      class: "field",
      autocomplete: "off",
      required: true,
      "data-testid": "token-input",
    });
    const form = h(
      "form",
      { method: "dialog", onsubmit: () => resolve(input.value.trim()) },
      h("h2", { id: "token-title" }, icon("key"), "This server asks for a token"),
      h(
        "p",
        {},
        "It was printed when the server started, or is in its configuration. It stays in this tab and is forgotten when the tab closes.",
      ),
      refused && h("p", { class: "refused", role: "alert" }, "That token was not accepted."),
      h("label", { class: "labelled" }, h("span", {}, "Token"), input),
      h("button", { type: "submit", class: "button primary" }, h("span", {}, "Connect")),
    );
    const dialog = h(
      "dialog",
      {
        class: "dialog",
        "aria-labelledby": "token-title",
        oncancel: (/** @type {Event} */ event) => event.preventDefault(),
        onclose: () => dialog.remove(),
      },
      form,
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
