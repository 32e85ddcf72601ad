/**
 * What became of a segment, beside it while it is looked at: its times, its lag, and the texts it had before with the
 * words that changed. It lies over the text and takes no pointer, so nothing moves and nothing is in the way.
 */

import { h } from "./dom.js";
import { formatMs, formatTime } from "./format.js";
import { compare } from "./revised.js";

/** @import { Entry } from "./transcript.js" */

/** Of the texts it had, the last ones; fewer where there is little room. */
const SHOWN = 5;
const SHOWN_IN_LITTLE = 2;
const LITTLE_ROOM = 320;
const GAP = 4;

export class RevisionNote {
  constructor() {
    this.facts = h("p", { class: "note-facts" });
    this.earlier = h("ol", { class: "note-earlier" });
    this.element = h(
      "div",
      {
        class: "note",
        id: "revision-note",
        role: "tooltip",
        "data-testid": "revisions",
        hidden: true,
      },
      this.facts,
      this.earlier,
    );
  }

  /** @param {Entry} entry @param {HTMLElement} beside */
  show(entry, beside) {
    const room = this.element.parentElement?.clientHeight ?? 0;
    const fit = room < LITTLE_ROOM ? SHOWN_IN_LITTLE : SHOWN;
    const hidden = Math.max(0, entry.earlier.length - fit);
    this.facts.replaceChildren(...factsOf(entry).map((fact) => h("span", {}, fact)));
    this.earlier.replaceChildren(
      ...entry.earlier.slice(hidden).map(({ revision, text }, index, shown) => {
        const next = shown[index + 1]?.text ?? entry.text;
        return h(
          "li",
          {},
          h("span", { class: "note-number" }, String(revision)),
          h("span", {}, ...marked(text, next)),
        );
      }),
    );
    this.earlier.hidden = entry.earlier.length === 0;
    this.element.hidden = false;
    this.place(beside);
  }

  hide() {
    this.element.hidden = true;
  }

  /** Below it where there is room, else above. @param {HTMLElement} beside */
  place(beside) {
    const frame = /** @type {HTMLElement} */ (this.element.parentElement).getBoundingClientRect();
    const row = beside.getBoundingClientRect();
    const height = this.element.offsetHeight;
    const below = row.bottom - frame.top + GAP;
    const above = row.top - frame.top - GAP - height;
    const top = below + height <= frame.height || above < 0 ? below : above;
    const room = frame.height - height - GAP;
    this.element.style.top = `${Math.max(GAP, Math.min(top, Math.max(GAP, room)))}px`;
  }
}

/** @param {Entry} entry */
function factsOf({ start, end, lagMs, revision, final }) {
  const lag = lagMs === null ? [] : [`lag ${formatMs(lagMs)}`];
  const times = `${formatTime(start, 1)} – ${formatTime(end, 1)}`;
  return [times, ...lag, `revision ${revision}${final ? ", final" : ""}`];
}

/** With the words that the next text has no more. @param {string} text @param {string} next */
function marked(text, next) {
  return compare(next, text).map((word) =>
    word.revised ? h("s", {}, word.text.trimEnd(), word.text.endsWith(" ") && " ") : word.text,
  );
}
