/**
 * The timeline of a turn: a lane for what you said, one for the chat and one for the speech, each in its stream's
 * colour, with a line where the turn was interrupted and a mark where each cancel was proved; below it the stages in
 * numbers, which say the same to who does not see bars. Knows turns, not conversations.
 */

import { h, setText } from "./dom.js";
import { formatMs, streamHue } from "./format.js";
import { isOver, lanesOf, marksOf, STAGES, sinceStart, spanOf, stagesOf } from "./turn-stages.js";

/** @import { Turn } from "../sdk/conversation.d.ts" */
/** @import { Lane } from "./turn-stages.js" */

const LABELS = { you: "you", chat: "chat", speech: "speech" };

export class TurnTimeline {
  #lanes = /** @type {const} */ (["you", "chat", "speech"]).map(createLane);
  #cut = h("span", { class: "lane-cut", hidden: true });
  #ticks = marksOf(0).map(() => h("span"));
  /** By name. @type {Map<string, HTMLElement>} */
  #figures = new Map();
  #span = 0;

  constructor() {
    this.bars = h(
      "div",
      { class: "lanes", "aria-hidden": "true", "data-testid": "timeline" },
      ...this.#lanes.map(({ element }) => element),
      h("div", { class: "lane-track cut-track" }, this.#cut),
      h("div", { class: "lane-axis" }, ...this.#ticks),
    );
    this.list = h(
      "dl",
      { class: "stages", "data-testid": "stages", "aria-label": "Stages" },
      ...STAGES.map((stage) => this.#createStage(stage)),
    );
    this.element = h("div", { class: "turn-times" }, this.bars, this.list);
  }

  /**
   * @param {Turn} turn @param {number} now
   * @param {{ transcriptionId: number | null, endOfTurnMs: number }} of  the conversation
   */
  draw(turn, now, { transcriptionId, endOfTurnMs }) {
    const span = spanOf(turn, now);
    if (span !== this.#span) this.#showSpan(span);
    for (const [index, lane] of lanesOf(turn, now, transcriptionId).entries()) {
      this.#lanes[index]?.show(lane, span);
    }
    const cut = sinceStart(turn, turn.times.interrupted);
    this.#cut.hidden = cut === null;
    if (cut !== null) place(this.#cut, cut, null, span);
    this.bars.dataset.live = String(!isOver(turn));
    const stages = stagesOf(turn, endOfTurnMs);
    for (const [name, figure] of this.#figures) {
      const ms = stages[name];
      setText(figure, ms === undefined ? "–" : formatMs(ms));
    }
  }

  /** @param {number} span */
  #showSpan(span) {
    this.#span = span;
    const marks = marksOf(span);
    for (const [index, tick] of this.#ticks.entries()) {
      const seconds = marks[index] ?? 0;
      setText(tick, index === marks.length - 1 ? `${seconds} s` : String(seconds));
    }
  }

  /** Its place is there before its figure is: nothing moves when that comes. @param {(typeof STAGES)[number]} stage */
  #createStage({ name, label, title }) {
    const figure = h("dd", {}, "–");
    this.#figures.set(name, figure);
    return h("div", { "data-stage": name, title }, h("dt", {}, label), figure);
  }
}

/** @param {Lane["name"]} name */
function createLane(name) {
  const track = h("div", { class: "lane-track" });
  const mark = h("span", { class: "lane-mark", hidden: true });
  const element = h(
    "div",
    { class: "lane", "data-lane": name },
    h("span", { class: "lane-name" }, LABELS[name]),
    track,
  );
  /** @type {HTMLElement[]} */
  const bars = [];
  track.append(mark);

  /** @param {Lane} lane @param {number} span */
  function show(lane, span) {
    if (lane.streamId !== null) {
      element.style.setProperty("--hue", String(streamHue(lane.streamId)));
      element.dataset.streamId = String(lane.streamId);
      element.title = `${LABELS[name]} #${lane.streamId}`;
    }
    for (const [index, { kind, from, to }] of lane.bars.entries()) {
      const bar = bars[index] ?? append();
      bar.dataset.kind = kind;
      place(bar, from, to, span);
    }
    while (bars.length > lane.bars.length) bars.pop()?.remove();
    mark.hidden = lane.cancelled === null;
    if (lane.cancelled !== null) place(mark, lane.cancelled, null, span);
  }

  function append() {
    const bar = h("span", { class: "lane-bar" });
    bars.push(bar);
    mark.before(bar);
    return bar;
  }

  return { element, show };
}

/**
 * @param {HTMLElement} element @param {number} from @param {number | null} to  null: a moment
 * @param {number} span
 */
function place(element, from, to, span) {
  element.style.left = `${((100 * from) / span).toFixed(2)}%`;
  if (to !== null) element.style.width = `${((100 * (to - from)) / span).toFixed(2)}%`;
}
