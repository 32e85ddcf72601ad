/** Where a text to speak is written: the text, a voice, a speed. */

import { h, icon, setText } from "./dom.js";
import { createVoicePicker } from "./voices.js";

/** @import { App } from "./main.js" */
/** @import { SpeechAsk } from "./speeches.js" */

const SLOWEST = 0.5;
const FASTEST = 2;
const MAX_INPUT_PIXELS = 168;

/**
 * @param {App} app
 * @param {string} text  to begin with
 * @param {(ask: SpeechAsk) => void} onSpeak
 */
export function createSpeechComposer(app, text, onSpeak) {
  const { store, speeches } = app;
  const input = h("textarea", {
    class: "composer-input",
    rows: 2,
    placeholder: "Write something to hear",
    "aria-label": "Text to speak",
    "data-testid": "speech-input",
    oninput: () => sync(),
  });
  input.value = text;
  const voices = createVoicePicker({
    preview: (voice, sentence) => speeches.preview(voice, sentence),
    choose: (voice) => {
      store.state.voice = voice;
    },
    stopPreview: () => speeches.stop(store.state.preview?.speech ?? null),
  });
  const speed = createSpeed();
  const speak = h(
    "button",
    {
      type: "submit",
      class: "button primary",
      "data-testid": "speak",
      title: "Speak (Ctrl+Enter)",
    },
    h("span", {}, "Speak"),
    icon("speak"),
  );
  const form = h(
    "form",
    {
      class: "composer speech-composer",
      "aria-label": "Speak",
      onsubmit: submit,
      onkeydown: onKey,
    },
    voices.list,
    input,
    h(
      "div",
      { class: "composer-row" },
      voices.toggle,
      speed.element,
      h("span", { class: "spacer" }),
      h("kbd", { class: "wide-only" }, "Ctrl ↵"),
      speak,
    ),
  );

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape" && !event.shiftKey && voices.isOpen()) {
      event.preventDefault(); // the next Esc stops the speech
      voices.close();
      return;
    }
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  }

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    if (leaving()) return;
    if (input.value.trim() === "") input.focus();
    else onSpeak(read());
  }

  const read = () => ({
    text: input.value,
    ...(voices.read() && { voice: voices.read() }),
    ...(speed.read() !== 1 && { speed: speed.read() }),
  });
  const leaving = () => store.state.connection.leavingAt !== null;

  function sync() {
    speak.disabled = leaving() || input.value.trim() === "";
    input.readOnly = leaving();
    form.classList.toggle("paused", leaving());
    if (input.offsetParent === null) return; // not seen: it has no height yet
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, MAX_INPUT_PIXELS)}px`;
  }

  const showHeard = () => {
    const { preview } = store.state;
    const { state, trouble } = preview?.speech ?? {};
    const heard = ["pending", "streaming", "sounding"].includes(state ?? "");
    voices.showHeard(preview && (heard || trouble) ? preview.voice : "", trouble?.message ?? "");
  };
  store.subscribe(["connection"], () => {
    voices.offer(store.state.voices ?? []);
    sync();
  });
  store.subscribe(["panel"], sync);
  store.subscribe(["speech"], showHeard);
  voices.offer(store.state.voices ?? []);
  sync();
  return {
    element: form,
    focus: () => {
      sync();
      input.focus();
    },
    read,
    /** @param {string} sample */
    fill: (sample) => {
      input.value = sample;
      sync();
    },
  };
}

function createSpeed() {
  const value = h("output", { class: "speed-value" }, "1.0×");
  const input = h("input", {
    type: "range",
    class: "speed",
    min: SLOWEST,
    max: FASTEST,
    step: 0.1,
    value: 1,
    "aria-label": "Speed",
    "data-testid": "speed",
    oninput: () => show(),
    ondblclick: () => {
      input.value = "1";
      show();
    },
  });
  const read = () => Number(input.value);
  function show() {
    setText(value, `${read().toFixed(1)}×`);
    input.setAttribute("aria-valuetext", `${read().toFixed(1)} times`);
  }
  const element = h(
    "label",
    { class: "speed-field", title: "Speed; double-click for normal" },
    h("span", { class: "wide-only" }, "Speed"),
    input,
    value,
  );
  return { element, read };
}
