/**
 * The foot of a card: Stop while it runs, the receipt afterwards, in the same place and of the same height, and what
 * the card offers next. Whoever had the keyboard keeps it. Knows endings, not streams.
 */

import { h, icon, setIcon, setText, unbroken } from "./dom.js";

/** @import { Ending } from "./ending.js" */

export class StopLine {
  #label = h("span", {}, "Stop");
  #mark = icon("check");
  #text = h("span");

  /**
   * @param {{ stop: string, receipt: string }} testids
   * @param {() => void} onStop
   * @param {HTMLElement} next  a button for when it has ended; the card shows and hides it
   */
  constructor(testids, onStop, next) {
    this.stop = h(
      "button",
      { type: "button", class: "button stop", "data-testid": testids.stop, onclick: onStop },
      icon("stop"),
      this.#label,
      h("kbd", {}, "Esc"),
    );
    this.receipt = h(
      "p",
      { class: "receipt", "data-testid": testids.receipt },
      this.#mark,
      this.#text,
    );
    this.element = h("footer", { class: "card-foot" }, this.stop, this.receipt, next);
  }

  /**
   * @param {string} state
   * @param {Ending | null} ending  null while it runs
   * @param {HTMLElement} heir  has the focus next where the button that had it is gone
   */
  render(state, ending, heir) {
    const hadFocus = this.element.contains(document.activeElement);
    const stopping = state === "stopping";
    this.stop.hidden = ending !== null;
    this.stop.disabled = stopping;
    setText(this.#label, stopping ? "Stopping" : "Stop");
    this.receipt.hidden = ending === null;
    if (!ending) return;
    this.receipt.dataset.tone = ending.tone;
    setIcon(this.#mark, ending.mark);
    this.#text.replaceChildren(...unbroken(ending.parts));
    this.receipt.title = ending.parts.join(" · ");
    if (hadFocus) heir.focus({ preventScroll: true });
  }
}

/** The word for the state takes the tone of the ending. @param {HTMLElement} word @param {Ending | null} ending */
export function setTone(word, ending) {
  if (ending) word.dataset.tone = ending.tone;
  else delete word.dataset.tone;
}
