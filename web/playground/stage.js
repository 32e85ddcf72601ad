/**
 * One speech as a card: its text with the word being spoken, its waveform, figures, and a footer that is Stop
 * while it sounds and the receipt afterwards, in the same place and of the same height. Waveform and word follow
 * the ear, frame by frame, while something moves and the panel is seen.
 */

import { wavOf } from "../sdk/index.js";
import { h, icon, setText } from "./dom.js";
import { computingMs, endingOf, waitingText } from "./ending.js";
import { formatMs, formatTime, streamHue } from "./format.js";
import { Reading } from "./reading.js";
import { isSpeaking } from "./speeches.js";
import { StopLine, setTone } from "./stop-line.js";
import { Waveform } from "./waveform.js";

/** @import { Speech, Speeches } from "./speeches.js" */

const STATE_TEXT = {
  pending: "waiting",
  streaming: "speaking",
  sounding: "speaking",
  stopping: "stopping",
  completed: "done",
  cancelled: "stopped",
  errored: "failed",
};
/** What English is spoken at, for a first guess of the length; marks and audio correct it. */
const CHARACTERS_PER_SECOND = 14;
const SHORTEST_SECONDS = 2;

export class Stage {
  /** @type {Speech | null} */
  #speech = null;
  #marks = 0;
  #drawn = "";
  #frame = 0;

