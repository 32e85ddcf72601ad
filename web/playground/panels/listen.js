/** Listen: speech becomes text that is revised while it is spoken, settles when it is certain, and stops at once. */

import { createAbsent } from "../absent.js";
import { h, icon } from "../dom.js";
import { LastStops } from "../last-stops.js";
import { ListeningCard } from "../listening-card.js";
import { isListening } from "../new-listening.js";
import { panelHead } from "../panel-head.js";
import { createRecorder } from "../recorder.js";
import { Tabs } from "../tabs.js";

/** @import { App } from "../main.js" */

const OWN_VOICE =
  "The words appear while they are spoken. First they are a guess, in lighter ink. When the sentence is over they settle, and never change again.";

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new ListenPanel(app, root);
}

class ListenPanel {
  #app;

  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.#app = app;
    const { store, listenings } = app;
    this.recorder = createRecorder(app, (file) => this.#transcribe(file));
    this.card = new ListeningCard(listenings, () => {
      listenings.again(this.recorder.read());
      store.flush();
    });
    this.empty = this.#createEmpty();
    this.absent = createAbsent(store, {
      testid: "no-listening",
      method: "transcribe",
      title: "This server does not listen yet",
      kind: "transcription",
      model: "whisper-tiny.en",
      megabytes: 80,
    });
    this.stops = new LastStops("running transcriptions");
    this.tabs = new Tabs(
      "listen",
      {
        name: "transcript",
        label: "Transcript",
        content: [this.absent, this.empty, this.card.element],
      },
      () => this.#render(),
    );
    this.drop = h("p", { class: "drop", hidden: true }, "Drop it: it is transcribed at once");
    root.append(
      panelHead("Listen", [this.tabs.list], [this.stops.element]),
      this.tabs.pane,
      this.tabs.codePane,
      this.recorder.element,
      this.drop,
    );
    this.#acceptDrops(root);
    store.subscribe(["listening", "connection", "panel"], () => this.#render());
    store.subscribe(["heard"], () => this.card.draw());
    this.#render();
  }

  focus() {
    this.recorder.focus();
  }

  press() {
    this.tabs.show(false);
    this.recorder.press();
  }

  /** @param {File} file */
  #transcribe(file) {
    this.tabs.show(false);
    this.#app.listenings.transcribe(file, this.recorder.read());
    this.#app.store.flush();
  }

  /** Anywhere on the panel. @param {HTMLElement} root */
  #acceptDrops(root) {
    const busy = () => isListening(this.#app.store.state.listening) || this.#absent();
    root.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = busy() ? "none" : "copy";
      this.drop.hidden = busy();
    });
    root.addEventListener("dragleave", (event) => {
      if (!root.contains(/** @type {Node | null} */ (event.relatedTarget))) this.drop.hidden = true;
    });
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      this.drop.hidden = true;
      const [file] = event.dataTransfer?.files ?? [];
      if (file && !busy()) this.#transcribe(file);
    });
  }

  #createEmpty() {
    this.voice = h(
      "button",
      {
        type: "button",
        class: "example",
        "data-testid": "own-voice",
        onclick: () => {
          this.#app.listenings.overhear(OWN_VOICE, this.recorder.read());
          this.#app.store.flush();
        },
      },
      "Let it listen to its own voice",
    );
    return h(
      "section",
      { class: "empty" },
      h("h2", {}, "Speak, and read along"),
      h(
        "p",
        {},
        "Press Record: words appear while you say them, in lighter ink until they are certain. Done lets it finish. Stop ends it in the middle of a word, and the receipt says how long the model took to let go.",
      ),
      h(
        "div",
        { class: "drop-zone", "data-testid": "drop-zone" },
        icon("file"),
        h("p", {}, "Drop an audio file anywhere on this panel, or"),
        h(
          "button",
          { type: "button", class: "button small", onclick: () => this.recorder.choose() },
          "Choose a file",
        ),
      ),
      this.voice,
    );
  }

  #absent() {
    const { hearing, connection } = this.#app.store.state;
    return connection.wasOpen && hearing === null;
  }

  #render() {
    const { listening, listeningStops, voices } = this.#app.store.state;
    const absent = this.#absent();
    this.absent.hidden = !absent;
    this.empty.hidden = absent || listening !== null;
    if (this.voice) this.voice.hidden = voices === null;
    this.recorder.element.hidden = absent || this.tabs.showsCode;
    this.card.render(absent ? null : listening);
    this.stops.render(listeningStops);
  }
}
