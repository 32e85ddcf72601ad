/** Embed: what goes out, what a vector is, how it ends. How many texts go up has its own file. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { InvalidRequestError, PlaitError, StreamError } from "../sdk/index.js";
import { drain, openClient, settled } from "./support/peer.js";

async function openEmbedding(request = {}) {
  const fake = await openClient();
  const { texts = ["a", "b", "c"] } = request;
  const stream = fake.client.embed.create({ stream: true, ...request, texts });
  return { ...fake, stream, peer: fake.socket() };
}

/** The same, collected; `id` is the stream's. */
async function openWhole(request = {}) {
  const fake = await openClient();
  const { texts = ["a", "b", "c"] } = request;
  const whole = fake.client.embed.create({ ...request, texts });
  const peer = fake.socket();
  return { ...fake, whole, peer, id: peer.sent[0].id };
}

const TOO_LONG = {
  code: "input_too_long",
  class: "client",
  message: "too long",
  retryable: false,
  data: { index: 1, tokens: 300, limit: 256 },
};
const plain = ({ embedding, ...rest }) => ({ ...rest, embedding: embedding && [...embedding] });

test("texts and how to embed them are one open", async () => {
  const { peer, stream } = await openEmbedding({ model: "m", normalize: false, truncate: true });
  assert.deepEqual(peer.sent, [
    {
      type: "open",
      id: stream.id,
      method: "embed",
      params: { texts: ["a", "b", "c"], model: "m", normalize: false, truncate: true },
      window: 64,
    },
  ]);
});

test("stream options go beside the params, and nothing of the client's own goes with them", async () => {
  const { peer } = await openEmbedding({ window: 4, deadlineMs: 50, priority: "batch" });
  const { window, deadline_ms, priority, params } = peer.sent[0];
  assert.deepEqual([window, deadline_ms, priority], [4, 50, "batch"]);
  assert.deepEqual(params, { texts: ["a", "b", "c"] });
});

test("a frame of rows is one vector for each text, with its index", async () => {
  const { peer, stream } = await openEmbedding();
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  peer.rows(stream.id, [[-0.5, 0.25]], 4);
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual(items.map(plain), [
    { index: 0, embedding: [1, 2] },
    { index: 1, embedding: [3, 4] },
    { index: 2, embedding: [-0.5, 0.25], truncated: true },
  ]);
});

test("vectors are views of the frame they came in", async () => {
  const { peer, stream } = await openEmbedding();
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  const iterator = stream[Symbol.asyncIterator]();
  const [first, second] = [await iterator.next(), await iterator.next()];
  assert.equal(first.value.embedding.buffer, second.value.embedding.buffer);
  assert.deepEqual([first.value.embedding.byteOffset, second.value.embedding.byteOffset], [16, 24]);
});

test("vectors as JSON are the same to the reader", async () => {
  const { peer, stream } = await openEmbedding({ encoding: "json", texts: ["a", "b"] });
  peer.beginEmbedding(stream.id);
  peer.answer(stream.id, { embedding: [0.5, -0.25] });
  peer.answer(stream.id, { embedding: [1, 0], truncated: true });
  peer.done(stream.id);
  const { items } = await drain(stream);
  assert.ok(items[0].embedding instanceof Float32Array);
  assert.deepEqual(items.map(plain), [
    { index: 0, embedding: [0.5, -0.25] },
    { index: 1, embedding: [1, 0], truncated: true },
  ]);
});

test("a text that cannot be embedded is answered with its typed error and ends nothing else", async () => {
  const { peer, stream } = await openEmbedding();
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [[1, 0]]);
  peer.answer(stream.id, { error: TOO_LONG });
  peer.answer(stream.id, {
    error: { code: "generation_failed", class: "model", message: "no finite vector" },
  });
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual(
    items.map(({ index, embedding, error }) => [index, embedding?.length, error?.code]),
    [
      [0, 2, undefined],
      [1, undefined, "input_too_long"],
      [2, undefined, "generation_failed"],
    ],
  );
  assert.ok(PlaitError.isInstance(items[1].error));
  assert.deepEqual(items[1].error.data, { index: 1, tokens: 300, limit: 256 });
  assert.ok(StreamError.isInstance(items[2].error));
});

test("progress is how many answers have arrived, of how many texts", async () => {
  const { peer, stream } = await openEmbedding();
  assert.deepEqual(stream.progress, { done: 0, total: 3 });
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  assert.deepEqual(stream.progress, { done: 2, total: 3 });
});

test("a frame is acknowledged when the last of its rows was taken", async () => {
  const { peer, stream } = await openEmbedding({ window: 1 });
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  assert.deepEqual(peer.types(stream.id), ["open"]);
  await iterator.next();
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 1 });
});

test("without stream it is all the vectors, by text", async () => {
  const { peer, id, whole } = await openWhole();
  assert.equal("stream" in peer.sent[0].params, false);
  peer.beginEmbedding(id);
  peer.rows(id, [
    [1, 2],
    [3, 4],
  ]);
  peer.rows(id, [[5, 6]]);
  peer.done(id);
  assert.deepEqual(
    (await whole).map((row) => [...row]),
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
  );
});

