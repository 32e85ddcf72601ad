/**
 * The lines of a batch: in a lighter ink until they are answered, each with what went wrong beside it, or with how
 * alike it is to the one looked at. Rows are made once and touched only when they change. One Tab stop for all of
 * them; arrows go from one to the next.
 */

import { h, setText } from "./dom.js";
import { formatCosine, plural } from "./format.js";
import { cosine } from "./similarity.js";

/** @import { Embedding } from "./new-embedding.js" */
/** @import { Pointed } from "./pointed.js" */

/** More rows say no more; those in trouble are shown wherever they are. */
export const MAX_ROWS = 400;
const MAX_TROUBLED = 100;

/**
 * @typedef {object} Row
 * @property {HTMLElement} element
 * @property {HTMLElement} side
 */

export class LinesView {
  #pointed;
  /** By line. @type {Map<number, Row>} */
  #rows = new Map();
  /** @type {Embedding | null} */
  #embedding = null;
  /** Lines whose answer is shown. */
  #answered = 0;
  /** The row that Tab leads to. */
  #current = 0;

  /** @param {Pointed} pointed */
  constructor(pointed) {
    this.#pointed = pointed;
    this.list = h("ol", {
      class: "lines",
      "data-testid": "lines",
      "aria-label": "Lines",
      onpointerover: (/** @type {PointerEvent} */ event) => this.#look(this.#lineOf(event.target)),
      onpointerleave: () => this.#look(null),
      onfocusin: (/** @type {FocusEvent} */ event) => this.#look(this.#lineOf(event.target)),
      onfocusout: () => this.#look(null),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
    });
    this.note = h("p", { class: "hint lines-note", hidden: true });
    this.element = h("div", { class: "lines-box" }, this.list, this.note);
  }

  /** @param {Embedding} embedding */
  begin(embedding) {
    this.#embedding = embedding;
    this.#answered = 0;
    this.#current = 0;
    this.#rows.clear();
    this.list.replaceChildren();
    this.list.scrollTop = 0;
    const { lines } = embedding.ask;
    for (let index = 0; index < Math.min(lines.length, MAX_ROWS); index += 1) this.#add(index);
    const more = lines.length - MAX_ROWS;
    this.note.hidden = more <= 0;
    setText(this.note, `${plural(more, "more line is", "more lines are")} not listed`);
  }

  /** What was answered since the last time. */
  render() {
    const embedding = this.#embedding;
    if (!embedding) return;
    const { failures, cut, items } = embedding;
    for (; this.#answered < items; this.#answered += 1) {
      const index = this.#answered;
      const troubled = failures.has(index) || cut.has(index);
      if (troubled && index >= MAX_ROWS && this.#rows.size < MAX_ROWS + MAX_TROUBLED)
        this.#add(index);
      const row = this.#rows.get(index);
      if (row) this.#settle(row, index, embedding);
    }
  }

  /** The line, or the lines, looked at, and how alike the others are. */
  renderPointed() {
    const { now } = this.#pointed;
    const { vectors = [] } = this.#embedding ?? {};
    const from = now && (now.b === null || now.b === now.a) ? (vectors[now.a] ?? null) : null;
    for (const [index, row] of this.#rows) {
      row.element.classList.toggle("pointed", this.#pointed.has(index));
      if (row.element.dataset.state !== "done") continue;
      const vector = from && index !== now?.a ? vectors[index] : null;
      this.#showAlike(row, from && vector ? cosine(from, vector) : null);
    }
  }

  /** @param {number} index */
  #add(index) {
    const side = h("span", { class: "line-side" });
    const element = h(
      "li",
      {
        class: "line",
        "data-testid": "line",
        "data-state": "waiting",
        "data-index": index,
        tabindex: index === this.#current ? "0" : "-1",
      },
      h("span", { class: "line-number" }, String(index + 1)),
      h("span", { class: "line-text" }, this.#embedding?.ask.lines[index] ?? ""),
      side,
    );
    this.#rows.set(index, { element, side });
    this.list.append(element);
  }

  /** @param {Row} row @param {number} index @param {Embedding} embedding */
  #settle({ element, side }, index, { failures, cut }) {
    const failure = failures.get(index);
    element.dataset.state = failure ? "failed" : cut.has(index) ? "cut" : "done";
    if (failure) {
      element.dataset.reason = failure.code;
      setText(side, failure.message);
    } else if (cut.has(index)) {
      setText(side, "cut: only its beginning was embedded");
    }
  }

  /** @param {Row} row @param {number | null} value */
  #showAlike({ side }, value) {
    setText(side, value === null ? "" : formatCosine(value));
    side.style.setProperty("--alike", String(Math.max(0, value ?? 0)));
    side.classList.toggle("alike", value !== null);
  }

  /** @param {EventTarget | null} target @returns {number | null} */
  #lineOf(target) {
    const element = target instanceof Element ? target.closest(".line") : null;
    return element instanceof HTMLElement ? Number(element.dataset.index) : null;
  }

  /** @param {number | null} index */
  #look(index) {
    const known = index !== null && index < (this.#embedding?.items ?? 0);
    this.#pointed.point(known ? { a: index, b: null } : null);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const at = this.#lineOf(event.target);
    if (!step || at === null) return;
    event.preventDefault();
    const order = [...this.#rows.keys()];
    const next = order[order.indexOf(at) + step];
    const row = next === undefined ? undefined : this.#rows.get(next);
    if (!row || next === undefined) return;
    this.#rows.get(this.#current)?.element.setAttribute("tabindex", "-1");
    this.#current = next;
    row.element.setAttribute("tabindex", "0");
    row.element.focus();
  }
}
