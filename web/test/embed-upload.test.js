/** Texts that go up while their vectors come: credit, messages, sources, endings. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidRequestError } from "../sdk/index.js";
import { TextBatches } from "../sdk/text-batches.js";
import { drain, openClient, settled, WELCOME } from "./support/peer.js";

const OVERHEAD = 16;
const bytesOf = (text) => Buffer.byteLength(text) + OVERHEAD;

async function openFed(texts, { request = {}, welcome } = {}) {
  const fake = await openClient(undefined, welcome);
  const stream = fake.client.embed.create({ texts, stream: true, ...request });
  const peer = fake.socket();
  const inputs = () => peer.sent.filter(({ type }) => type === "input").map(({ texts }) => texts);
  return { ...fake, stream, peer, inputs };
}

/** A source that gives texts when told, and says when it was let go. */
function source() {
  const waiting = [];
  const ready = [];
  const state = { returned: 0, asked: 0 };
  const put = (result) => {
    const reader = waiting.shift();
    if (reader) reader(result);
    else ready.push(result);
  };
  return {
    state,
    give: (...texts) => texts.forEach((value) => void put(Promise.resolve({ value }))),
    end: () => put(Promise.resolve({ value: undefined, done: true })),
    fail: (reason) => put(Promise.reject(reason)),
    [Symbol.asyncIterator]: () => ({
      next: () => {
        state.asked += 1;
        return ready.shift() ?? new Promise((resolve) => waiting.push(resolve));
      },
      return: async () => {
        state.returned += 1;
        return { value: undefined, done: true };
      },
    }),
  };
}

/** Confirms so many bytes in all. */
const confirm = (peer, id, bytes, window_bytes) =>
  peer.say({ type: "input_ack", id, bytes, window_bytes });

test("a list too large for one message follows its open, in order and whole", async () => {
  const texts = Array.from({ length: 20_000 }, (_, i) => `the text of number ${i}`);
  const { peer, stream, inputs } = await openFed(texts, { request: { truncate: true } });
  assert.deepEqual(peer.sent[0].params, { truncate: true });
  peer.beginEmbedding(stream.id, 1e9);
  while (peer.sent.at(-1).type !== "end") await settled();
  assert.deepEqual(inputs().flat(), texts);
  assert.ok(inputs().length < 60, `${inputs().length} messages`);
  assert.deepEqual(stream.progress, { done: 0, total: 20_000 });
});

test("no message is larger than the server reads, however JSON spells its texts", async () => {
  const limits = { ...WELCOME.limits, max_text_bytes: 65_536 };
  const texts = Array.from({ length: 40_000 }, (_, i) => "\u0001".repeat(i % 90));
  const { peer, stream, inputs } = await openFed(texts, { welcome: { ...WELCOME, limits } });
  peer.beginEmbedding(stream.id, 1e9);
  while (peer.sent.at(-1).type !== "end") await settled();
  const sizes = peer.sent.slice(1).map((message) => Buffer.byteLength(JSON.stringify(message)));
  assert.ok(Math.max(...sizes) <= 65_536, `${Math.max(...sizes)} bytes`);
  assert.deepEqual(inputs().flat(), texts);
});

test("no more goes up than there is credit for: UTF-8 bytes, and 16 more for each text", async () => {
  const { peer, stream, inputs } = await openFed(["é", "", "漢字", "z"].values());
  peer.beginEmbedding(stream.id, 2 * OVERHEAD + 4);
  await settled();
  assert.deepEqual(inputs(), [["é", ""]]);
  confirm(peer, stream.id, 2 * OVERHEAD + 2, 2 * OVERHEAD + 4);
  await settled();
  assert.deepEqual(inputs(), [["é", ""], ["漢字"]]);
  assert.equal(peer.types(stream.id).includes("end"), false);
  confirm(peer, stream.id, 3 * OVERHEAD + 8, 2 * OVERHEAD + 4);
  await settled();
  assert.deepEqual([inputs().at(-1), peer.sent.at(-1).type], [["z"], "end"]);
});

test("a source is not read ahead of what the server takes", async () => {
  let read = 0;
  function* endless() {
    for (;;) {
      read += 1;
      yield `text ${read}`.padEnd(84);
    }
  }
  const { peer, stream } = await openFed(endless());
  await settled();
  assert.equal(read, 0);
  peer.beginEmbedding(stream.id, 100_000);
  for (let i = 0; i < 50; i++) await settled();
  const before = read;
  for (let i = 0; i < 50; i++) await settled();
  assert.deepEqual([before === read, before < 2_000], [true, true]);
  stream.cancel();
});

test("however many texts are at hand, the event loop has its turn, and an abort with it", async () => {
  function* endless() {
    for (;;) yield "text";
  }
  let nowMs = 0;
  const turns = [];
  const after = (_, callback) => {
    turns.push(callback);
    return { clear() {} };
  };
  const batches = new TextBatches(endless(), { now: () => (nowMs += 6), after });
  await batches.next();
  await batches.next();
  const third = batches.next();
  await settled();
  await batches.return();
  turns.at(-1)();
  assert.deepEqual(await third, { value: undefined, done: true });
});

