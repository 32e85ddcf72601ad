/** Embed: lines become vectors; what is alike is seen to be, while it comes, and it stops in the middle of a batch. */

import { createAbsent } from "../absent.js";
import { h, icon } from "../dom.js";
import { createEmbedComposer } from "../embed-composer.js";
import { EmbeddingCard } from "../embedding-card.js";
import { LastStops } from "../last-stops.js";
import { panelHead } from "../panel-head.js";
import { Tabs } from "../tabs.js";

/** @import { App } from "../main.js" */
/** @import { EmbedAsk } from "../new-embedding.js" */

const SAMPLE = [
  "How do I reset my password?",
  "I cannot log in any more",
  "My account is locked",
  "Where is my parcel?",
  "The delivery is two days late",
  "Track an order",
  "I would like my money back",
  "How long does a refund take?",
  "The shoes arrived in the wrong size",
  "Do you ship to Norway?",
  "The app crashes when I open it",
  "Nothing happens when I press the button",
];
const EXAMPLES = [
  {
    label: "Things in a house, a town and a sky",
    lines: [
      "kettle",
      "saucepan",
      "frying pan",
      "armchair",
      "bookshelf",
      "tram stop",
      "traffic light",
      "town hall",
      "bicycle lane",
      "Jupiter",
      "the full moon",
      "a shooting star",
    ],
  },
  {
    label: "The same, said otherwise",
    lines: [
      "The meeting was moved to Friday.",
      "They postponed the meeting until the end of the week.",
      "It rained all night.",
      "There was heavy rain until the morning.",
      "She plays the violin in an orchestra.",
      "She is a violinist.",
      "Prices rose by two percent.",
      "Inflation was at two percent.",
    ],
  },
];
const MANY = 2_000;
const WHO = ["The gardener", "A nurse", "My neighbour", "The pilot", "An old sailor", "The baker"];
const DID = ["repaired", "painted", "sold", "lost", "found", "borrowed", "cleaned", "drew"];
const WHAT = [
  "a bicycle",
  "the fence",
  "two lamps",
  "a violin",
  "the boat",
  "an umbrella",
  "a map",
];
const WHEN = [
  "on Monday",
  "in the rain",
  "before lunch",
  "last winter",
  "at the harbour",
  "for fun",
];

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new EmbedPanel(app, root);
}

class EmbedPanel {
  #app;

  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.#app = app;
    const { store, embeddings } = app;
    this.composer = createEmbedComposer(app, SAMPLE.join("\n"), (ask) => this.#embed(ask));
    this.card = new EmbeddingCard(embeddings, () => this.#again());
    this.empty = this.#createEmpty();
    this.absent = createAbsent(store, {
      testid: "no-embedding",
      method: "embed",
      title: "This server does not embed yet",
      kind: "embedding",
      model: "all-minilm-l6-v2",
      megabytes: 91,
    });
    this.stops = new LastStops("running batches");
    this.tabs = new Tabs(
      "embed",
      { name: "vectors", label: "Vectors", content: [this.absent, this.empty, this.card.element] },
      () => this.#render(),
    );
    root.append(
      panelHead("Embed", [this.tabs.list], [this.stops.element]),
      this.tabs.pane,
      this.tabs.codePane,
      this.composer.element,
    );
    store.subscribe(["embedding", "connection"], () => this.#render());
    store.subscribe(["vectors"], () => this.card.draw());
    this.#render();
  }

  focus() {
    this.composer.focus();
  }

  press() {
    const ask = this.composer.read();
    if (ask.lines.length > 0 && !this.composer.element.hidden) this.#embed(ask);
  }

  /** @param {EmbedAsk} ask */
  #embed(ask) {
    this.tabs.show(false);
    this.#app.embeddings.embed(ask);
    this.#app.store.flush();
  }

  #again() {
    const { embedding } = this.#app.store.state;
    if (embedding) this.#embed(embedding.ask);
  }

  /** @param {string} label @param {() => string[]} lines @param {string} [testid] */
  #createExample(label, lines, testid) {
    return h(
      "li",
      {},
      h(
        "button",
        {
          type: "button",
          class: "example",
          "data-testid": testid,
          onclick: () => {
            this.composer.fill(lines().join("\n"));
            this.#embed(this.composer.read());
          },
        },
        label,
      ),
    );
  }

  #createEmpty() {
    return h(
      "section",
      { class: "empty" },
      h("h2", {}, "Lines become vectors. What is alike lies near."),
      h(
        "p",
        {},
        "Every line gets a vector, in order, as it is computed. A long batch stops in the middle: the vectors so far are kept, and the receipt says how long the model took to let go.",
      ),
      h(
        "button",
        {
          type: "button",
          class: "button primary",
          "data-testid": "embed-sample",
          onclick: () => this.#embed(this.composer.read()),
        },
        icon("embed"),
        h("span", {}, "Embed the lines below"),
      ),
      h("p", { class: "hint" }, "Or one of these:"),
      h(
        "ul",
        { class: "examples" },
        ...EXAMPLES.map(({ label, lines }) => this.#createExample(label, () => lines)),
        this.#createExample("2,000 lines, to be stopped", manyLines, "embed-many"),
      ),
    );
  }

  #render() {
    const { embedding, embeddingStops, embedModels, connection } = this.#app.store.state;
    const absent = connection.wasOpen && embedModels === null;
    this.absent.hidden = !absent;
    this.empty.hidden = absent || embedding !== null;
    this.composer.element.hidden = absent || this.tabs.showsCode;
    this.card.render(absent ? null : embedding);
    this.stops.render(embeddingStops);
  }
}

/** No two alike, and every few are about the same. */
function manyLines() {
  return Array.from({ length: MANY }, (_, i) => {
    const [who, did, what, when] = [WHO, DID, WHAT, WHEN].map((words, place) => {
      const step = [1, 6, 48, 336][place] ?? 1;
      return words[Math.floor(i / step) % words.length];
    });
    return `${who} ${did} ${what} ${when}.`;
  });
}
