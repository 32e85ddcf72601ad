/**
 * Where listening begins: one large control that is Record, then Done; which microphone; which language; a file. It
 * says beside itself why the browser gives no microphone, and what to do.
 */

import { h, icon, setIcon, setText } from "./dom.js";
import { formatTime, languageName } from "./format.js";
import {
  lasting,
  listMicrophones,
  rememberedMicrophone,
  rememberMicrophone,
} from "./microphone.js";
import { isListening, isOpen } from "./new-listening.js";

/** @import { App } from "./main.js" */
/** @import { Listening, Options } from "./listenings.js" */

const LANGUAGE_KEY = "plait.language";

/** @param {App} app @param {(file: File) => void} onFile */
export function createRecorder({ store, listenings }, onFile) {
  const lastingTrouble = lasting();
  const mark = icon("listen");
  const label = h("span", {}, "Record");
  const time = h("span", { class: "record-time" });
  const record = h(
    "button",
    { type: "button", class: "button record", "data-testid": "record", onclick: () => press() },
    mark,
    label,
    time,
  );
  const notice = h("p", {
    class: "record-notice",
    role: "alert",
    hidden: true,
    "data-testid": "microphone-trouble",
  });
  const devices = createDevicePicker();
  const languages = createLanguagePicker();
  const file = createFilePicker(onFile);
  const element = h(
    "section",
    { class: "composer recorder", "aria-label": "What to listen to" },
    notice,
    h(
      "div",
      { class: "composer-row" },
      record,
      h("kbd", { class: "wide-only" }, "Ctrl ↵"),
      devices.element,
      languages.element,
      h("span", { class: "spacer" }),
      file.element,
    ),
  );

  /** @returns {Options} */
  const read = () => ({ device: devices.read(), language: languages.read() });

  function press() {
    if (record.disabled) return;
    if (isOpen(store.state.listening)) listenings.finish();
    else void listenings.record(read()).then(devices.refresh);
    store.flush();
  }

  function render() {
    const { listening, asking, connection, microphoneTrouble } = store.state;
    const { text, shape, busy } = controlOf(listening, asking !== null);
    const leaving = connection.leavingAt !== null;
    record.dataset.shape = shape;
    record.disabled = busy || (shape === "record" && (leaving || lastingTrouble !== null));
    setText(label, text);
    setIcon(mark, shape === "done" ? "check" : "listen");
    record.title =
      shape === "done"
        ? "No more is said: all of it becomes final (Ctrl+Enter)"
        : "Record (Ctrl+Enter)";
    const idle = !isListening(listening) && asking === null;
    for (const one of [devices.select, languages.select, file.button]) {
      one.disabled = !idle || leaving;
    }
    const trouble = isListening(listening) ? null : (microphoneTrouble ?? lastingTrouble);
    notice.hidden = trouble === null;
    setText(notice, trouble?.message ?? "");
    renderTime();
  }

  function renderTime() {
    const { listening } = store.state;
    const shown = listening?.source.kind === "microphone" && isOpen(listening);
    setText(time, shown ? formatTime(listening.levels.seconds) : "");
  }

  store.subscribe(["listening", "connection"], render);
  store.subscribe(["heard"], renderTime);
  store.subscribe(["connection"], () => languages.offer(store.state.hearing?.languages ?? []));
  languages.offer(store.state.hearing?.languages ?? []);
  render();
  return { element, press, read, focus: () => record.focus(), choose: file.choose };
}

/** @param {Listening | null} listening @param {boolean} asking */
function controlOf(listening, asking) {
  if (asking) return { text: "Asking…", shape: "record", busy: true };
  if (isOpen(listening)) return { text: "Done", shape: "done", busy: false };
  if (listening?.state === "finishing") return { text: "Finishing", shape: "done", busy: true };
  return { text: "Record", shape: "record", busy: isListening(listening) };
}

export function createDevicePicker(testid = "device") {
  const select = h("select", {
    class: "field compact",
    "aria-label": "Microphone",
    "data-testid": testid,
    onchange: () => rememberMicrophone(select.value),
  });
  const element = h("div", { class: "picker", title: "Microphone" }, select);
  let shown = "/";

  async function refresh() {
    const found = await listMicrophones();
    const key = JSON.stringify(found);
    if (key === shown) return;
    shown = key;
    const remembered = rememberedMicrophone();
    select.replaceChildren(
      h("option", { value: "" }, "Default microphone"),
      ...found.map(({ id, label }) => h("option", { value: id }, label)),
    );
    select.value = found.some(({ id }) => id === remembered) ? remembered : "";
  }

  select.append(h("option", { value: "" }, "Default microphone"));
  if (!lasting()) {
    navigator.mediaDevices.addEventListener("devicechange", () => void refresh());
    void refresh();
  } else element.hidden = true;
  // Before one was allowed the list has no names; the one chosen last time is good all the same.
  return { element, select, refresh, read: () => select.value || rememberedMicrophone() };
}

function createLanguagePicker() {
  const select = h("select", {
    class: "field compact",
    "aria-label": "Language",
    "data-testid": "language",
    onchange: () => localStorage.setItem(LANGUAGE_KEY, select.value),
  });
  const element = h("div", { class: "picker", title: "Language", hidden: true }, select);
  let shown = "";
  /** @param {string[]} codes */
  const offer = (codes) => {
    if (codes.join() === shown) return;
    shown = codes.join();
    element.hidden = codes.length < 2; // nothing to choose
    const offered = codes
      .map((code) => ({ code, name: languageName(code) }))
      .sort((a, b) => a.name.localeCompare(b.name, "en"));
    const before = localStorage.getItem(LANGUAGE_KEY) ?? "";
    select.replaceChildren(
      h("option", { value: "" }, "Detect language"),
      ...offered.map(({ code, name }) => h("option", { value: code }, name)),
    );
    select.value = codes.includes(before) ? before : "";
  };
  return { element, select, offer, read: () => (element.hidden ? "" : select.value) };
}

/** @param {(file: File) => void} onFile */
function createFilePicker(onFile) {
  const input = h("input", {
    type: "file",
    accept: "audio/*,video/*",
    hidden: true,
    "data-testid": "file-input",
    onchange: () => {
      const [file] = input.files ?? [];
      input.value = ""; // the same file may be chosen again
      if (file) onFile(file);
    },
  });
  const choose = () => input.click();
  const button = h(
    "button",
    {
      type: "button",
      class: "button quiet",
      "data-testid": "choose-file",
      "aria-label": "Choose a file",
      title: "Transcribe a file",
      onclick: choose,
    },
    icon("file"),
    h("span", { class: "wide-only" }, "Choose a file"),
  );
  return { element: h("div", {}, input, button), button, choose };
}
