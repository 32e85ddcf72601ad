/**
 * The voice picker: a button that names the voice, and a list of all by language, each to choose or to hear.
 * One Tab stop for the list (arrows choose), one for hearing the chosen voice.
 */

import { describeVoice } from "../sdk/index.js";
import { h, icon, setIcon, setText } from "./dom.js";

/** @import { Voice } from "../sdk/types.d.ts" */

/** What a voice says of itself, in its own language. */
const GREETINGS = /** @type {Record<string, (name: string) => string>} */ ({
  es: (name) => `Hola, soy ${name}. Así sueno.`,
  fr: (name) => `Bonjour, je suis ${name}. Voici ma voix.`,
  hi: (name) => `नमस्ते, मेरा नाम ${name} है।`,
  it: (name) => `Ciao, sono ${name}. Questa è la mia voce.`,
  "pt-br": (name) => `Olá, eu sou ${name}. Esta é a minha voz.`,
  ja: () => "こんにちは。これが私の声です。",
  zh: () => "你好，这是我的声音。",
});

/** "American English, female". @param {Voice} voice */
export function detailsOf({ label, gender }) {
  return [label, gender].filter(Boolean).join(", ");
}

/** @param {Voice} voice */
export function greetingOf({ language, name }) {
  return GREETINGS[language]?.(name) ?? `Hello, I am ${name}. This is how I sound.`;
}

/** One group per language, in the order the voices come in. @param {string[]} ids */
export function groupsOf(ids) {
  /** @type {Map<string, Voice[]>} */
  const groups = new Map();
  for (const voice of ids.map(describeVoice)) {
    const group = groups.get(voice.label) ?? [];
    group.push(voice);
    groups.set(voice.label, group);
  }
  return [...groups].map(([label, voices]) => ({ label, voices }));
}

/**
 * @param {object} on
 * @param {(voice: string, text: string) => void} on.preview
 * @param {() => void} on.stopPreview
 * @param {(voice: string) => void} on.choose
 */
export function createVoicePicker({ preview, stopPreview, choose: onChoose }) {
  /** @type {Map<string, { input: HTMLInputElement, hear: HTMLButtonElement, voice: Voice }>} */
  const rows = new Map();
  let chosen = "";
  let heard = "";
  let shown = "/";
  const name = h("span", { class: "voice-name" });
  const details = h("span", { class: "voice-details wide-only" });
  const toggle = h(
    "button",
    {
      type: "button",
      class: "button quiet voice-toggle",
      "aria-expanded": "false",
      "aria-controls": "voice-list",
      "data-testid": "voice-toggle",
      title: "Choose a voice",
      onclick: () => show(list.hidden === true),
    },
    icon("voice"),
    h("span", { class: "visually-hidden" }, "Voice: "),
    name,
    details,
    icon("chevron"),
  );
  const list = h("div", { class: "voice-list", id: "voice-list", hidden: true });

  /** @param {boolean} open */
  function show(open) {
    list.hidden = !open;
    toggle.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const row = rows.get(chosen);
    row?.input.focus({ preventScroll: true });
    row?.input.closest(".voice")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} id */
  function choose(id) {
    const row = rows.get(id);
    if (!row) return;
    for (const { hear } of rows.values()) hear.tabIndex = -1;
    row.input.checked = true;
    row.hear.tabIndex = 0;
    chosen = id;
    onChoose(id);
    setText(name, row.voice.name);
    setText(details, detailsOf(row.voice));
  }

  /** @param {Voice} voice */
  function addRow(voice) {
    const { id } = voice;
    const input = h("input", {
      type: "radio",
      name: "voice",
      value: id,
      "data-testid": `voice-${id}`,
      onchange: () => choose(id),
    });
    const hear = h(
      "button",
      {
        type: "button",
        class: "icon-button hear",
        tabindex: "-1",
        title: `Hear ${voice.name}`,
        "aria-label": `Hear ${voice.name}`,
        "data-testid": `hear-${id}`,
        onclick: () => {
          if (heard === id) stopPreview();
          else preview(id, greetingOf(voice));
        },
      },
      icon("speak"),
    );
    rows.set(id, { input, hear, voice });
    return h(
      "div",
      { class: "voice" },
      h(
        "label",
        { title: id },
        input,
        h("span", { class: "voice-name" }, voice.name),
        h("span", { class: "voice-details" }, voice.gender ?? ""),
      ),
      hear,
    );
  }

  return {
    toggle,
    list,
    close: () => {
      show(false);
      toggle.focus();
    },
    isOpen: () => !list.hidden,
    read: () => chosen,
    /** @param {string[]} ids  the default first */
    offer(ids) {
      if ([...rows.keys()].sort().join() === [...ids].sort().join()) return;
      rows.clear();
      list.replaceChildren(
        ...groupsOf(ids).map(({ label, voices }) =>
          h(
            "fieldset",
            { class: "voice-group" },
            h("legend", {}, label),
            h("div", { class: "voice-grid" }, ...voices.map(addRow)),
          ),
        ),
      );
      choose(ids.includes(chosen) ? chosen : (ids[0] ?? ""));
    },
    /**
     * @param {string} id  the voice that is being heard, or was asked to be; "" none
     * @param {string} trouble  why it was not heard; "" it is
     */
    showHeard(id, trouble) {
      const key = `${id}/${trouble}`;
      if (key === shown) return;
      shown = key;
      heard = trouble ? "" : id;
      for (const [other, { hear, voice }] of rows) {
        const on = other === id;
        const mark = on ? (trouble ? "alert" : "stop") : "speak";
        hear.setAttribute("aria-pressed", String(on && !trouble));
        setIcon(/** @type {Element} */ (hear.firstElementChild), mark);
        hear.title = on ? trouble || "Stop" : `Hear ${voice.name}`;
      }
    },
  };
}
