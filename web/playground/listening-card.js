/**
 * One listening as a card: what was heard, how loud it was, figures, and a footer that is Stop while it runs and the
 * receipt afterwards, in the same place and of the same height.
 */

import { h, icon, setIcon, setText, unbroken } from "./dom.js";
import { endingOf, waitingText } from "./ending.js";
import { formatMs, formatTime, languageName, streamHue } from "./format.js";
import { LevelStrip } from "./level-strip.js";
import { isListening } from "./new-listening.js";
import { createSaves } from "./saves.js";
import { TranscriptView } from "./transcript-view.js";

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
    this.stop = h(
      "button",
      {
        type: "button",
        class: "button stop",
        "data-testid": "stop-listening",
        onclick: () => listenings.stop(this.#listening),
      },
      icon("stop"),
      h("span", {}, "Stop"),
      h("kbd", {}, "Esc"),
    );
    this.receiptIcon = icon("check");
    this.receiptText = h("span");
    this.receipt = h(
      "p",
      { class: "receipt", "data-testid": "listening-receipt" },
      this.receiptIcon,
      this.receiptText,
    );
    this.againText = h("span", { class: "wide-only" });
    this.againIcon = icon("retry");
    this.again = h(
      "button",
      { type: "button", class: "button small", "data-testid": "listen-again", onclick: again },
      this.againIcon,
      this.againText,
    );
    this.footer = h("footer", { class: "card-foot" }, this.stop, this.receipt, this.again);
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
      this.footer,
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
    const { stop, receipt, again } = this;
    const hadFocus = this.footer.contains(document.activeElement);
    const running = isListening(listening);
    stop.hidden = !running;
    stop.disabled = listening.state === "stopping";
    setText(
      /** @type {Element} */ (stop.children[1]),
      listening.state === "stopping" ? "Stopping" : "Stop",
    );
    receipt.hidden = running;
    again.hidden = running;
    if (running) {
      delete this.state.dataset.tone;
      return;
    }
    const { tone, mark, parts } = endingOf(listening);
    const said = listening.note ? [listening.note, ...parts] : parts;
    receipt.dataset.tone = listening.note && tone === "plain" ? "warn" : tone;
    this.state.dataset.tone = tone;
    setIcon(this.receiptIcon, mark);
    this.receiptText.replaceChildren(...unbroken(said));
    receipt.title = said.join(" · ");
    const goesOn = listening.source.kind === "microphone";
    setIcon(this.againIcon, goesOn ? "listen" : "retry");
    setText(this.againText, goesOn ? "Record on" : "Again");
    again.title = goesOn ? "Record on, below this text" : "Once more, from the beginning";
    again.setAttribute("aria-label", goesOn ? "Record on" : "Once more");
    if (hadFocus) again.focus({ preventScroll: true }); // the button that had it is gone
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
