/**
 * One batch as a card: its lines, how alike they are, where they lie, how far it got, and a footer that is Stop while
 * it runs and the receipt afterwards, in the same place and of the same height.
 */

import { h, icon, setText } from "./dom.js";
import { computingMs, endingOf, waitingText } from "./ending.js";
import { formatCosine, formatCount, formatMs, plural, streamHue } from "./format.js";
import { HeatMap } from "./heat-map.js";
import { LinesView } from "./lines-view.js";
import { isEmbedding } from "./new-embedding.js";
import { Pointed } from "./pointed.js";
import { MAX_POINTS, Scatter } from "./scatter.js";
import { nearest, Similarity } from "./similarity.js";
import { StopLine, setTone } from "./stop-line.js";
import { createVectorSaves } from "./vector-saves.js";

/** @import { Embedding } from "./new-embedding.js" */
/** @import { Embeddings } from "./embeddings.js" */

const STATE_TEXT = {
  pending: "waiting",
  streaming: "embedding",
  stopping: "stopping",
  completed: "done",
  cancelled: "stopped",
  errored: "failed",
};
/** While vectors come, they are drawn so often: the page has more to do. */
const DRAWN_MS = 120;
/** Smaller cells would be noise. */
const MAX_COMPARED = 80;

export class EmbeddingCard {
  /** @type {Embedding | null} */
  #embedding = null;
  #similarity = new Similarity(MAX_COMPARED);
  #drawn = "";
  #chartedAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #charting = undefined;

  /** @param {Embeddings} embeddings @param {() => void} again */
  constructor(embeddings, again) {
    this.pointed = new Pointed(() => this.#renderPointed());
    this.lines = new LinesView(this.pointed);
    this.heat = new HeatMap(this.pointed);
    this.scatter = new Scatter(this.pointed);
    this.id = h("span", { class: "card-id" });
    this.state = h("span", { class: "card-state" });
    this.waiting = h("span", { "data-testid": "embed-waiting" });
    this.count = h("span", { "data-testid": "embed-count", title: "Lines answered, of how many" });
    this.rate = h("span", { "data-testid": "embed-rate" });
    this.left = h("span", { "data-testid": "embed-left", title: "At this rate" });
    this.size = h("span", { class: "wide-only", title: "Numbers in a vector" });
    this.bar = h("span", { class: "progress-bar" });
    this.progress = h(
      "div",
      {
        class: "progress",
        role: "progressbar",
        "aria-label": "Lines answered",
        "aria-valuemin": 0,
      },
      this.bar,
    );
    this.heatNote = h("span", { class: "hint" });
    this.scatterNote = h("span", { class: "hint" });
    this.readout = h("p", {
      class: "readout",
      "data-testid": "readout",
      "aria-live": "polite",
    });
    this.saves = createVectorSaves(() => this.#embedding);
    this.again = h(
      "button",
      {
        type: "button",
        class: "button small",
        "data-testid": "embed-again",
        "aria-label": "Embed them again",
        onclick: again,
      },
      icon("retry"),
      h("span", { class: "wide-only" }, "Again"),
    );
    this.footer = new StopLine(
      { stop: "stop-embedding", receipt: "embedding-receipt" },
      () => embeddings.stop(this.#embedding),
      this.again,
    );
    this.element = this.#createElement();
  }

  #createElement() {
    return h(
      "article",
      {
        class: "card stage embedding",
        "data-testid": "embedding",
        "aria-label": "Embeddings",
        "data-focused": "true",
      },
      h(
        "header",
        { class: "card-head" },
        h("span", { class: "dot" }),
        this.id,
        this.state,
        this.saves.element,
      ),
      this.progress,
      h(
        "div",
        { class: "embedded" },
        this.lines.element,
        h(
          "div",
          { class: "charts" },
          createChart("Similarity", this.heatNote, this.heat.element),
          createChart("Map", this.scatterNote, this.scatter.element),
          this.readout,
        ),
      ),
      h(
        "div",
        { class: "card-figures" },
        h("span", {}, this.waiting, this.count),
        this.rate,
        this.left,
        this.size,
      ),
      this.footer.element,
    );
  }

  /** What changes with the state. @param {Embedding | null} embedding */
  render(embedding) {
    this.element.hidden = embedding === null;
    if (!embedding) return;
    if (embedding !== this.#embedding) this.#begin(embedding);
    const { state, stream, slotBack } = embedding;
    setText(this.waiting, waitingText(embedding));
    this.draw();
    const key = `${state}/${stream?.id}/${slotBack}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.element.dataset.state = state;
    if (embedding.trouble) this.element.dataset.reason = embedding.trouble.code;
    else delete this.element.dataset.reason;
    if (stream) {
      this.element.dataset.streamId = String(stream.id);
      this.#paint(streamHue(stream.id));
    }
    setText(this.id, stream ? `#${stream.id}` : "");
    setText(this.state, embedding.trouble?.lost ? "lost" : STATE_TEXT[state]);
    this.#renderFooter(embedding);
  }

  /** @param {number} hue */
  #paint(hue) {
    if (this.element.style.getPropertyValue("--hue") === String(hue)) return;
    this.element.style.setProperty("--hue", String(hue));
    this.heat.recolour();
    this.scatter.recolour();
  }

  /** New vectors. */
  draw() {
    const embedding = this.#embedding;
    if (!embedding) return;
    const running = isEmbedding(embedding);
    this.lines.render();
    this.#renderFigures(embedding, running);
    this.saves.enable(embedding.items);
    const wait = this.#chartedAt + DRAWN_MS - performance.now();
    if (!running || wait <= 0) this.#drawCharts(embedding, running);
    else this.#charting ??= setTimeout(() => this.draw(), wait);
  }

  /** @param {Embedding} embedding @param {boolean} running */
  #drawCharts({ vectors, ask, items }, running) {
    clearTimeout(this.#charting);
    this.#charting = undefined;
    this.#chartedAt = performance.now();
    this.#similarity.take(vectors);
    this.heat.show(this.#similarity, running ? ask.lines.length : items);
    this.scatter.show(vectors, !running);
    if (this.pointed.now) this.#renderReadout();
  }

  /** @param {Embedding} embedding */
  #begin(embedding) {
    this.#embedding = embedding;
    this.#drawn = "";
    this.#similarity = new Similarity(MAX_COMPARED);
    this.pointed.point(null);
    this.#renderReadout();
    this.lines.begin(embedding);
    this.scatter.begin(embedding.ask.lines);
    const { length } = embedding.ask.lines;
    setText(
      this.heatNote,
      length > MAX_COMPARED ? `cosine, the first ${MAX_COMPARED} lines` : "cosine",
    );
    setText(
      this.scatterNote,
      length > MAX_POINTS
        ? `two main directions, the first ${formatCount(MAX_POINTS)} lines`
        : "two main directions",
    );
  }

  /** @param {Embedding} embedding */
  #renderFooter(embedding) {
    const running = isEmbedding(embedding);
    const ending = running ? null : endingOf(embedding);
    this.again.hidden = running;
    setTone(this.state, ending);
    this.footer.render(embedding.state, ending, this.again);
  }

  /** @param {Embedding} embedding @param {boolean} running */
  #renderFigures({ ask, items, pace, vectors, timing, usage, firstAt, state }, running) {
    const total = ask.lines.length;
    pace.note(items, performance.now());
    const pending = state === "pending";
    setText(this.count, pending ? "" : `${formatCount(items)} of ${plural(total, "line")}`);
    const live = running && firstAt !== null ? pace.perSecond : null;
    const computed = computingMs(timing);
    const overall = computed && usage?.texts ? (Number(usage.texts) / computed) * 1000 : null;
    const rate = live ?? (running ? null : overall);
    setText(this.rate, rate === null ? "" : `${formatCount(rate)} lines/s`);
    this.rate.title = running ? "In the last two seconds" : "While it was computing";
    const left = live && live > 0 ? ((total - items) / live) * 1000 : null;
    setText(this.left, left === null || items === total ? "" : `${formatMs(left)} left`);
    const dims = vectors.find((vector) => vector !== null)?.length;
    setText(this.size, dims === undefined ? "" : plural(dims, "dimension"));
    this.progress.setAttribute("aria-valuemax", String(total));
    this.progress.setAttribute("aria-valuenow", String(items));
    this.bar.style.transform = `scaleX(${total > 0 ? items / total : 1})`;
  }