test("no texts are no vectors, asked of the server all the same", async () => {
  const { peer, id, whole } = await openWhole({ texts: [] });
  assert.deepEqual(peer.sent[0].params, { texts: [] });
  peer.beginEmbedding(id);
  peer.done(id);
  assert.deepEqual(await whole, []);
});

test("the first text without a vector is what it rejects with, and the others' vectors are on the error", async () => {
  const { peer, id, whole } = await openWhole();
  peer.beginEmbedding(id);
  peer.rows(id, [[1, 0]]);
  peer.answer(id, { error: TOO_LONG });
  peer.rows(id, [[0, 1]]);
  peer.done(id);
  const error = await whole.catch((reason) => reason);
  assert.equal(error.code, "input_too_long");
  assert.equal(error.data.index, 1);
  assert.deepEqual(
    error.embeddings.map((row) => row && [...row]),
    [[1, 0], null, [0, 1]],
  );
});

test("K09: a lost connection never looks like all vectors; what had arrived is on the error", async () => {
  const { peer, id, whole } = await openWhole();
  peer.beginEmbedding(id);
  peer.rows(id, [[1, 0]]);
  await settled();
  peer.drop();
  const error = await whole.catch((reason) => reason);
  assert.equal(error.code, "connection_lost");
  assert.deepEqual([...error.embeddings[0]], [1, 0]);
});

test("K01: abort sends the cancel frame at once, and the promise rejects with AbortError", async () => {
  const controller = new AbortController();
  const { peer, whole, id } = await openWhole({ signal: controller.signal });
  peer.beginEmbedding(id);
  controller.abort();
  assert.deepEqual(peer.sent.at(-1), { type: "cancel", id });
  await assert.rejects(whole, { name: "AbortError" });
});

test("K03: a thousand embeddings leave no listener on one signal", async () => {
  const { client, socket } = await openClient();
  const { signal } = new AbortController();
  for (let i = 0; i < 1000; i++) {
    const stream = client.embed.create({
      texts: i % 2 ? ["a"] : ["a"].values(),
      signal,
      stream: true,
    });
    if (i % 3 === 0) stream.cancel();
    else if (i % 3 === 1) socket().done(stream.id);
    else socket().cancelled(stream.id, "slow");
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
});

test("leaving the loop cancels on the wire, and the proof comes back", async () => {
  const { peer, stream } = await openEmbedding();
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  for await (const _ of stream) break;
  assert.equal(peer.sent.at(-1).type, "cancel");
  peer.cancelled(stream.id, "client", { wasted: { texts: 1 } });
  assert.deepEqual((await stream.done).wasted, { texts: 1 });
});

test("an answer with a hole is a fault of the server, not a result", async () => {
  const { peer, stream } = await openEmbedding();
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(items.length, 2);
  assert.equal(error.code, "protocol_error");
  assert.match(error.message, /ended after 2 of 3 texts/);
});

const FAULTS = {
  "rows that skip a text": (peer, id) => {
    peer.answers = { [id]: 1 };
    peer.rows(id, [[1, 2]]);
  },
  "an answer out of order": (peer, id) => {
    peer.answers = { [id]: 2 };
    peer.answer(id, { embedding: [1, 2] });
  },
  "an answer that is neither vector nor error": (peer, id) => peer.answer(id, {}),
  "half a row": (peer, id) => peer.rows(id, [[1]]),
  "a frame without rows": (peer, id) => peer.rows(id, []),
};
for (const [what, commit] of Object.entries(FAULTS)) {
  test(`${what}: the stream is broken off with protocol_error`, async () => {
    const { peer, stream } = await openEmbedding();
    peer.beginEmbedding(stream.id);
    commit(peer, stream.id);
    const { error } = await drain(stream);
    assert.equal(error.code, "protocol_error");
    assert.equal(peer.sent.at(-1).type, "cancel");
  });
}

test("what is no list of texts is refused before anything is sent", async () => {
  const { client, socket } = await openClient();
  for (const texts of [undefined, null, 5, {}, "one text", ["a", 7], [null]]) {
    assert.throws(() => client.embed.create({ texts, stream: true }), InvalidRequestError);
    await assert.rejects(client.embed.create({ texts }), InvalidRequestError);
  }
  await assert.rejects(client.embed.create({ texts: ["a", 7] }), { param: "texts[1]" });
  assert.deepEqual(socket().sent, []);
});

test("half a surrogate pair goes up as U+FFFD", async () => {
  const { peer } = await openEmbedding({ texts: ["a\ud83d", "\ude00b", "😀"] });
  assert.deepEqual(peer.sent[0].params.texts, ["a\ufffd", "\ufffdb", "😀"]);
});

test("what becomes of the list later does not change what was asked for", async () => {
  const texts = ["a", "b"];
  const { peer, stream } = await openEmbedding({ texts });
  texts.push("c");
  peer.beginEmbedding(stream.id);
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  peer.done(stream.id);
  assert.equal((await drain(stream)).error, null);
});
