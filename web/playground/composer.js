/** Where a question is written: prompt, options in a disclosure, how many answers side by side. */

import { h, icon } from "./dom.js";

/** @import { Ask } from "./chats.js" */

const COPIES = [1, 3, 6];

/**
 * @param {import("./store.js").Store} store
 * @param {(ask: Ask, copies: number) => void} onAsk
 */
export function createComposer(store, onAsk) {
  const input = h("textarea", {
    class: "composer-input",
    id: "composer-input",
    rows: 1,
    placeholder: "Ask something",
    "aria-label": "Prompt",
    "data-testid": "composer-input",
    oninput: () => sync(),
  });
  const send = h(
    "button",
    { type: "submit", class: "button primary", "data-testid": "send", title: "Send (Ctrl+Enter)" },
    h("span", {}, "Send"),
    icon("send"),
  );
  const options = createOptions(store);
  const toggle = h(
    "button",
    {
      type: "button",
      class: "button quiet",
      "aria-label": "Options",
      title: "Options",
      "aria-expanded": "false",
      "aria-controls": "composer-options",
      "data-testid": "options-toggle",
      onclick: () => toggleOptions(),
    },
    icon("sliders"),
    h("span", { class: "wide-only" }, "Options"),
  );
  const copies = createCopies();
  const form = h(
    "form",
    { class: "composer", "aria-label": "Ask", onsubmit: submit, onkeydown: onKey },
    options.element,
    input,
    h(
      "div",
      { class: "composer-row" },
      toggle,
      copies.element,
      h("span", { class: "spacer" }),
      h("kbd", { class: "wide-only" }, "Ctrl ↵"),
      send,
    ),
  );

  function toggleOptions() {
    options.element.hidden = !options.element.hidden;
    toggle.setAttribute("aria-expanded", String(!options.element.hidden));
    if (!options.element.hidden) options.focus();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Escape" && !event.shiftKey && !options.element.hidden) {
      event.preventDefault(); // the next Esc stops an answer
      toggleOptions();
      input.focus();
      return;
    }
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  }

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const prompt = input.value.trim();
    if (leaving()) return;
    if (!prompt) {
      input.focus();
      return;
    }
    onAsk({ prompt, ...options.read() }, copies.read());
    input.value = "";
    sync();
    input.focus();
  }

  const leaving = () => store.state.connection.leavingAt !== null;

  function sync() {
    send.disabled = leaving() || input.value.trim() === "";
    input.readOnly = leaving(); // and not disabled: what was written stays, and so does the focus
    form.classList.toggle("paused", leaving());
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, 168)}px`;
  }

  store.subscribe(["connection"], sync);
  sync();
  return {
    element: form,
    focus: () => input.focus(),
    /** @param {string} prompt @param {number} count */
    ask: (prompt, count) => {
      if (!leaving()) onAsk({ prompt, ...options.read() }, count);
    },
  };
}

function createCopies() {
  const inputs = COPIES.map((count) =>
    h("input", {
      type: "radio",
      name: "copies",
      value: count,
      "aria-label": count === 1 ? "One answer" : `${count} answers side by side`,
      checked: count === 1,
      "data-testid": `copies-${count}`,
    }),
  );
  const element = h(
    "fieldset",
    { class: "segmented", title: "How many answers to run side by side" },
    h("legend", { class: "visually-hidden" }, "Answers side by side"),
    icon("streams"),
    ...inputs.map((input) => h("label", {}, input, h("span", {}, `×${input.value}`))),
    h("span", { class: "caption wide-only", "aria-hidden": "true" }, "side by side"),
  );
  return { element, read: () => Number(inputs.find((input) => input.checked)?.value ?? 1) };
}

/** @param {import("./store.js").Store} store */
function createOptions(store) {
  const model = h("select", { class: "field" });
  const system = h("textarea", { class: "field", rows: 2, placeholder: "None" });
  const maxTokens = number({
    min: 1,
    step: 1,
    placeholder: "the server's cap",
    "data-testid": "max-tokens",
  });
  const temperature = number({ min: 0, max: 10, step: 0.1, placeholder: "0.7" });
  const seed = number({ min: 0, max: 2 ** 32 - 1, step: 1, placeholder: "random" });
  const modelField = field("Model", model);
  const element = h(
    "div",
    { class: "options", id: "composer-options", hidden: true },
    field("System prompt", system, "span"),
    modelField,
    field("Max tokens", maxTokens),
    field("Temperature", temperature),
    field("Seed", seed),
  );
  const showModels = () => {
    const { models } = store.state;
    modelField.hidden = models.length < 2;
    if (models.join() === [...model.options].map((option) => option.value).join()) return;
    const chosen = model.value;
    model.replaceChildren(...models.map((name) => h("option", { value: name }, name)));
    if (models.includes(chosen)) model.value = chosen;
  };
  store.subscribe(["connection"], showModels);
  showModels();
  /** @returns {Omit<Ask, "prompt">} */
  const read = () => ({
    ...(model.value && { model: model.value }),
    ...(system.value.trim() && { system: system.value.trim() }),
    ...(maxTokens.value && { maxTokens: Number(maxTokens.value) }),
    ...(temperature.value && { temperature: Number(temperature.value) }),
    ...(seed.value && { seed: Number(seed.value) }),
  });
  return { element, read, focus: () => system.focus() };
}

/** @param {import("./dom.js").Props} props */
function number(props) {
  return h("input", { type: "number", class: "field", inputmode: "decimal", ...props });
}

/** @param {string} label @param {HTMLElement} control @param {string} [extra] */
function field(label, control, extra = "") {
  return h("label", { class: `labelled ${extra}`.trim() }, h("span", {}, label), control);
}
