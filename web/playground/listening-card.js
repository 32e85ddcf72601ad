/**
 * One listening as a card: what was heard, how loud it was, figures, and a footer that is Stop while it runs and the
 * receipt afterwards, in the same place and of the same height.
 */

import { h, icon, setIcon, setText } from "./dom.js";
import { endingOf, waitingText } from "./ending.js";
import { formatMs, formatTime, languageName, streamHue } from "./format.js";
import { LevelStrip } from "./level-strip.js";
import { isListening } from "./new-listening.js";
import { createSaves } from "./saves.js";
import { StopLine, setTone } from "./stop-line.js";
import { TranscriptView } from "./transcript-view.js";

/** @import { Ending } from "./ending.js" */
/** @import { Listening, Listenings } from "./listenings.js" */
/** @import { Entry } from "./transcript.js" */

const STATE_TEXT = {
  microphone: "recording",
  file: "transcribing",
  voice: "listening to itself",
};
const ENDED_TEXT = {
  pending: "waiting",
  finishing: "finishing",
  stopping: "stopping",
  completed: "done",
  cancelled: "stopped",
  errored: "failed",
};
/** Nothing at all, not even the noise of a room, for so long: somebody should look. */
const MUTED_SECONDS = 4;
const BLOCKED =
  "The browser runs no audio before you touch the page. Click anywhere, and it goes on.";
const MUTED = "No sound comes from this microphone. Is it muted, or is another one meant?";

export class ListeningCard {
  /** @type {Listening | null} */
  #listening = null;
  /** @type {Entry | null} */
  #pointed = null;
  #drawn = "";
  #frame = 0;

  /** @param {Listenings} listenings @param {() => void} again */
  constructor(listenings, again) {
    this.view = new TranscriptView((entry) => {
      this.#pointed = entry;
      this.drawSoon();
    });
    this.strip = new LevelStrip(() => this.drawSoon());
    this.id = h("span", { class: "card-id" });
    this.state = h("span", { class: "card-state" });
    this.language = h("span", {
      class: "hint wide-only",
      title: "The language, as detected from the first speech",
      "data-testid": "detected-language",
    });
    this.waiting = h("p", { class: "card-waiting" });
    this.view.element.append(this.waiting);
    this.heard = document.createTextNode("");
    this.whole = h("span", { class: "wide-only" });
    this.length = h(
      "span",
      { "data-testid": "audio-length", title: "Audio so far" },
      this.heard,
      this.whole,
    );
    this.first = createFigure("first-text", "first ", "text ");
    this.lag = createFigure("lag", "lag ");
    this.lag.element.title =
      "Of the newest segment: from the server's having its last audio to sending its text";
    this.revisions = createFigure("revision-count", "", "", " rev", "/seg");
    this.revisions.element.title =
      "How often a segment was revised before it was final, on average";
    this.saves = createSaves(() => this.#listening);
    this.againText = h("span", { class: "wide-only" });
    this.againIcon = icon("retry");
    this.again = h(
      "button",
      { type: "button", class: "button small", "data-testid": "listen-again", onclick: again },
      this.againIcon,
      this.againText,
    );
    this.footer = new StopLine(
      { stop: "stop-listening", receipt: "listening-receipt" },
      () => listenings.stop(this.#listening),
      this.again,
    );
    this.element = h(
      "article",
      {
        class: "card stage listening",
        "data-testid": "listening",
        "aria-label": "Transcription",
        "data-focused": "true",
      },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "dot" }),
        this.id,
        this.state,
        this.language,
        this.saves.element,
      ),
      this.view.element,
      h("div", { class: "levels" }, this.strip.element),
      h(
        "div",
        { class: "card-figures" },
        this.length,
        this.first.element,
        this.lag.element,
        this.revisions.element,
      ),
      this.footer.element,
    );
  }

  /** What changes with the state. @param {Listening | null} listening */
  render(listening) {
    this.element.hidden = listening === null;
    if (!listening) return;
    if (listening !== this.#listening) this.#begin(listening);
    const { state, stream, slotBack, source } = listening;
    this.view.keepUp();
    // What came before the stop is text like any other; it stands still from then on.
    if (state === "stopping") this.draw();
    else this.drawSoon();
    const key = `${state}/${stream?.id}/${slotBack}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.element.dataset.state = state;
    if (listening.trouble) this.element.dataset.reason = listening.trouble.code;
    else delete this.element.dataset.reason;
    if (stream?.id) {
      this.element.dataset.streamId = String(stream.id);
      this.element.style.setProperty("--hue", String(streamHue(stream.id)));
    }
    setText(this.id, stream?.id ? `#${stream.id}` : "");
    const text = state === "streaming" ? STATE_TEXT[source.kind] : ENDED_TEXT[state];
    setText(this.state, listening.trouble?.lost ? "lost" : text);
    this.#renderFooter(listening);
  }

  drawSoon() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  /** New text or sound. */
  draw() {
    if (this.#listening) this.#draw(this.#listening);
  }

  /** @param {Listening} listening */
  #begin(listening) {
    this.#listening = listening;
    this.#drawn = "";
    this.view.begin(listening.transcript);
  }

  /** @param {Listening} listening */
  #renderFooter(listening) {
    const { again } = this;
    const running = isListening(listening);
    const ending = running ? null : endingOf(listening);
    const goesOn = listening.source.kind === "microphone";
    again.hidden = running;
    setIcon(this.againIcon, goesOn ? "listen" : "retry");
    setText(this.againText, goesOn ? "Record on" : "Again");
    again.title = goesOn ? "Record on, below this text" : "Again, from the beginning";
    again.setAttribute("aria-label", goesOn ? "Record on" : "Again, from the beginning");
    setTone(this.state, ending);
    this.footer.render(listening.state, ending && withNote(ending, listening.note), again);
  }

  /** @param {Listening} listening */
  #draw(listening) {
    const { transcript, levels, talk, source } = listening;
    this.view.render();
    const waiting = waitingWords(listening);
    this.waiting.hidden = waiting === "";
    setText(this.waiting, waiting);
    const seconds = secondsOf(listening);
    const whole = source.kind === "microphone" && isListening(listening) ? null : span(listening);
    this.strip.draw({ levels, talk, seconds, whole, marked: this.#pointed });
    this.#renderFigures(listening, seconds);
    setText(this.language, transcript.language && languageName(transcript.language));
    this.saves.enable(transcript.spoken.length > 0);
  }

  /** @param {Listening} listening @param {number} seconds */
  #renderFigures({ stream, firstMs, lagMs, transcript, source }, seconds) {
    const durationMs = stream?.durationMs ?? null;
    const total = durationMs === null ? "" : ` / ${formatTime(durationMs / 1000, 1)}`;
    setText(this.heard, formatTime(seconds, 1));
    setText(this.whole, total);
    this.first.show(firstMs === null ? "" : formatMs(firstMs));
    this.first.element.title =
      source.kind === "microphone"
        ? "From the beginning of speech to its first words on this page"
        : "From asking to the first words on this page";
    this.lag.show(lagMs === null ? "" : formatMs(lagMs));
    const mean = transcript.revisionsPerSegment;
    this.revisions.show(mean === null ? "" : mean.toFixed(1));
  }
}

