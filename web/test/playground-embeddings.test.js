/** The life of a batch in the page, over a client whose streams a test drives by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Embeddings } from "../playground/embeddings.js";
import { Store } from "../playground/store.js";

const RECEIPT = { by: "client", released: true, stopMs: 14, wasted: { texts: 0 }, usage: {} };
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A stream as the SDK's is seen from here. */
class ScriptedStream {
  state = "streaming";
  queue = null;
  started = { model: "m" };
  cancelled = 0;
  #items = [];
  #wake = () => {};

  constructor(id) {
    this.id = id;
    this.done = new Promise((resolve) => {
      this.settleDone = resolve;
    });
  }

  give(...answers) {
    this.#items.push(...answers);
    this.#wake();
  }

  end(terminal) {
    this.settleDone({ usage: {}, timing: {}, ...terminal });
    this.give(null);
  }

  fail(code) {
    this.settleDone({ state: "errored", usage: null });
    this.give(Object.assign(new Error("it broke"), { code }));
  }

  async cancel() {
    this.cancelled += 1;
    return new Promise((resolve) => {
      this.confirm = resolve;
    });
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#items.length === 0) {
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
      }
      const item = this.#items.shift();
      if (item instanceof Error) throw item;
      if (item === null) return;
      yield item;
    }
  }
}

function openPanel() {
  const requests = [];
  const streams = [];
  const announced = [];
  const client = {
    embed: {
      create(request) {
        requests.push(request);
        streams.push(new ScriptedStream(streams.length + 1));
        return streams.at(-1);
      },
    },
  };
  const store = new Store({ embedding: null, embeddingStops: [], sample: null }, () => {});
  const embeddings = new Embeddings(
    store,
    () => client,
    (text) => announced.push(text),
    () => {},
  );
  return { store, embeddings, requests, streams, announced };
}

const vector = (index, more = {}) => ({ index, embedding: Float32Array.of(index, 1), ...more });
const failure = (index, code, data = {}) => ({ index, error: { code, message: code, data } });

test("lines are asked for as a stream, and their vectors kept by line", async () => {
  const { store, embeddings, requests, streams, announced } = openPanel();
  embeddings.embed({ lines: ["a", "b"], truncate: true, model: "m" });
  assert.deepEqual(requests, [{ texts: ["a", "b"], model: "m", truncate: true, stream: true }]);
  streams[0].give(vector(0), vector(1, { truncated: true }));
  streams[0].end({ state: "completed", finishReason: "stop" });
  await settle();
  const { state, vectors, cut, items } = store.state.embedding;
  assert.deepEqual([state, vectors.length, [...cut], items], ["completed", 2, [1], 2]);
  assert.deepEqual(announced, ["Embedding.", "Embedded 2 lines."]);
});

test("what goes wrong with a line stands at that line, and the others have theirs", async () => {
  const { store, embeddings, streams, announced } = openPanel();
  embeddings.embed({ lines: ["a", "b", "c"], truncate: false });
  streams[0].give(
    vector(0),
    failure(1, "input_too_long", { tokens: 2_001, limit: 256 }),
    failure(2, "generation_failed"),
  );
  streams[0].end({ state: "completed" });
  await settle();
  const { failures, vectors } = store.state.embedding;
  assert.match(failures.get(1).message, /^2,001 tokens, and the model reads 256\./);
  assert.equal(failures.get(2).message, "generation_failed");
  assert.deepEqual([vectors[1], vectors[2]], [null, null]);
  assert.equal(announced.at(-1), "Embedded 1 line. 2 lines have no vector.");
});

test("stop freezes the batch in the same tick, and the receipt is the server's", async () => {
  const { store, embeddings, streams } = openPanel();
  embeddings.embed({ lines: ["a", "b", "c"], truncate: false });
  streams[0].give(vector(0));
  await settle();
  embeddings.stop(embeddings.focused());
  assert.equal(store.state.embedding.state, "stopping");
  streams[0].give(vector(1));
  await settle();
  streams[0].confirm(RECEIPT);
  await settle();
  const { state, items, receipt } = store.state.embedding;
  assert.deepEqual([state, items, receipt], ["cancelled", 1, RECEIPT]);
  assert.deepEqual(store.state.embeddingStops, [14]);
  assert.equal(embeddings.focused(), null);
});

test("a new batch stops the one that runs", () => {
  const { store, embeddings, streams } = openPanel();
  embeddings.embed({ lines: ["a"], truncate: false });
  embeddings.embed({ lines: ["b"], truncate: false });
  assert.deepEqual([streams[0].cancelled, streams[1].cancelled], [1, 0]);
  assert.deepEqual(store.state.embedding.ask.lines, ["b"]);
});

test("a batch that fails keeps what had come, and says why", async () => {
  const { store, embeddings, streams } = openPanel();
  embeddings.embed({ lines: ["a", "b"], truncate: false });
  streams[0].give(vector(0));
  streams[0].fail("connection_lost");
  await settle();
  const { state, vectors, trouble } = store.state.embedding;
  assert.deepEqual([state, vectors.length, trouble.lost], ["errored", 1, true]);
});

test("a client that is not there yet is a trouble like any other", () => {
  const { store } = openPanel();
  const none = new Embeddings(
    store,
    () => {
      throw new Error("Not connected yet");
    },
    () => {},
    () => {},
  );
  none.embed({ lines: ["a"], truncate: false });
  assert.equal(store.state.embedding.trouble.message, "Not connected yet");
});
