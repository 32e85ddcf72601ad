/**
 * The text of a speech as it is read: words that were spoken in ink, the one being spoken marked, the rest paler.
 * Which part of the text is which word comes from the server's marks; text without a mark yet waits at the end.
 * Only a changed word is touched, so nothing moves.
 */

import { h, setText } from "./dom.js";

/** @import { Mark } from "../sdk/types.d.ts" */

const SHOWN_AHEAD = 4_000;

/**
 * The text of a mark in pieces, joined the text itself; a piece with times is a word.
 * @param {Mark} mark
 * @returns {{ text: string, start?: number, end?: number }[]}
 */
export function piecesOf({ text, words = [] }) {
  const pieces = [];
  let at = 0;
  for (const word of words) {
    const from = text.indexOf(word.text, at);
    if (from === -1) continue; // said otherwise than written; the text stays whole
    if (from > at) pieces.push({ text: text.slice(at, from) });
    pieces.push({ text: word.text, start: word.start, end: word.end });
    at = from + word.text.length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at) });
  return pieces;
}

/**
 * How many words have begun by a time.
 * @param {{ start: number }[]} words  by time @param {number} seconds
 */
export function begunBy(words, seconds) {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((words[middle]?.start ?? 0) <= seconds) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Reading {
  /** Each with the punctuation after it. @type {{ elements: HTMLElement[], start: number, end: number }[]} */
  #words = [];
  #begun = 0;
  /** @type {HTMLElement | null} */
  #now = null;
  /** Of the given text, what has no mark yet. */
  #rest = "";
  #follow = true;

  constructor() {
    this.restNode = document.createTextNode("");
    this.element = h("p", {
      class: "reading",
      "data-testid": "speech-text",
      tabindex: "0",
      role: "group",
      "aria-label": "Text being spoken",
      onwheel: () => {
        this.#follow = false;
      },
      ontouchmove: () => {
        this.#follow = false;
      },
    });
  }

  /** @param {string} text  what is known of it before it is spoken */
  begin(text) {
    this.#words = [];
    this.#begun = 0;
    this.#now = null;
    this.#rest = text;
    this.#follow = true;
    this.element.replaceChildren(this.restNode);
    this.#showRest();
    this.element.scrollTop = 0;
  }

  /** @param {Mark} mark */
  add(mark) {
    for (const { text, start, end } of piecesOf(mark)) {
      const element = h("span", { class: start === undefined ? "between" : "word" }, text);
      this.restNode.before(element);
      if (start === undefined) this.#words.at(-1)?.elements.push(element);
      else this.#words.push({ elements: [element], start, end: end ?? start });
    }
    // The marks' texts joined are the text; where a server says otherwise, the marks are what is spoken.
    this.#rest = this.#rest.startsWith(mark.text) ? this.#rest.slice(mark.text.length) : "";
    this.#showRest();
  }

  /** A page of it: a text of a megabyte, laid out anew with each sentence, would stop everything. */
  #showRest() {
    const more = this.#rest.length > SHOWN_AHEAD;
    setText(this.restNode, more ? `${this.#rest.slice(0, SHOWN_AHEAD)}…` : this.#rest);
  }

  /** @param {number} seconds  heard so far @param {boolean} sounding */
  show(seconds, sounding) {
    const begun = seconds > 0 ? begunBy(this.#words, seconds) : 0;
    for (; this.#begun < begun; this.#begun += 1) {
      for (const { classList } of this.#words[this.#begun]?.elements ?? []) classList.add("said");
    }
    const word = sounding ? this.#words[begun - 1] : undefined;
    const now = (word && seconds < word.end + 0.25 && word.elements[0]) || null;
    if (now === this.#now) return;
    this.#now?.classList.remove("now");
    now?.classList.add("now");
    this.#now = now;
    if (now && this.#follow) this.#scrollTo(now);
  }

  /** @param {HTMLElement} word */
  #scrollTo(word) {
    const { offsetTop, offsetHeight } = word;
    const { scrollTop, clientHeight } = this.element;
    if (offsetTop < scrollTop || offsetTop + 2 * offsetHeight > scrollTop + clientHeight) {
      // One line of what was read stays in view, where there is room for it.
      this.element.scrollTop = offsetTop - (clientHeight > 4 * offsetHeight ? offsetHeight : 4);
    }
  }
}
