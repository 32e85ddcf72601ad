/**
 * What this page embeds: one batch of lines at a time. State only; panels draw it. Everything goes through the public
 * SDK, and a receipt holds only what the server's terminal said.
 *
 * @typedef {import("./new-embedding.js").Embedding} Embedding
 * @typedef {import("./new-embedding.js").EmbedAsk} EmbedAsk
 */

import { keepStop, showsSlotBack, stoppedText, troubleFrom } from "./ending.js";
import { formatCount, plural } from "./format.js";
import { blankEmbedding, isEmbedding } from "./new-embedding.js";

export class Embeddings {
  #store;
  #client;
  #announce;
  #onEdge;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => import("../sdk/types.d.ts").Plait} client
   * @param {(text: string) => void} announce
   * @param {() => void} onEdge  a stream started or ended: counters are worth reading now
   */
  constructor(store, client, announce, onEdge) {
    this.#store = store;
    this.#client = client;
    this.#announce = announce;
    this.#onEdge = onEdge;
  }

  /** What still runs stops. @param {EmbedAsk} ask */
  embed(ask) {
    this.stopAll();
    const embedding = blankEmbedding(ask);
    this.#store.state.embedding = embedding;
    this.#store.changed("embedding", "vectors");
    const { lines, model, truncate } = ask;
    try {
      const stream = this.#client().embed.create({
        texts: lines,
        ...(model && { model }),
        truncate,
        stream: true,
      });
      embedding.stream = stream;
      void this.#read(embedding, stream);
    } catch (error) {
      this.#failed(embedding, error);
    }
  }

  /** Nothing is added from this tick on; the receipt comes with the terminal. @param {Embedding | null} embedding */
  stop(embedding) {
    if (!embedding?.stream || !isEmbedding(embedding) || embedding.state === "stopping") return;
    embedding.state = "stopping";
    this.#store.changed("embedding");
    embedding.stream.cancel().then((receipt) => this.#stopped(embedding, receipt));
    this.#store.flush();
  }

  /** What Esc means. */
  focused() {
    const { embedding } = this.#store.state;
    return embedding && isEmbedding(embedding) && embedding.state !== "stopping" ? embedding : null;
  }

  stopAll() {
    this.stop(this.#store.state.embedding);
  }

  /** A frame of this stream arrived; its state may have moved. @param {number} id */
  noticeFrame(id) {
    const { embedding } = this.#store.state;
    if (embedding?.stream?.id !== id || embedding.state !== "pending") return;
    if (embedding.stream.state === "streaming") this.#began(embedding);
    else this.#store.changed("embedding");
  }

  /** New figures of the server: they may show that a late release is over. */
  noticeSample() {
    const { embedding, sample } = this.#store.state;
    if (!embedding || !sample || embedding.slotBack || !showsSlotBack(embedding, sample)) return;
    embedding.slotBack = true;
    this.#store.changed("embedding");
  }

  /**
   * @param {Embedding} embedding
   * @param {import("../sdk/types.d.ts").EmbeddingStream} stream
   */
  async #read(embedding, stream) {
    // Once stopped, the word is with stop().
    const mine = () => isEmbedding(embedding) && embedding.state !== "stopping";
    try {
      for await (const answer of stream) if (mine()) this.#received(embedding, answer);
      const end = await stream.done;
      if (mine()) this.#completed(embedding, end);
    } catch (error) {
      const end = await stream.done;
      if (!mine()) return;
      embedding.usage = end.usage;
      if (end.state === "cancelled") this.#stopped(embedding, end);
      else this.#failed(embedding, error);
    }
  }

  /** @param {Embedding} embedding */
  #began(embedding) {
    embedding.state = "streaming";
    embedding.pace.note(0, performance.now());
    this.#store.changed("embedding");
    this.#announce("Embedding.");
    this.#onEdge();
  }

  /** @param {Embedding} embedding @param {import("../sdk/types.d.ts").Embedding} answer */
  #received(embedding, { index, embedding: vector, error, truncated }) {
    if (embedding.state === "pending") this.#began(embedding);
    embedding.firstAt ??= performance.now();
    embedding.vectors[index] = vector ?? null;
    if (error) embedding.failures.set(index, { code: error.code, message: reasonOf(error) });
    if (truncated) embedding.cut.add(index);
    embedding.items = index + 1;
    this.#store.changed("vectors");
  }

  /** @param {Embedding} embedding @param {import("../sdk/types.d.ts").End} end */
  #completed(embedding, end) {
    embedding.usage = end.usage;
    embedding.timing = end.timing;
    if (end.state === "completed") embedding.finishReason = end.finishReason ?? null;
    this.#ended(embedding, "completed");
    const failed = embedding.failures.size;
    const lack = failed === 0 ? "" : ` ${plural(failed, "line has", "lines have")} no vector.`;
    this.#announce(`Embedded ${plural(embedding.items - failed, "line")}.${lack}`);
  }

  /** @param {Embedding} embedding @param {import("../sdk/types.d.ts").Cancel} receipt */
  #stopped(embedding, receipt) {
    embedding.usage = receipt.usage ?? embedding.usage;
    embedding.receipt = receipt;
    this.#ended(embedding, "cancelled");
    keepStop(this.#store.state.embeddingStops, embedding);
    this.#announce(stoppedText("Embedding", receipt));
  }

  /** @param {Embedding} embedding @param {any} error  a PlaitError, or what the browser threw */
  #failed(embedding, error) {
    embedding.trouble = troubleFrom(error);
    this.#ended(embedding, "errored");
    this.#announce(`Embedding failed: ${embedding.trouble.message}`);
  }

  /** @param {Embedding} embedding @param {import("./new-embedding.js").EmbeddingState} state */
  #ended(embedding, state) {
    embedding.state = state;
    embedding.endedAt = performance.now();
    this.#store.changed("embedding", "vectors");
    this.#onEdge();
  }
}

/** In the words of this page, where it has the control that helps. @param {import("../sdk/types.d.ts").PlaitError} error */
function reasonOf({ code, message, data }) {
  const { tokens, limit } = data;
  if (code !== "input_too_long" || typeof tokens !== "number" || typeof limit !== "number")
    return message;
  return `${formatCount(tokens)} tokens, and the model reads ${formatCount(limit)}. With “Cut long lines” its beginning is embedded.`;
}
