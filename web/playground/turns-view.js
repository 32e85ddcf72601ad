/**
 * The turns of a conversation as they grow, the newest in sight unless the reader looks elsewhere. The page keeps the
 * last so many of them: a conversation has no end, a page's memory has. Knows entries, not streams.
 */

import { h, icon, setText } from "./dom.js";
import { plural } from "./format.js";
import { turnCount } from "./new-conversation.js";
import { isOver } from "./turn-stages.js";
import { TurnView } from "./turn-view.js";

/** @import { Entry, Run } from "./new-conversation.js" */

/** Rows on the page; older turns stay in the model's history, as far as its context reaches. */
const MAX_ROWS = 50;
const NEAR_BOTTOM = 48;

export class TurnsView {
  /** By the entry's key, in order. @type {Map<number, TurnView>} */
  #rows = new Map();
  /** @type {Entry[]} */
  #entries = [];
  #follow = true;

  constructor() {
    this.earlier = h("p", { class: "hint turns-earlier", hidden: true });
    this.list = h("ol", { class: "turn-list", "data-testid": "turns", "aria-label": "Turns" });
    this.latest = h(
      "button",
      { type: "button", class: "card-latest", hidden: true, onclick: () => this.#toLatest() },
      icon("down"),
      "Latest",
    );
    this.scroller = h(
      "div",
      {
        class: "turns-scroller",
        tabindex: "0",
        role: "group",
        "aria-label": "Conversation so far",
        onscroll: () => this.#scrolled(),
      },
      this.earlier,
      this.list,
    );
    this.element = h("div", { class: "turns" }, this.scroller, this.latest);
  }

  /** One that goes on from the one shown keeps its rows. @param {Run} run */
  begin(run) {
    this.#entries = run.entries;
    if (this.#rows.size > 0 && run.entries.some(({ key }) => this.#rows.has(key))) return;
    this.#rows.clear();
    this.#follow = true;
    this.latest.hidden = true;
    this.list.replaceChildren();
  }

  /** What changed, and what still moves; cheap, at most once a frame. @param {Run} run @param {number} now */
  render(run, now) {
    for (const entry of run.changed) this.#draw(entry, now);
    for (const entry of this.#entries.slice(-2)) {
      if (!run.changed.has(entry) && !isOver(entry.turn)) this.#draw(entry, now);
    }
    run.changed.clear();
    this.#trim(run);
    this.keepUp();
  }

  keepUp() {
    if (this.#follow) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** @param {Entry} entry @param {number} now */
  #draw(entry, now) {
    let row = this.#rows.get(entry.key);
    if (!row) {
      if (this.#entries.indexOf(entry) < this.#entries.length - MAX_ROWS) return; // its row went
      row = new TurnView(entry);
      this.#rows.set(entry.key, row);
      this.list.append(row.element);
    }
    row.draw(now);
  }

  /** @param {Run} run */
  #trim(run) {
    for (const [key, row] of this.#rows) {
      if (this.#rows.size <= MAX_ROWS) break;
      row.element.remove();
      this.#rows.delete(key);
    }
    const gone = turnCount(run) - this.#rows.size;
    this.earlier.hidden = gone <= 0;
    setText(this.earlier, gone <= 0 ? "" : `${plural(gone, "earlier turn")} not shown`);
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    this.#follow = scrollTop + clientHeight >= scrollHeight - NEAR_BOTTOM;
    this.latest.hidden = this.#follow;
  }

  #toLatest() {
    this.#follow = true;
    this.latest.hidden = true;
    this.keepUp();
  }
}
