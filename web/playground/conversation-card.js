/**
 * A conversation as a card: which of four states it is in, its turns, how loud the microphone is, figures, and a
 * footer that is Stop while it runs and the receipt afterwards, in the same place and of the same height.
 */

import { h, icon, setText } from "./dom.js";
import { formatMs, formatTime, plural, streamHue } from "./format.js";
import { LevelStrip } from "./level-strip.js";
import { endingOf, isConversing, phaseOf, turnCount } from "./new-conversation.js";
import { StopLine, setTone } from "./stop-line.js";
import { answeredAfterMs } from "./turn-stages.js";
import { TurnsView } from "./turns-view.js";

/** @import { Run } from "./new-conversation.js" */

/** In the order a turn goes through them. */
const PHASES = /** @type {const} */ ([
  ["listening", "listening"],
  ["hearing", "hearing you"],
  ["thinking", "thinking"],
  ["speaking", "speaking"],
]);
const ELSE = {
  starting: "one moment",
  stopping: "stopping",
  ended: "ended",
  lost: "lost",
  failed: "failed",
};
const WAITING = {
  starting: "Opening the microphone…",
  listening: "Say something. It is written down while you speak, and answered when you pause.",
};
/** Nothing at all, not even the noise of a room, for so long: somebody should look. */
const MUTED_SECONDS = 4;
const MUTED = "No sound comes from this microphone. Is it muted, or is another one meant?";

export class ConversationCard {
  /** @type {Run | null} */
  #run = null;
  #drawn = "";
  #frame = 0;

  /** @param {import("./conversations.js").Conversations} conversations @param {() => void} goOn */
  constructor(conversations, goOn) {
    this.turns = new TurnsView();
    this.strip = new LevelStrip(() => this.drawSoon());
    this.id = h("span", { class: "card-id" });
    this.phases = PHASES.map(([name, label]) => h("li", { "data-phase": name }, label));
    this.line = h("ol", { class: "phases", "aria-label": "State" }, ...this.phases);
    this.state = h("span", { class: "card-state" });
    this.waiting = h("p", { class: "card-waiting" });
    this.blocked = createBlocked();
    this.turns.element.append(this.waiting, this.blocked);
    this.length = h("span", { title: "Since it began", "data-testid": "talk-length" });
    this.count = h("span", { "data-testid": "turn-count" });
    this.median = h("span", {
      class: "wide-only",
      title: "From your silence to the first sound of the answer, the median of the last turns",
      "data-testid": "median-answer",
    });
    this.echoes = h("span", { class: "echoes", hidden: true, "data-testid": "echoes" });
    this.goOn = h(
      "button",
      { type: "button", class: "button small", "data-testid": "go-on", onclick: goOn },
      icon("conversation"),
      "Go on",
    );
    this.goOn.title = "Talk on: what was said stays";
    this.footer = new StopLine(
      { stop: "stop-conversation", receipt: "conversation-receipt" },
      () => conversations.stop(this.#run),
      this.goOn,
    );
    this.element = h(
      "article",
      {
        class: "card stage conversation",
        "data-testid": "conversation",
        "aria-label": "Conversation",
        "data-focused": "true",
      },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "dot" }),
        this.id,
        this.line,
        this.state,
      ),
      this.turns.element,
      h("div", { class: "levels" }, this.strip.element),
      h("div", { class: "card-figures" }, this.length, this.count, this.median, this.echoes),
      this.footer.element,
    );
  }

  /** What changes with the state. @param {Run | null} run */
  render(run) {
    this.element.hidden = run === null;
    if (!run) return;
    if (run !== this.#run) this.#begin(run);
    const phase = phaseOf(run);
    const id = run.conversation?.transcriptionId ?? null;
    this.drawSoon();
    const key = `${phase}/${id}/${run.blocked}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.element.dataset.state = phase;
    if (run.trouble) this.element.dataset.reason = run.trouble.code;
    else delete this.element.dataset.reason;
    if (id) {
      this.element.dataset.streamId = String(id);
      this.element.style.setProperty("--hue", String(streamHue(id)));
    }
    setText(this.id, id ? `#${id}` : "");
    this.blocked.hidden = !run.blocked;
    this.#renderPhase(run, phase);
    this.#renderFooter(run);
  }

  drawSoon() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  /** New turns or sound. */
  draw() {
    if (this.#run) this.#draw(this.#run);
  }

  /** @param {Run} run */
  #begin(run) {
    this.#run = run;
    this.#drawn = "";
    this.turns.begin(run);
  }

  /** @param {Run} run @param {string} phase */
  #renderPhase(run, phase) {
    const word = ELSE[/** @type {keyof typeof ELSE} */ (phase)] ?? "";
    this.line.hidden = word !== "";
    setText(this.state, word);
    for (const element of this.phases) {
      if (element.dataset.phase === phase) element.setAttribute("aria-current", "step");
      else element.removeAttribute("aria-current");
    }
    setTone(this.state, isConversing(run) ? null : endingOf(run));
  }

  /** @param {Run} run */
  #renderFooter(run) {
    const running = isConversing(run);
    this.goOn.hidden = running;
    this.footer.render(run.state, running ? null : endingOf(run), this.goOn);
  }

  /** @param {Run} run */
  #draw(run) {
    const { levels, talk, echoes, echo } = run;
    const turns = turnCount(run);
    this.turns.render(run, performance.now());
    const waiting = waitingWords(run);
    this.waiting.hidden = waiting === "";
    setText(this.waiting, waiting);
    const whole = isConversing(run) ? null : levels.seconds;
    this.strip.draw({ levels, talk, seconds: levels.seconds, whole, marked: null });
    setText(this.length, formatTime(levels.seconds));
    setText(this.count, turns > 0 ? plural(turns, "turn") : "");
    const median = medianAnswerMs(run);
    setText(this.median, median === null ? "" : `answer after ${formatMs(median)}`);
    this.echoes.hidden = echoes === 0;
    setText(this.echoes, `own voice ignored ${echoes}×`);
    if (echo) this.echoes.title = echoText(echo);
  }
}

/** Sound goes on with any gesture; this asks for one. */
function createBlocked() {
  return h(
    "div",
    { class: "stage-blocked", role: "alert", hidden: true, "data-testid": "talk-blocked" },
    h("span", {}, "The browser plays no sound before you touch the page."),
    h("button", { type: "button", class: "button small primary" }, icon("speak"), "Let it sound"),
  );
}

/** @param {import("../sdk/conversation.d.ts").Echo} echo */
function echoText({ level, explained }) {
  const percent = (/** @type {number} */ value) => `${(100 * value).toFixed(1)} %`;
  return `The answer’s own sound, heard by the microphone, and not taken for you. Level ${percent(level)}, of which its sound explains ${percent(explained)}.`;
}

/** Why there is nothing to read; "" there is. @param {Run} run */
function waitingWords(run) {
  const { levels, entries, conversation } = run;
  if (run.state !== "running") return "";
  // Of who listens to an answer nothing is to be heard.
  if (conversation?.state === "listening" && levels.silence > MUTED_SECONDS) return MUTED;
  if (entries.length > 0) return "";
  return WAITING[/** @type {keyof typeof WAITING} */ (phaseOf(run))] ?? "";
}

/** @param {Run} run */
function medianAnswerMs({ entries }) {
  const all = entries.map(({ turn }) => answeredAfterMs(turn)).filter((ms) => ms !== null);
  all.sort((a, b) => a - b);
  return all[Math.floor((all.length - 1) / 2)] ?? null;
}
