/**
 * One batch of lines that are embedded: what is known of it, how it begins, how fast it goes. State only.
 *
 * @typedef {"pending" | "streaming" | "stopping" | "completed" | "cancelled" | "errored"} EmbeddingState
 *
 * @typedef {object} EmbedAsk
 * @property {string[]} lines
 * @property {string} [model]
 * @property {boolean} truncate
 *
 * @typedef {object} Failure
 * @property {string} code
 * @property {string} message
 *
 * @typedef {object} Embedding
 * @property {"embedding"} kind
 * @property {EmbedAsk} ask
 * @property {EmbeddingState} state
 * @property {import("../sdk/types.d.ts").EmbeddingStream | null} stream
 * @property {(Float32Array | null)[]} vectors  by line, of those answered; null: it has none
 * @property {Map<number, Failure>} failures  by line
 * @property {Set<number>} cut  lines that were too long
 * @property {Pace} pace
 * @property {number} items  lines answered
 * @property {number} sentAt
 * @property {number | null} firstAt
 * @property {number | null} endedAt
 * @property {import("../sdk/types.d.ts").Usage | null} usage
 * @property {import("../sdk/types.d.ts").Timing | null} timing
 * @property {string | null} finishReason
 * @property {import("../sdk/types.d.ts").Cancel | null} receipt
 * @property {boolean} slotBack  a release that was late is over: the server's gauges show it
 * @property {import("./chats.js").Trouble | null} trouble
 */

/** Whose vectors this page keeps: some 30 MB. The SDK takes any number. */
export const MAX_LINES = 20_000;
/** What the rate is measured over. */
const PACE_MS = 2_000;

/** @param {Embedding | null} embedding */
export function isEmbedding(embedding) {
  return embedding !== null && ["pending", "streaming", "stopping"].includes(embedding.state);
}

/** Each line that says something is a text of its own. @param {string} text */
export function linesOf(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** How fast lines are answered, lately. */
export class Pace {
  /** @type {{ at: number, done: number }[]} */
  #marks = [];

  /** @param {number} done  in all @param {number} at  milliseconds */
  note(done, at) {
    const last = this.#marks.at(-1);
    if (last && last.at === at) last.done = done;
    else this.#marks.push({ at, done });
    while (this.#marks[1] && this.#marks[1].at < at - PACE_MS) this.#marks.shift();
  }

  /** Lines a second; null: it cannot be said yet. */
  get perSecond() {
    const [first] = this.#marks;
    const last = this.#marks.at(-1);
    if (!first || !last || last.at === first.at) return null;
    return ((last.done - first.done) / (last.at - first.at)) * 1000;
  }
}

/** @param {EmbedAsk} ask @returns {Embedding} */
export function blankEmbedding(ask) {
  return {
    kind: "embedding",
    ask,
    state: "pending",
    stream: null,
    vectors: [],
    failures: new Map(),
    cut: new Set(),
    pace: new Pace(),
    items: 0,
    sentAt: performance.now(),
    firstAt: null,
    endedAt: null,
    usage: null,
    timing: null,
    finishReason: null,
    receipt: null,
    slotBack: false,
    trouble: null,
  };
}