test("texts that are there together go up together, and one that comes alone is not kept waiting", async () => {
  const texts = source();
  const { peer, stream, inputs, time } = await openFed(texts);
  peer.beginEmbedding(stream.id);
  texts.give("a", "b", "c");
  await settled();
  assert.deepEqual(inputs(), []);
  time.advance(0);
  await settled();
  texts.give("d");
  await settled();
  time.advance(0);
  await settled();
  assert.deepEqual(inputs(), [["a", "b", "c"], ["d"]]);
  texts.end();
  await settled();
  assert.equal(peer.sent.at(-1).type, "end");
});

test("how many texts there are is known when the source has come to its end", async () => {
  const { peer, stream } = await openFed(["a", "b"].values());
  assert.deepEqual(stream.progress, { done: 0, total: null });
  peer.beginEmbedding(stream.id);
  await settled();
  assert.deepEqual(stream.progress, { done: 0, total: 2 });
  peer.rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  peer.done(stream.id);
  assert.equal((await drain(stream)).error, null);
});

test("a server that ends before it has all texts has not answered them", async () => {
  const texts = source();
  const { peer, stream } = await openFed(texts);
  peer.beginEmbedding(stream.id);
  texts.give("a");
  peer.done(stream.id);
  assert.match((await drain(stream)).error.message, /still on their way up/);
});

test("nothing more goes up once the reader has left, and the source is let go once", async () => {
  const texts = source();
  const { peer, stream, time } = await openFed(texts);
  peer.beginEmbedding(stream.id);
  texts.give("a");
  await settled();
  stream.cancel();
  texts.give("b");
  texts.end();
  time.advance(0);
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
  assert.equal(texts.state.returned, 1);
});

test("a stream the server ends lets the source go", async () => {
  const texts = source();
  const { peer, stream } = await openFed(texts);
  peer.beginEmbedding(stream.id);
  await settled();
  peer.cancelled(stream.id, "deadline");
  await settled();
  assert.equal(texts.state.returned, 1);
});

test("a source that fails cancels the stream, and the reader is told its reason", async () => {
  const texts = source();
  const { peer, stream } = await openFed(texts);
  peer.beginEmbedding(stream.id);
  texts.fail(new Error("the file is gone"));
  const { error } = await drain(stream);
  assert.equal(error.message, "the file is gone");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("a source may give nothing: there are no vectors", async () => {
  const { peer, stream } = await openFed([].values());
  peer.beginEmbedding(stream.id);
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "end"]);
  peer.done(stream.id);
  assert.deepEqual(await drain(stream), { items: [], error: null });
});

test("what a source gives that is no text is refused, with its place", async () => {
  const { peer, stream } = await openFed(["a", 7].values());
  peer.beginEmbedding(stream.id);
  const { error } = await drain(stream);
  assert.ok(InvalidRequestError.isInstance(error));
  assert.equal(error.param, "texts[1]");
});

for (const [what, windowBytes, maxBytes] of [
  ["credit", 10_000, 1_048_576],
  ["one message", 1e9, 65_536],
]) {
  test(`a text larger than ${what} can ever hold is refused with its size, and never waits`, async () => {
    const limits = { ...WELCOME.limits, max_text_bytes: maxBytes };
    const texts = ["a", "long ".repeat(20_000)].values();
    const { peer, stream } = await openFed(texts, { welcome: { ...WELCOME, limits } });
    peer.beginEmbedding(stream.id, windowBytes);
    const { error } = await drain(stream);
    assert.equal(error.param, "texts[1]");
    assert.match(error.message, /100016 bytes/);
  });
}

test("one large text goes up in a message of its own", async () => {
  const large = "long ".repeat(20_000);
  const { peer, stream, inputs } = await openFed(["a", large, "b"].values());
  peer.beginEmbedding(stream.id);
  await settled();
  assert.deepEqual(inputs(), [["a"], [large], ["b"]]);
  assert.ok(bytesOf(large) > 32_768);
});

test("K04: a signal that is already aborted sends nothing, and lets the source go", async () => {
  const texts = source();
  const { peer, stream } = await openFed(texts, { request: { signal: AbortSignal.abort() } });
  assert.equal((await drain(stream)).error.name, "AbortError");
  assert.deepEqual([peer.sent, texts.state.returned], [[], 1]);
});

test("a bad option lets the source go too", async () => {
  const { client } = await openClient();
  const texts = source();
  assert.throws(() => client.embed.create({ texts, window: 0, stream: true }), InvalidRequestError);
  await settled();
  assert.equal(texts.state.returned, 1);
});

test("a server that takes no texts after the open says so instead of waiting for ever", async () => {
  const { peer, stream } = await openFed(["a"].values());
  peer.say({ type: "accepted", id: stream.id, phase: "queued", position: 0 });
  peer.say({ type: "started", id: stream.id, format: { encoding: "f32", dims: 2 } });
  const { error } = await drain(stream);
  assert.equal(error.code, "protocol_error");
});