/**
 * A number between its words, hidden while there is none.
 * @param {string} testid @param {string} before @param {string} [more]  where there is room
 * @param {string} [after] @param {string} [end]  where there is room
 */
function createFigure(testid, before, more = "", after = "", end = "") {
  const number = document.createTextNode("");
  const wide = (/** @type {string} */ text) => text && h("span", { class: "wide-only" }, text);
  const element = h(
    "span",
    { "data-testid": testid },
    before,
    wide(more),
    number,
    after,
    wide(end),
  );
  /** @param {string} text */
  const show = (text) => {
    element.hidden = text === "";
    setText(number, text);
  };
  return { element, show };
}

/** What happened to the microphone goes first. @param {Ending} ending @param {string} note @returns {Ending} */
function withNote({ tone, mark, parts }, note) {
  if (!note) return { tone, mark, parts };
  return { tone: tone === "plain" ? "warn" : tone, mark, parts: [note, ...parts] };
}

/** Why there is no text; "" there is, or it needs no explanation. @param {Listening} listening */
function waitingWords(listening) {
  const { stream, source, levels, state } = listening;
  if (!isListening(listening) || state === "stopping") return "";
  const live = source.kind === "microphone";
  if (live && stream?.input === "blocked") return BLOCKED;
  if (live && stream?.input === "open" && levels.silence > MUTED_SECONDS) return MUTED;
  const waiting = waitingText(listening);
  if (state !== "pending" || !live || waiting === "Sent" || waiting === "") return waiting;
  return `${waiting} · recording already, nothing is lost`;
}

/** Of audio there is so far. @param {Listening} listening */
function secondsOf({ levels, beforeSeconds, stream, usage }) {
  const sent = usage?.audioMs ?? stream?.sentMs ?? 0;
  return Math.max(levels.seconds, beforeSeconds + sent / 1000);
}

/** From edge to edge of the strip. @param {Listening} listening */
function span(listening) {
  const durationMs = listening.stream?.durationMs ?? 0;
  return Math.max(secondsOf(listening), durationMs / 1000);
}