  #renderPointed() {
    this.lines.renderPointed();
    this.heat.draw();
    this.scatter.draw();
    this.#renderReadout();
  }

  /** In words what is pointed at: a pair, or a line and the one it is most alike. */
  #renderReadout() {
    const { now } = this.pointed;
    const { vectors = [], ask } = this.#embedding ?? {};
    if (!now || !ask) {
      this.readout.replaceChildren(
        h(
          "span",
          { class: "hint" },
          "Point at a line, a cell or a point; or Tab there, then the arrows.",
        ),
      );
      return;
    }
    const [closest] = now.b === null ? nearest(vectors.slice(0, MAX_POINTS), now.a, 1) : [];
    const other = now.b === null ? closest?.index : now.b;
    const value = now.b === null ? closest?.cosine : this.#similarity.of(now.a, now.b);
    const between = now.b === null ? "most like" : "and";
    const line = (/** @type {number} */ index) =>
      h(
        "span",
        { class: "readout-line" },
        h("b", {}, String(index + 1)),
        ` ${ask.lines[index] ?? ""}`,
      );
    this.readout.replaceChildren(
      h(
        "span",
        { class: "readout-value" },
        value === undefined || Number.isNaN(value) ? "–" : formatCosine(value),
      ),
      h(
        "span",
        { class: "readout-lines" },
        line(now.a),
        other !== undefined &&
          other !== now.a &&
          h("span", { class: "visually-hidden" }, ` ${between} `),
        other !== undefined && other !== now.a && line(other),
      ),
    );
  }
}

/** @param {string} title @param {HTMLElement} note @param {HTMLElement} chart */
function createChart(title, note, chart) {
  return h("section", { class: "chart-tile" }, h("h2", {}, title, " ", note), chart);
}
