/** The keyboard: one listener, one list, and the dialog that shows that list. */

import { h, iconButton } from "./dom.js";

/** @import { App } from "./main.js" */

/** @param {App} app */
export function installKeys(app) {
  const help = createHelp(app);
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") stopByKey(app, event);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) app.pressPanel();
    else if (!isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey)
      plainKey(app, event, help);
  });
  return { showHelp: () => help.showModal() };
}

/**
 * Where Esc means something closer (a filter's text, a frame's detail, the options), that part has taken
 * it before it comes here; a drawer over the panel goes before an answer does.
 * @param {App} app @param {KeyboardEvent} event
 */
function stopByKey(app, event) {
  const { chats, speeches, listenings, embeddings, conversations, store, wire } = app;
  if (event.shiftKey) {
    conversations.stopAll();
    speeches.stopAll();
    listenings.stopAll();
    embeddings.stopAll();
    chats.stopAll();
    return;
  }
  if (wire.overlays) {
    wire.toggle(false);
    return;
  }
  if (store.state.asking || store.state.askingToTalk) {
    listenings.stopAsking();
    conversations.stopAsking();
    return;
  }
  const stops = [
    { panel: "conversation", run: conversations.focused(), by: conversations },
    { panel: "speak", run: speeches.focused(), by: speeches },
    { panel: "listen", run: listenings.focused(), by: listenings },
    { panel: "embed", run: embeddings.focused(), by: embeddings },
    { panel: "chat", run: chats.focused(), by: chats },
  ].filter(({ run }) => run !== null);
  const meant = stops.find(({ panel }) => panel === store.state.panel) ?? stops.at(-1);
  meant?.by.stop(/** @type {any} */ (meant.run));
}

/** @param {App} app @param {KeyboardEvent} event @param {HTMLDialogElement} help */
function plainKey(app, event, help) {
  const panel = app.panels[Number(event.key) - 1];
  if (panel) app.showPanel(panel.name);
  else if (event.key === "?") help.showModal();
  else if (event.key === "w") app.wire.toggle();
  else if (event.key === "/") app.focusPanel();
  else if (event.key === "i") app.conversations.interrupt();
  else return;
  event.preventDefault();
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select")
  );
}

/** @param {App} app */
function createHelp(app) {
  const keys = [
    ["Ctrl ↵", "Send, speak, embed, record and done, start talking"],
    [
      "Esc",
      "Close what is open here, else stop the conversation, what is spoken, heard, embedded or the focused answer",
    ],
    ["Shift Esc", "Stop all"],
    ...app.panels.map(({ label }, index) => [String(index + 1), `Show ${label}`]),
    ["i", "Interrupt the answer of a conversation"],
    ["/", "Write"],
    ["w", "Open or close the wire drawer"],
    ["?", "This list"],
  ];
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "help-title" },
    h(
      "header",
      {},
      h("h2", { id: "help-title" }, "Keys"),
      iconButton("close", "Close", () => dialog.close()),
    ),
    h(
      "dl",
      { class: "keys" },
      ...keys.map(([key = "", what = ""]) =>
        h(
          "div",
          {},
          h("dt", {}, ...key.split(" ").map((part) => h("kbd", {}, part))),
          h("dd", {}, what),
        ),
      ),
    ),
  );
  document.body.append(dialog);
  return dialog;
}
