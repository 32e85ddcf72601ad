/** Chat: answers stream side by side, each with its own Stop; what stopping saved stands on the card. */

import { Card } from "../card.js";
import { isRunning } from "../chats.js";
import { createComposer } from "../composer.js";
import { h, icon } from "../dom.js";
import { LastStops } from "../last-stops.js";
import { panelHead } from "../panel-head.js";
import { Tabs } from "../tabs.js";

/** @import { App } from "../main.js" */

const EXAMPLES = [
  "Explain how a suspension bridge carries its load.",
  "Write a short story about a lighthouse keeper.",
  "List ten facts about the ocean, with reasons.",
];
const SHOWCASE = "Tell me a long story about a river that wanted to see the sea.";

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new ChatPanel(app, root);
}

class ChatPanel {
  #app;
  /** @type {Map<number, Card>} */
  #cards = new Map();

  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.#app = app;
    const { store, chats } = app;
    this.composer = createComposer(store, (ask, copies) => this.#ask(ask, copies));
    this.grid = h("div", { class: "cards", "aria-label": "Answers", role: "group" });
    this.empty = this.#createEmpty();
    this.stopAll = h(
      "button",
      {
        type: "button",
        class: "button small",
        "data-testid": "stop-all",
        title: "Stop all (Shift+Esc)",
        onclick: () => chats.stopAll(),
      },
      icon("stop"),
      "Stop all",
    );
    this.clear = h(
      "button",
      {
        type: "button",
        class: "button small quiet",
        "data-testid": "clear",
        "aria-label": "Clear finished answers",
        title: "Clear finished answers",
        onclick: () => chats.clearFinished(),
      },
      "Clear",
    );
    this.stops = new LastStops("running answers");
    this.tabs = new Tabs(
      "chat",
      { name: "streams", label: "Streams", content: [this.empty, this.grid] },
      (code) => {
        this.composer.element.hidden = code;
      },
    );
    root.append(
      panelHead("Chat", [this.tabs.list], [this.stopAll, this.stops.element, this.clear]),
      this.tabs.pane,
      this.tabs.codePane,
      this.composer.element,
    );
    store.subscribe(["chats", "connection"], () => this.#renderCards());
    store.subscribe(["text"], () => this.#renderText());
    this.#renderCards();
  }

  focus() {
    this.composer.focus();
  }

  /** @param {import("../chats.js").Ask} ask @param {number} copies */
  #ask(ask, copies) {
    this.tabs.show(false);
    this.#app.chats.ask(ask, copies);
    this.#app.store.flush();
    this.grid.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  #createEmpty() {
    return h(
      "section",
      { class: "empty" },
      h("h2", {}, "Start three answers. Stop one."),
      h(
        "p",
        {},
        "Its text freezes at once, and the receipt below it says how long the model took to let go, what was wasted, and that its slot and cache are back.",
      ),
      h(
        "button",
        {
          type: "button",
          class: "button primary",
          "data-testid": "run-three",
          onclick: () => this.composer.ask(SHOWCASE, 3),
        },
        icon("streams"),
        h("span", {}, "Run three side by side"),
      ),
      h("p", { class: "hint" }, "Or ask one of these:"),
      h(
        "ul",
        { class: "examples" },
        ...EXAMPLES.map((prompt) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", class: "example", onclick: () => this.composer.ask(prompt, 1) },
              prompt,
            ),
          ),
        ),
      ),
    );
  }

  #renderCards() {
    const { chats, stops } = this.#app.store.state;
    const escTarget = this.#app.chats.focused();
    const keys = new Set(chats.map((chat) => chat.key));
    for (const [key, card] of this.#cards) {
      if (keys.has(key)) continue;
      card.element.remove();
      this.#cards.delete(key);
    }
    for (const chat of chats) {
      const card = this.#cards.get(chat.key) ?? this.#addCard(chat);
      card.renderState(chat === escTarget);
    }
    this.empty.hidden = chats.length > 0;
    this.grid.hidden = chats.length === 0;
    const running = chats.filter(isRunning).length;
    this.stopAll.hidden = running < 2;
    this.clear.hidden = running === chats.length;
    this.stops.render(stops);
    for (const card of this.#cards.values()) card.keepUp();
  }

  /** @param {import("../chats.js").Chat} chat */
  #addCard(chat) {
    const card = new Card(chat, this.#app.chats, this.#app.speeches, this.#app.store);
    this.#cards.set(chat.key, card);
    this.grid.append(card.element);
    return card;
  }

  #renderText() {
    const cards = [...this.#cards.values()].filter(
      ({ chat }) => isRunning(chat) || chat.unread.length > 0,
    );
    for (const card of cards) card.renderText();
    for (const card of cards) card.keepUp();
  }
}
