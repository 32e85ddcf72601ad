/** Asks for a token in a dialog that comes back when dismissed: without one there is nothing to show. */

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
      { method: "dialog" },
      h("h2", { id: "token-title" }, icon("key"), "This server asks for a token"),
      h(
        "p",
        {},
        "The container prints it when it first starts; otherwise it is in the server's configuration. It stays in this tab and is forgotten when the tab closes.",
      ),
      refused && h("p", { class: "refused", role: "alert" }, "That token was not accepted."),
      h("label", { class: "labelled" }, h("span", {}, "Token"), input),
      h(
        "button",
        { type: "submit", class: "button primary", value: "given" },
        h("span", {}, "Connect"),
      ),
    );
    const dialog = h(
      "dialog",
      {
        class: "dialog",
        "aria-labelledby": "token-title",
        onclose: () => {
          dialog.remove();
          resolve(dialog.returnValue === "given" ? input.value.trim() : askToken(refused));
        },
      },
      form,
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
