/**
 * One turn as a row: what you said, first as a guess in lighter ink; the answer, of which an interruption strikes out
 * what was not heard; the receipt of that interruption; and the timeline. Text is text nodes only.
 */

import { h, icon, setIcon, setText } from "./dom.js";
import { streamHue } from "./format.js";
import { endingOf, isOver, splitHeard, withdrawnText } from "./turn-stages.js";
import { TurnTimeline } from "./turn-timeline.js";

/** @import { Turn } from "../sdk/conversation.d.ts" */
/** @import { Entry } from "./new-conversation.js" */

export class TurnView {
  #drawn = "";

  /** @param {Entry} entry */
  constructor(entry) {
    this.entry = entry;
    this.said = h("p", { class: "turn-text", dir: "auto", "data-testid": "said" });
    this.heard = h("span", { "data-testid": "answer-heard" });
    this.unheard = h("s", { "data-testid": "answer-unheard", title: "Written, but not heard" });
    this.answer = h(
      "p",
      { class: "turn-text turn-answer", dir: "auto", "data-testid": "answer" },
      this.heard,
      this.unheard,
    );
    this.withdrawn = h("p", {
      class: "hint turn-withdrawn",
      hidden: true,
      "data-testid": "withdrawn",
    });
    this.mark = icon("check");
    this.proofs = h("span");
    this.receipt = h(
      "p",
      { class: "receipt turn-receipt", hidden: true, "data-testid": "turn-receipt" },
      this.mark,
      this.proofs,
    );
    this.timeline = new TurnTimeline();
    this.you = h("div", { class: "turn-part" }, h("span", { class: "turn-who" }, "You"), this.said);
    this.reply = h(
      "div",
      { class: "turn-part" },
      h("span", { class: "turn-who" }, "Plait"),
      this.answer,
    );
    this.element = h(
      "li",
      { class: "turn", "data-testid": "turn", "data-key": entry.key },
      h("div", { class: "turn-talk" }, this.you, this.withdrawn, this.reply, this.receipt),
      this.timeline.element,
    );
  }

  /** @param {number} now */
  draw(now) {
    const { turn } = this.entry;
    const { state, said, written, interruption, error } = turn;
    this.element.dataset.state = state;
    const nothing = isOver(turn) && written === "";
    const heard = said || (nothing ? "(no words)" : state === "hearing" ? "…" : "");
    this.you.hidden = heard === "";
    setText(this.said, heard);
    const [spoken, struck] = splitHeard(written, interruption);
    setText(this.heard, spoken);
    setText(this.unheard, struck);
    this.reply.hidden = nothing || (written === "" && state === "hearing");
    const withdrawn = withdrawnText(turn);
    this.withdrawn.hidden = withdrawn === "";
    setText(this.withdrawn, withdrawn);
    const key = `${turn.times.interrupted}/${interruption === null}/${error?.code}`;
    if (key !== this.#drawn) this.#showEnding(turn);
    this.#drawn = key;
    this.timeline.draw(turn, now, this.entry);
  }

  /** @param {Turn} turn */
  #showEnding(turn) {
    const { tone, mark, parts } = endingOf(turn);
    this.receipt.hidden = parts.length === 0;
    this.receipt.dataset.tone = tone;
    setIcon(this.mark, mark);
    this.proofs.replaceChildren(
      ...parts.flatMap(({ text, streamId }, index) => [
        index === 0 ? "" : " ",
        h("span", { class: "part" }, index === 0 ? "" : "· ", streamDot(streamId), text),
      ]),
    );
  }
}

/** @param {number | null} streamId */
function streamDot(streamId) {
  if (streamId === null) return null;
  const dot = h("span", { class: "dot", title: `#${streamId}` });
  dot.style.setProperty("--hue", String(streamHue(streamId)));
  return dot;
}
