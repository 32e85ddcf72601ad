/**
 * A transcript as it grows: each segment a row with its time, interim text in a lighter ink that settles when it is
 * final, words that were revised marked for a moment. Rows are only ever appended, and a settled one is never touched
 * again. One Tab stop for all of them; arrows go from one to the next.
 */

import { h, icon, setText } from "./dom.js";
import { formatTime } from "./format.js";
import { compare } from "./revised.js";
import { RevisionNote } from "./revision-note.js";

/** @import { Entry, Transcript } from "./transcript.js" */

const NEAR_BOTTOM = 48;

/**
 * @typedef {object} Row
 * @property {Entry} entry
 * @property {HTMLElement} element
 * @property {HTMLElement} time
 * @property {HTMLElement} said
 * @property {string} drawn  the text it shows
 */

export class TranscriptView {
  /** By the entry's key. @type {Map<number, Row>} */
  #rows = new Map();
  /** @type {Transcript | null} */
  #transcript = null;
  #follow = true;
  /** The row that Tab leads to. @type {Row | null} */
  #current = null;
  /** The row whose revisions are shown. @type {Row | null} */
  #pointed = null;
  #onPoint;

  /** @param {(entry: Entry | null) => void} onPoint  a segment is looked at, or none any more */
  constructor(onPoint) {
    this.#onPoint = onPoint;
    this.note = new RevisionNote();
    this.list = h("ol", {
      class: "segments",
      "data-testid": "transcript",
      "aria-label": "Transcript",
      onscroll: () => this.#scrolled(),
      onpointerover: (/** @type {PointerEvent} */ event) => this.#look(this.#rowOf(event.target)),
      onpointerleave: () => this.#look(this.#focusedRow()),
      onfocusin: (/** @type {FocusEvent} */ event) => this.#focused(this.#rowOf(event.target)),
      onfocusout: () => this.#look(null),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
    });
    this.latest = h(
      "button",
      { type: "button", class: "card-latest", hidden: true, onclick: () => this.#toLatest() },
      icon("down"),
      "Latest",
    );
    this.element = h("div", { class: "heard" }, this.list, this.latest, this.note.element);
  }

  /** @param {Transcript} transcript */
  begin(transcript) {
    if (transcript === this.#transcript) return;
    this.#transcript = transcript;
    this.#rows.clear();
    this.#current = null;
    this.#follow = true;
    this.latest.hidden = true;
    this.#point(null);
    this.list.replaceChildren();
  }

  /** What changed since the last time; cheap, at most once a frame. */
  render() {
    const { changed } = this.#transcript ?? {};
    if (!changed || changed.size === 0) return;
    for (const entry of changed) this.#show(entry);
    changed.clear();
    this.keepUp();
  }

  /** The newest in sight, unless the reader looks elsewhere. */
  keepUp() {
    if (this.#follow) this.list.scrollTop = this.list.scrollHeight;
  }

  /** @param {Entry} entry */
  #show(entry) {
    const row = this.#rows.get(entry.key);
    if (!row && entry.text === "") return;
    this.#draw(row ?? this.#append(entry));
  }

  /** @param {Entry} entry @returns {Row} */
  #append(entry) {
    const time = h("time", { class: "segment-time" });
    const said = h("span", { class: "segment-text", dir: "auto" });
    const element = h(
      "li",
      { class: "segment", "data-testid": "segment", "data-key": entry.key, tabindex: "-1" },
      time,
      said,
    );
    const row = { entry, element, time, said, drawn: "" };
    this.#rows.set(entry.key, row);
    this.list.append(element);
    if (!this.list.contains(document.activeElement)) this.#makeCurrent(row);
    return row;
  }

  /** @param {Row} row */
  #draw(row) {
    const { entry, element, time, said, drawn } = row;
    element.hidden = entry.text === "";
    element.dataset.final = String(entry.final);
    element.dataset.revision = String(entry.revision);
    setText(time, formatTime(entry.start));
    said.replaceChildren(...runsOf(drawn, entry));
    row.drawn = entry.text;
    if (row === this.#pointed) this.#point(element.hidden ? null : row);
  }

  /** @param {EventTarget | null} target */
  #rowOf(target) {
    const element = target instanceof Element ? target.closest("li") : null;
    return this.#rows.get(Number(element?.dataset.key)) ?? null;
  }

  #focusedRow() {
    const { activeElement } = document;
    return this.list.contains(activeElement) ? this.#rowOf(activeElement) : null;
  }

  /** @param {Row | null} row */
  #focused(row) {
    if (row) this.#makeCurrent(row);
    this.#look(row);
  }

  /** @param {Row} row */
  #makeCurrent(row) {
    if (this.#current) this.#current.element.tabIndex = -1;
    this.#current = row;
    row.element.tabIndex = 0;
  }

  /** @param {Row | null} row */
  #look(row) {
    if (row !== this.#pointed) this.#point(row);
  }

  /** @param {Row | null} row */
  #point(row) {
    this.#pointed?.element.removeAttribute("aria-describedby");
    this.#pointed = row;
    if (row) {
      this.note.show(row.entry, row.element);
      row.element.setAttribute("aria-describedby", this.note.element.id);
    } else this.note.hide();
    this.#onPoint(row?.entry ?? null);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    const rows = [...this.#rows.values()].filter(({ element }) => !element.hidden);
    if (step === undefined || rows.length === 0) return;
    event.preventDefault();
    const from = this.#current ? rows.indexOf(this.#current) : 0;
    const to = Math.min(rows.length - 1, Math.max(0, from + step));
    rows[to]?.element.focus();
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.list;
    this.#follow = scrollTop + clientHeight >= scrollHeight - NEAR_BOTTOM;
    this.latest.hidden = this.#follow;
    if (this.#pointed) this.note.place(this.#pointed.element);
  }

  #toLatest() {
    this.#follow = true;
    this.latest.hidden = true;
    this.keepUp();
  }
}

/**
 * The text in as few nodes as its inks need: settled, likely to stay, and revised just now.
 * @param {string} drawn  what was there before; "" nothing @param {Entry} entry
 */
function runsOf(drawn, { text, stable, final }) {
  const words = drawn === "" ? [{ text, revised: false }] : compare(drawn, text);
  const likely = !final && text.startsWith(stable) ? stable.length : 0;
  /** @type {{ text: string, kind: string }[]} */
  const runs = [];
  const add = (/** @type {string} */ part, /** @type {string[]} */ ...kinds) => {
    const kind = kinds.filter(Boolean).join(" ");
    const last = runs.at(-1);
    if (last?.kind === kind) last.text += part;
    else if (part) runs.push({ text: part, kind });
  };
  let at = 0;
  for (const { text: word, revised } of words) {
    const cut = Math.min(word.length, Math.max(0, likely - at));
    add(word.slice(0, cut), "likely", revised ? "revised" : "");
    add(word.slice(cut), revised ? "revised" : "");
    at += word.length;
  }
  return runs.map(({ text: part, kind }) => (kind ? h("span", { class: kind }, part) : part));
}