  /** @param {Speeches} speeches @param {() => void} again */
  constructor(speeches, again) {
    this.reading = new Reading();
    this.wave = new Waveform(() => this.drawSoon());
    this.id = h("span", { class: "card-id" });
    this.state = h("span", { class: "card-state" });
    this.waiting = h("p", { class: "stage-waiting" });
    this.heard = h("span", { class: "stage-time", title: "Heard, by the audio clock" });
    this.length = h("span", { class: "stage-time", title: "Audio received so far" });
    this.firstTime = document.createTextNode("");
    this.first = h(
      "span",
      { "data-testid": "first-audio", title: "From pressing Speak to the first samples" },
      "first ",
      h("span", { class: "wide-only" }, "audio "),
      this.firstTime,
    );
    this.factor = h("span", {
      "data-testid": "real-time-factor",
      title:
        "Real-time factor: seconds computing per second of audio; below 1 it is faster than it plays",
    });
    this.gaps = h("span", { class: "gaps", title: "How often audio was not there in time" });
    this.enable = h(
      "button",
      { type: "button", class: "button primary", "data-testid": "enable-sound" },
      icon("speak"),
      h("span", {}, "Enable sound"),
    );
    this.enable.addEventListener("click", () => void this.#speech?.playback?.resume());
    this.blocked = h(
      "div",
      { class: "stage-blocked", role: "alert", hidden: true },
      h("p", {}, "The browser plays no sound before you touch the page. Nothing is lost."),
      this.enable,
    );
    this.again = h(
      "button",
      {
        type: "button",
        class: "button small",
        "data-testid": "speak-again",
        "aria-label": "Speak it again",
        onclick: again,
      },
      icon("retry"),
      h("span", { class: "wide-only" }, "Again"),
    );
    this.save = h(
      "button",
      {
        type: "button",
        class: "button small quiet",
        "data-testid": "save-wav",
        title: "Save what has arrived as a WAV file",
        onclick: () => this.#save(),
      },
      icon("down-line"),
      h("span", {}, "WAV"),
    );
    this.footer = new StopLine(
      { stop: "stop-speech", receipt: "speech-receipt" },
      () => speeches.stop(this.#speech),
      this.again,
    );
    this.element = h(
      "article",
      {
        class: "card stage",
        "data-testid": "stage",
        "aria-label": "Speech",
        "data-focused": "true",
      },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "dot" }),
        this.id,
        this.state,
        this.save,
      ),
      this.reading.element,
      h("div", { class: "stage-wave" }, this.wave.element, this.waiting, this.blocked),
      h(
        "div",
        { class: "card-figures" },
        h("span", {}, this.heard, this.length),
        this.first,
        this.factor,
        this.gaps,
      ),
      this.footer.element,
    );
  }

  /** What changes with the state. @param {Speech | null} speech */
  render(speech) {
    this.element.hidden = speech === null;
    if (!speech) return;
    if (speech !== this.#speech) this.#begin(speech);
    const { state, stream, playback, slotBack } = speech;
    this.#renderWaiting(speech);
    const key = `${state}/${stream?.id}/${playback?.state}/${slotBack}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.element.dataset.state = state;
    this.element.dataset.playback = playback?.state ?? "none";
    if (speech.trouble) this.element.dataset.reason = speech.trouble.code;
    else delete this.element.dataset.reason;
    if (stream) {
      this.element.dataset.streamId = String(stream.id);
      this.element.style.setProperty("--hue", String(streamHue(stream.id)));
    }
    setText(this.id, stream ? `#${stream.id}` : "");
    const blocked = playback?.state === "blocked";
    setText(this.state, speech.trouble?.lost ? "lost" : blocked ? "muted" : STATE_TEXT[state]);
    this.blocked.hidden = !blocked;
    this.#renderFooter(speech);
    this.drawSoon();
  }

  /** New audio: draw it with the next frame. */
  drawSoon() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#speech && this.element.isConnected) this.#draw(this.#speech);
    });
  }

  /** @param {Speech} speech */
  #begin(speech) {
    this.#speech = speech;
    this.#marks = 0;
    this.#drawn = "";
    this.reading.begin(typeof speech.ask.text === "string" ? speech.ask.text : "");
    this.wave.reset();
  }

  /** @param {Speech} speech */
  #renderWaiting(speech) {
    const text = speech.firstAt === null ? waitingText(speech) : "";
    this.waiting.hidden = text === "";
    setText(this.waiting, text);
  }

  /** @param {Speech} speech */
  #renderFooter(speech) {
    const running = isSpeaking(speech);
    const ending = running ? null : endingOf(speech);
    const heardMs = speech.playback?.heardMs ?? 0;
    if (ending && speech.state === "cancelled" && heardMs > 0)
      ending.parts = [...ending.parts, `heard ${formatMs(heardMs)}`];
    this.again.hidden = running;
    setTone(this.state, ending);
    this.footer.render(speech.state, ending, this.again);
  }

  /** @param {Speech} speech */
  #draw(speech) {
    const { playback, peaks, marks } = speech;
    for (; this.#marks < marks.length; this.#marks += 1) {
      const mark = marks[this.#marks];
      if (mark) this.reading.add(mark);
    }
    const running = isSpeaking(speech);
    const heard = (playback?.heardMs ?? 0) / 1000;
    const sounding = running && speech.state !== "stopping" && playback?.state === "playing";
    this.reading.show(heard, sounding);
    const moving = this.wave.draw(peaks, spanOf(speech), heard);
    this.#renderFigures(speech, heard);
    this.save.disabled = peaks.seconds === 0;
    if (moving || sounding) this.drawSoon();
  }

  /** @param {Speech} speech @param {number} heard  seconds */
  #renderFigures(speech, heard) {
    const { firstAt, sentAt, peaks, timing, usage, playback } = speech;
    setText(this.heard, formatTime(heard, 1));
    setText(this.length, peaks.seconds > 0 ? ` / ${formatTime(peaks.seconds, 1)}` : "");
    this.first.hidden = firstAt === null;
    setText(this.firstTime, firstAt === null ? "" : formatMs(firstAt - sentAt));
    const computedMs = computingMs(timing);
    const audioMs = usage?.audioMs ?? 0;
    const factor = computedMs !== null && audioMs > 0 ? computedMs / audioMs : null;
    setText(this.factor, factor === null ? "" : `RTF ${factor.toFixed(2)}`);
    const gaps = playback?.underruns ?? 0;
    setText(this.gaps, gaps === 0 ? "" : `${gaps} ${gaps === 1 ? "gap" : "gaps"}`);
  }

  #save() {
    if (!this.#speech) return;
    const url = URL.createObjectURL(wavOf(this.#speech.chunks));
    const voice = this.#speech.ask.voice ?? "speech";
    h("a", { href: url, download: `plait-${voice}.wav` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }
}

/** Seconds from edge to edge: what there is, or a guess of it while more comes. @param {Speech} speech */
function spanOf({ state, peaks, ask }) {
  const all = state === "sounding" || state === "completed" || state === "cancelled";
  if (all && peaks.seconds > 0) return peaks.seconds;
  const characters = typeof ask.text === "string" ? ask.text.length : 0;
  const guess = characters / CHARACTERS_PER_SECOND / (ask.speed ?? 1);
  return Math.max(SHORTEST_SECONDS, guess, peaks.seconds * 1.1);
}
