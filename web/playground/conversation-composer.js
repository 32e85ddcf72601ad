/**
 * Where a conversation begins: one large control that is Start talking, then Interrupt; which microphone, which voice;
 * what the model is told, and when a pause is the end of a turn. It says beside itself why the browser gives no
 * microphone, and what to do. What was chosen is remembered.
 */

import { TALKING } from "./conversations.js";
import { h, icon, setIcon, setText } from "./dom.js";
import { lasting } from "./microphone.js";
import { isConversing } from "./new-conversation.js";
import { createDevicePicker } from "./recorder.js";
import { groupsOf } from "./voices.js";

/** @import { App } from "./main.js" */
/** @import { TalkOptions } from "./new-conversation.js" */

const KEYS = {
  voice: "plait.talk.voice",
  model: "plait.talk.model",
  instructions: "plait.talk.instructions",
  endOfTurn: "plait.talk.endOfTurn",
  bargeIn: "plait.talk.bargeIn",
};
const INSTRUCTIONS =
  "You are talking with a person. Answer in one or two short, plain sentences that are easy to say aloud.";
const MAX_INSTRUCTIONS = 2000;

/** @param {App} app */
export function createConversationComposer({ store, conversations }) {
  const lastingTrouble = lasting(undefined, TALKING);
  const mark = icon("listen");
  const label = h("span", {}, "Start talking");
  const start = h(
    "button",
    {
      type: "button",
      class: "button record talk",
      "data-testid": "talk",
      onclick: () => press(),
    },
    mark,
    label,
  );
  const notice = h("p", {
    class: "record-notice",
    role: "alert",
    hidden: true,
    "data-testid": "talk-trouble",
  });
  const devices = createDevicePicker("talk-device");
  const voices = createVoiceSelect();
  const options = createOptions(store);
  const toggle = h(
    "button",
    {
      type: "button",
      class: "button quiet",
      "aria-label": "Options",
      title: "Options",
      "aria-expanded": "false",
      "aria-controls": "talk-options",
      "data-testid": "talk-options-toggle",
      onclick: () => toggleOptions(),
    },
    icon("sliders"),
    h("span", { class: "wide-only" }, "Options"),
  );
  const element = h(
    "section",
    { class: "composer recorder talker", "aria-label": "Talk", onkeydown: onKey },
    notice,
    options.element,
    h(
      "div",
      { class: "composer-row" },
      start,
      h("kbd", { class: "wide-only" }, "Ctrl ↵"),
      devices.element,
      voices.element,
      h("span", { class: "spacer" }),
      toggle,
    ),
  );

  function toggleOptions() {
    options.element.hidden = !options.element.hidden;
    toggle.setAttribute("aria-expanded", String(!options.element.hidden));
    if (!options.element.hidden) options.focus();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Escape" || event.shiftKey || options.element.hidden) return;
    event.preventDefault(); // the next Esc stops the conversation
    toggleOptions();
    toggle.focus();
  }

  /** @returns {TalkOptions} */
  const read = () => ({ device: devices.read(), voice: voices.read(), ...options.read() });

  function press() {
    if (start.disabled) return;
    if (isConversing(store.state.conversation)) conversations.interrupt();
    else void conversations.start(read()).then(devices.refresh);
    store.flush();
  }

  function render() {
    const { conversation, askingToTalk, connection, talkTrouble } = store.state;
    const talking = isConversing(conversation);
    const answering = ["thinking", "speaking"].includes(conversation?.conversation?.state ?? "");
    const leaving = connection.leavingAt !== null;
    const asking = askingToTalk !== null;
    start.dataset.shape = talking ? "done" : "record";
    // While it runs, and there is nothing to interrupt, the button keeps the focus all the same.
    const idle = talking && (conversation?.state !== "running" || !answering);
    start.setAttribute("aria-disabled", String(idle));
    start.disabled = !talking && (asking || leaving || lastingTrouble !== null);
    setText(label, talking ? "Interrupt" : asking ? "Asking…" : "Start talking");
    setIcon(mark, talking ? "mute" : "listen");
    start.title = talking
      ? "Silence the answer, as talking into it does (i, or Ctrl+Enter)"
      : "Start talking (Ctrl+Enter)";
    for (const one of [devices.select, voices.select, ...options.controls]) {
      one.disabled = talking || asking;
    }
    const trouble = talking ? null : (talkTrouble ?? lastingTrouble);
    notice.hidden = trouble === null;
    setText(notice, trouble?.message ?? "");
  }

  const offer = () => voices.offer(store.state.voices ?? []);
  store.subscribe(["conversation", "connection"], render);
  store.subscribe(["connection"], offer);
  offer();
  render();
  return { element, press, read, focus: () => start.focus() };
}

