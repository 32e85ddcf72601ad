/**
 * One chat as a card: prompt, streaming text, figures, and a footer that is Stop while it runs and the
 * receipt afterwards, in the same place and of the same height. Text only ever grows by text nodes.
 */

import { isRunning } from "./chats.js";
import { h, icon, iconButton, setIcon, setText } from "./dom.js";
import { endingOf, waitingText } from "./ending.js";
import { formatCount, formatMs, streamHue } from "./format.js";
import { StopLine, setTone } from "./stop-line.js";

/** @import { Chat, Chats } from "./chats.js" */
/** @import { Speeches } from "./speeches.js" */
/** @import { Store } from "./store.js" */

/** A block closes at the first line break after this many characters: only the last one is laid out anew. */
const BLOCK_CHARS = 600;
const NEAR_BOTTOM = 32;

const STATE_TEXT = {
  pending: "waiting",
  streaming: "streaming",
  stopping: "stopping",
  completed: "done",
  cancelled: "stopped",
  errored: "failed",
};

export class Card {
  #follow = true;
  /** @type {HTMLElement | null} */
  #block = null;
  #blockChars = 0;
  #drawnState = "";

  /** @param {Chat} chat @param {Chats} chats @param {Speeches} speeches @param {Store} store */
  constructor(chat, chats, speeches, store) {
    this.chat = chat;
    this.store = store;
    this.speeches = speeches;
    this.speak = iconButton("speak", "Speak this answer", () => speeches.toggleAnswer(chat), {
      "data-testid": "speak-answer",
      hidden: true,
    });
    this.id = h("span", { class: "card-id" });
    this.state = h("span", { class: "card-state" });
    this.again = iconButton("retry", "Ask again", () => chats.retry(chat), {
      "data-testid": "again",
    });
    this.remove = iconButton("close", "Remove this answer", () => chats.remove(chat));
    this.text = h("div", {
      class: "card-text",
      "data-testid": "stream-text",
      "aria-label": "Answer",
      role: "group",
      tabindex: "0",
      onscroll: () => this.#scrolled(),
    });
    this.waiting = h("p", { class: "card-waiting" });
    this.latest = h(
      "button",
      { type: "button", class: "card-latest", hidden: true, onclick: () => this.#toLatest() },
      icon("down"),
      "Latest",
    );
    this.first = h("span", { title: "From sending to the first token" });
    this.rate = h("span", { title: "Tokens per second since the first" });
    this.count = h("span", { title: "Tokens so far" });
    this.retry = h(
      "button",
      {
        type: "button",
        class: "button small",
        "data-testid": "retry",
        onclick: () => chats.retry(chat),
      },
      icon("retry"),
      "Retry",
    );
    this.footer = new StopLine(
      { stop: "stop", receipt: "receipt" },
      () => chats.stop(chat),
      this.retry,
    );
    this.element = h(
      "article",
      {
        class: "card",
        "data-testid": "stream-card",
        "aria-label": `Answer ${chat.key}`,
        onfocusin: () => chats.focus(chat),
        onpointerdown: () => chats.focus(chat),
      },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "dot" }),
        this.id,
        this.state,
        this.speak,
        this.again,
        this.remove,
      ),
      h("p", { class: "card-prompt", title: chat.ask.prompt }, chat.ask.prompt),
      h("div", { class: "card-body" }, this.text, this.waiting, this.latest),
      h("div", { class: "card-figures" }, this.first, this.rate, this.count),
      this.footer.element,
    );
  }

  /** What changes with the state or the focus. @param {boolean} focused */
  renderState(focused) {
    const { chat, element } = this;
    element.dataset.focused = String(focused);
    this.#renderSpeaker();
    const key = `${chat.state}/${chat.attempt}/${chat.stream?.id}/${chat.slotBack}`;
    if (key === this.#drawnState) return;
    this.#drawnState = key;
    const running = isRunning(chat);
    element.dataset.state = chat.state;
    if (chat.trouble) element.dataset.reason = chat.trouble.code;
    else delete element.dataset.reason;
    if (chat.stream) {
      element.dataset.streamId = String(chat.stream.id);
      element.style.setProperty("--hue", String(streamHue(chat.stream.id)));
    }
    setText(this.id, chat.stream ? `#${chat.stream.id}` : "");
    setText(this.state, chat.trouble?.lost ? "lost" : STATE_TEXT[chat.state]);
    this.text.setAttribute("aria-busy", String(running));
    this.#renderFooter(running);
    this.renderText();
  }

  #renderSpeaker() {
    const speaks = this.speeches.speaks(this.chat);
    this.speak.hidden = this.store.state.voices === null;
    this.speak.disabled = !speaks && !isRunning(this.chat) && this.chat.text === "";
    const trouble = this.speeches.troubleOf(this.chat);
    const [mark, title] = speaks
      ? ["mute", "Stop speaking"]
      : [trouble ? "alert" : "speak", trouble || "Speak this answer, also while it is written"];
    this.speak.setAttribute("aria-pressed", String(speaks));
    this.speak.title = title;
    setIcon(/** @type {Element} */ (this.speak.firstElementChild), mark);
  }

  /** @param {boolean} running */
  #renderFooter(running) {
    const { chat } = this;
    const ending = running ? null : endingOf(chat);
    const failed = chat.state === "errored";
    this.remove.hidden = running;
    this.retry.hidden = !failed;
    this.again.hidden = running || failed;
    setTone(this.state, ending);
    this.footer.render(chat.state, ending, this.text);
  }

  /** What changes with every item; cheap, at most once a frame. */
  renderText() {
    const { chat } = this;
    if (chat.unread.length > 0 && chat.state !== "stopping")
      this.#append(chat.unread.splice(0).join(""));
    const waiting = waitingText(chat);
    this.waiting.hidden = waiting === "";
    setText(this.waiting, waiting);
    this.text.classList.toggle("stale", chat.stale);
    const rate = tokenRate(chat);
    setText(
      this.first,
      chat.firstAt === null ? "" : `first ${formatMs(chat.firstAt - chat.sentAt)}`,
    );
    setText(this.rate, rate === null ? "" : `${rate.toFixed(rate < 10 ? 1 : 0)} tok/s`);
    setText(this.count, chat.items > 0 ? `${formatCount(chat.tokens ?? chat.items)} tok` : "");
  }

  /** Scrolling last, in one pass over all cards: reading heights between writes would lay out twice. */
  keepUp() {
    if (this.#follow) this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {string} text */
  #append(text) {
    if (this.chat.stale) {
      this.chat.stale = false;
      this.text.replaceChildren();
      this.#block = null;
    }
    let rest = text;
    while (rest) {
      if (!this.#block) this.#openBlock();
      const node = /** @type {Text} */ (/** @type {HTMLElement} */ (this.#block).firstChild);
      const cut = this.#blockChars + rest.length > BLOCK_CHARS ? rest.indexOf("\n") + 1 : 0;
      const part = cut > 0 ? rest.slice(0, cut) : rest;
      node.appendData(part);
      this.#blockChars += part.length;
      rest = rest.slice(part.length);
      if (cut > 0) this.#block = null; // a line break at a block's end draws no empty line
    }
  }

  #openBlock() {
    this.#block = h("div", { class: "block" }, document.createTextNode(""));
    this.#blockChars = 0;
    this.text.append(this.#block);
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.text;
    this.#follow = scrollTop + clientHeight >= scrollHeight - NEAR_BOTTOM;
    this.latest.hidden = this.#follow || !isRunning(this.chat);
  }

  #toLatest() {
    this.#follow = true;
    this.latest.hidden = true;
    this.keepUp();
  }
}

/** Tokens per second between first and last item; null before there are two. @param {Chat} chat */
function tokenRate(chat) {
  if (chat.firstAt === null || chat.lastAt === null || chat.items < 2) return null;
  const seconds = (chat.lastAt - chat.firstAt) / 1000;
  return seconds > 0.05 ? ((chat.tokens ?? chat.items) - 1) / seconds : null;
}
