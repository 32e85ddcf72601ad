/** Speak: text becomes audio that begins at once, is seen and followed while it sounds, and stops at once. */

import { preparePlayback } from "../../sdk/index.js";
import { createAbsent } from "../absent.js";
import { h, icon } from "../dom.js";
import { LastStops } from "../last-stops.js";
import { panelHead } from "../panel-head.js";
import { createSpeechComposer } from "../speech-composer.js";
import { Stage } from "../stage.js";
import { Tabs } from "../tabs.js";

/** @import { App } from "../main.js" */

const SAMPLE =
  "You hear the first word of this sentence before the last one has been computed. Press Stop in the middle of it: the sound ends at once, and so does the work.";
const EXAMPLES = [
  {
    label: "Numbers, dates and money",
    text: "On 3 May 2026 at 9:30, Dr. Lee paid $4.50 for 2.5 kg of apples, about 12 % less than in 2019. Write to her at lee@example.com.",
  },
  {
    label: "A conversation",
    text: "“Is it still raining?” she asked. “No,” he said, “it stopped an hour ago. Listen: not a drop!” They opened the window, and the whole garden smelled of earth.",
  },
  {
    label: "A long text, to be stopped",
    text: "The river rose in the hills, where nobody had ever told it about the sea. It ran past a mill, and the mill turned. It ran past a town, and the town washed its shirts in it. At night it carried the lamps of the bridges on its back, very carefully, and put them down again in the morning. It asked the herons what came after the plain, but herons only speak of fish. It asked the barges, and the barges were asleep. So it went on, a little wider every day, until one evening the banks let go of it on both sides, and there was so much sky on the ground that it finally understood.",
  },
];

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new SpeakPanel(app, root);
}

class SpeakPanel {
  #app;

  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.#app = app;
    const { store, speeches } = app;
    this.composer = createSpeechComposer(app, SAMPLE, (ask) => this.#speak(ask));
    this.stage = new Stage(speeches, () => this.#again());
    this.empty = this.#createEmpty();
    this.absent = createAbsent(store, {
      testid: "no-speech",
      method: "synthesize",
      title: "This server does not speak yet",
      kind: "speech",
      model: "kokoro-82m",
      megabytes: 90,
    });
    this.stops = new LastStops("running speech");
    this.tabs = new Tabs(
      "speak",
      { name: "speech", label: "Speech", content: [this.absent, this.empty, this.stage.element] },
      () => this.#render(),
    );
    root.append(
      panelHead("Speak", [this.tabs.list], [this.stops.element]),
      this.tabs.pane,
      this.tabs.codePane,
      this.composer.element,
    );
    store.subscribe(["speech", "connection"], () => this.#render());
    store.subscribe(["audio"], () => {
      this.#render();
      this.stage.drawSoon();
    });
    store.subscribe(["panel"], () => this.stage.drawSoon());
    this.#render();
    // A device takes a moment to open. Before any gesture the browser would not let it, and say so.
    if (navigator.userActivation?.hasBeenActive) preparePlayback().catch(() => {});
  }

  focus() {
    this.composer.focus();
  }

  /** @param {import("../speeches.js").SpeechAsk} ask */
  #speak(ask) {
    this.tabs.show(false);
    this.#app.speeches.speak(ask);
    this.#app.store.flush();
  }

  #again() {
    const { speech } = this.#app.store.state;
    if (speech) this.#speak(speech.ask);
  }

  #createEmpty() {
    return h(
      "section",
      { class: "empty" },
      h("h2", {}, "Hear it begin. Stop it in mid-word."),
      h(
        "p",
        {},
        "The text below becomes speech while it is being computed. Stop is silence at once, and the receipt says how long the model took to let go.",
      ),
      h(
        "button",
        {
          type: "button",
          class: "button primary",
          "data-testid": "speak-sample",
          onclick: () => this.#speak(this.composer.read()),
        },
        icon("speak"),
        h("span", {}, "Speak the text below"),
      ),
      h("p", { class: "hint" }, "Or hear one of these:"),
      h(
        "ul",
        { class: "examples" },
        ...EXAMPLES.map(({ label, text }) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                type: "button",
                class: "example",
                onclick: () => {
                  this.composer.fill(text);
                  this.#speak(this.composer.read());
                },
              },
              label,
            ),
          ),
        ),
      ),
    );
  }

  #render() {
    const { speech, speechStops, voices, connection } = this.#app.store.state;
    const absent = connection.wasOpen && voices === null;
    this.absent.hidden = !absent;
    this.empty.hidden = absent || speech !== null;
    this.composer.element.hidden = absent || this.tabs.showsCode;
    this.stage.render(absent ? null : speech);
    this.stops.render(speechStops);
  }
}