function createVoiceSelect() {
  const select = h("select", {
    class: "field compact",
    "aria-label": "Voice",
    "data-testid": "talk-voice",
    onchange: () => localStorage.setItem(KEYS.voice, select.value),
  });
  const element = h("div", { class: "picker", title: "Voice" }, select);
  let shown = "";
  /** @param {string[]} ids  the default first */
  const offer = (ids) => {
    if (ids.join() === shown) return;
    shown = ids.join();
    element.hidden = ids.length < 2; // nothing to choose
    select.replaceChildren(
      ...groupsOf(ids).map(({ label, voices }) =>
        h(
          "optgroup",
          { label: label || "Voices" },
          ...voices.map(({ id, name }) => h("option", { value: id }, name)),
        ),
      ),
    );
    const before = localStorage.getItem(KEYS.voice) ?? "";
    select.value = ids.includes(before) ? before : (ids[0] ?? "");
  };
  return { element, select, offer, read: () => select.value };
}

/** @param {import("./store.js").Store} store */
function createOptions(store) {
  const instructions = h("textarea", {
    class: "field",
    rows: 2,
    maxlength: MAX_INSTRUCTIONS,
    placeholder: "None",
    "data-testid": "instructions",
    onchange: () => localStorage.setItem(KEYS.instructions, instructions.value),
  });
  instructions.value = localStorage.getItem(KEYS.instructions) ?? INSTRUCTIONS;
  const model = h("select", {
    class: "field",
    onchange: () => localStorage.setItem(KEYS.model, model.value),
  });
  const modelField = h("label", { class: "labelled" }, h("span", {}, "Model"), model);
  const pause = createPause();
  const bargeIn = h("input", {
    type: "checkbox",
    "data-testid": "barge-in",
    onchange: () => localStorage.setItem(KEYS.bargeIn, String(bargeIn.checked)),
  });
  bargeIn.checked = localStorage.getItem(KEYS.bargeIn) !== "false";
  const showModels = () => {
    const { models } = store.state;
    modelField.hidden = models.length < 2;
    if (models.join() === [...model.options].map((option) => option.value).join()) return;
    model.replaceChildren(...models.map((name) => h("option", { value: name }, name)));
    const before = localStorage.getItem(KEYS.model) ?? "";
    if (models.includes(before)) model.value = before;
  };
  store.subscribe(["connection"], showModels);
  showModels();
  const element = h(
    "div",
    { class: "options talk-options", id: "talk-options", hidden: true },
    h(
      "label",
      { class: "labelled span" },
      h("span", {}, "What the model is told first"),
      instructions,
    ),
    modelField,
    pause.element,
    h("label", { class: "check" }, bargeIn, "Talking interrupts the answer"),
  );
  return {
    element,
    controls: [instructions, model, pause.input, bargeIn],
    focus: () => instructions.focus(),
    /** @returns {Omit<TalkOptions, "device" | "voice">} */
    read: () => ({
      model: model.value,
      instructions: instructions.value.trim(),
      endOfTurnMs: pause.read(),
      bargeIn: bargeIn.checked,
    }),
  };
}

/** The silence after which a turn is over. */
function createPause() {
  const value = h("output", { class: "speed-value" });
  const input = h("input", {
    type: "range",
    class: "speed",
    min: 300,
    max: 2000,
    step: 100,
    "aria-label": "Pause that ends a turn",
    "data-testid": "end-of-turn",
    oninput: () => {
      localStorage.setItem(KEYS.endOfTurn, input.value);
      show();
    },
  });
  input.value = localStorage.getItem(KEYS.endOfTurn) ?? "600";
  const read = () => Number(input.value);
  function show() {
    setText(value, `${(read() / 1000).toFixed(1)} s`);
    input.setAttribute("aria-valuetext", `${(read() / 1000).toFixed(1)} seconds`);
  }
  show();
  const element = h(
    "label",
    { class: "labelled" },
    h("span", {}, "Pause that ends a turn"),
    h("span", { class: "speed-field" }, input, value),
  );
  return { element, input, read };
}
