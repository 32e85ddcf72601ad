/** Conversation: you talk, it answers aloud, you talk into it and it falls silent; every stage is timed. */

import { createConversationAbsent, lacking } from "../conversation-absent.js";
import { ConversationCard } from "../conversation-card.js";
import { createConversationComposer } from "../conversation-composer.js";
import { h, icon } from "../dom.js";
import { LastStops } from "../last-stops.js";
import { panelHead } from "../panel-head.js";
import { Tabs } from "../tabs.js";
import "../../sdk/conversation.js"; // there when Start talking is pressed

/** @import { App } from "../main.js" */

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new ConversationPanel(app, root);
}

class ConversationPanel {
  #app;

  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.#app = app;
    const { store, conversations } = app;
    this.composer = createConversationComposer(app);
    this.card = new ConversationCard(conversations, () => {
      void conversations.start(this.composer.read(), store.state.conversation);
      store.flush();
    });
    this.absent = createConversationAbsent(store);
    this.empty = createEmpty();
    this.stops = new LastStops("interrupted answers");
    this.tabs = new Tabs(
      "conversation",
      { name: "turns", label: "Turns", content: [this.absent, this.empty, this.card.element] },
      () => this.#render(),
    );
    root.append(
      panelHead("Conversation", [this.tabs.list], [this.stops.element]),
      this.tabs.pane,
      this.tabs.codePane,
      this.composer.element,
    );
    store.subscribe(["conversation", "connection", "panel"], () => this.#render());
    store.subscribe(["turns"], () => this.card.draw());
    this.#render();
  }

  focus() {
    this.composer.focus();
  }

  press() {
    this.tabs.show(false);
    this.composer.press();
  }

  #render() {
    const { state } = this.#app.store;
    const { conversation, talkStops } = state;
    const absent = lacking(state).length > 0;
    this.empty.hidden = absent || conversation !== null;
    this.composer.element.hidden = absent || this.tabs.showsCode;
    this.card.render(absent ? null : conversation);
    this.stops.render(talkStops);
  }
}

function createEmpty() {
  const step = (/** @type {string} */ mark, /** @type {string} */ text) =>
    h("li", {}, icon(mark), h("span", {}, text));
  return h(
    "section",
    { class: "empty" },
    h("h2", {}, "Talk with it. Talk into it."),
    h(
      "p",
      {},
      "What you say is written down while you speak. When you pause, it is answered, aloud, while the answer is still being written.",
    ),
    h(
      "ul",
      { class: "talk-steps" },
      step("listen", "Interrupt by talking: voice and model stop, and the receipt says how soon."),
      step("chat", "What you did not hear is struck out, and the model does not remember it."),
      step(
        "monitor",
        "Each turn has a timeline: what took how long, from your silence to its voice.",
      ),
    ),
    h(
      "p",
      { class: "hint" },
      "Loudspeakers are fine: its own voice is told from yours. With headphones it has an easier time.",
    ),
  );
}
