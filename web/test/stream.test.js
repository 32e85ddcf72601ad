import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamCancelledError, StreamError } from "../sdk/index.js";
import { drain, MESSAGES, openClient, settled } from "./support/peer.js";

async function openChat(options = {}) {
  const fake = await openClient();
  const stream = fake.client.llm.chatStream({ model: "smol", messages: MESSAGES, ...options });
  return { ...fake, stream, peer: fake.socket() };
}

test("open carries params in wire spelling and the stream options beside them", async () => {
  const { peer, stream } = await openChat({
    maxTokens: 9,
    top_p: 0.5,
    window: 8,
    deadlineMs: 100,
    priority: "batch",
  });
  assert.deepEqual(peer.sent, [
    {
      type: "open",
      id: stream.id,
      method: "chat",
      params: { model: "smol", messages: MESSAGES, max_tokens: 9, top_p: 0.5 },
      window: 8,
      priority: "batch",
      deadline_ms: 100,
    },
  ]);
});

test("a completed stream yields its deltas and last the one with done and usage", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  peer.items(stream.id, "Hel", "lo");
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual(items, [
    { content: "Hel", done: false },
    { content: "lo", done: false },
    {
      content: "",
      done: true,
      usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2 },
      finishReason: "stop",
    },
  ]);
});

test("the states of a stream follow the wire, and the queue is shown while pending", async () => {
  const { peer, stream } = await openChat();
  assert.equal(stream.state, "pending");
  peer.say({ type: "accepted", id: stream.id, phase: "queued", position: 2, eta_ms: 3000 });
  assert.deepEqual(stream.queue, {
    phase: "queued",
    position: 2,
    percent: undefined,
    etaMs: 3000,
  });
  peer.begin(stream.id);
  assert.equal(stream.state, "streaming");
  assert.equal(stream.queue, null);
  assert.deepEqual(stream.started, { model: "smol", maxTokens: 256 });
  peer.done(stream.id);
  assert.equal(stream.state, "completed");
  const { state, timing } = await stream.done;
  assert.deepEqual([state, timing.firstItemMs], ["completed", 1]);
});

test("logprobs and tool calls reach the delta", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  peer.say({ type: "item", id: stream.id, seq: 1, data: { content: "a", logprobs: [1] } });
  const call = { index: 0, id: "call1", type: "function", function: { name: "time" } };
  peer.say({ type: "item", id: stream.id, seq: 2, data: { tool_calls: [call] } });
  const iterator = stream[Symbol.asyncIterator]();
  assert.deepEqual((await iterator.next()).value.logprobs, [1]);
  assert.deepEqual((await iterator.next()).value, {
    content: "",
    done: false,
    toolCalls: [call],
  });
});

test("cancel() sends one cancel, freezes the text at once and resolves with the server's proof", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  peer.items(stream.id, "a", "b");
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  const proof = stream.cancel();
  void stream.cancel();
  assert.equal(stream.state, "cancelled");
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
  await assert.rejects(iterator.next(), { name: "AbortError" });
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
  peer.items(stream.id, "late");
  peer.cancelled(stream.id);
  assert.deepEqual(await proof, {
    by: "client",
    released: true,
    stopMs: 14,
    wasted: { tokens: 1 },
    usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2 },
  });
});

test("a done that crosses the cancel proves there was nothing left to stop", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  const proof = stream.cancel();
  peer.done(stream.id);
  const { released, stopMs, usage } = await proof;
  assert.deepEqual([released, stopMs, usage.promptTokens], [true, 0, 3]);
  assert.equal((await stream.done).state, "cancelled");
});

test("an error that crosses the cancel claims nothing about the slot", async () => {
  const { peer, stream } = await openChat();
  const proof = stream.cancel();
  peer.say({ type: "error", id: stream.id, seq: 0, error: { code: "internal", message: "m" } });
  const { released, stopMs } = await proof;
  assert.deepEqual([released, stopMs], [false, null]);
});

test("cancel() of a finished stream sends nothing and says it ended by itself", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  peer.items(stream.id, "unread");
  peer.done(stream.id);
  const proof = await stream.cancel();
  assert.equal(proof.by, null);
  assert.equal(stream.state, "completed");
  assert.deepEqual(peer.types(stream.id), ["open"]);
  assert.deepEqual((await drain(stream)).items, []);
});

for (const by of ["deadline", "slow", "shutdown"]) {
  test(`a stream the server stopped (${by}) throws StreamCancelledError after its items`, async () => {
    const { peer, stream } = await openChat();
    peer.begin(stream.id);
    peer.items(stream.id, "kept");
    peer.cancelled(stream.id, by);
    const { items, error } = await drain(stream);
    assert.deepEqual(items, [{ content: "kept", done: false }]);
    assert.ok(StreamCancelledError.isInstance(error));
    assert.equal(error.by, by);
    assert.equal(stream.state, "cancelled");
  });
}

test("after a terminal nothing more is delivered and nothing is acked", async () => {
  const { peer, stream } = await openChat({ window: 4 });
  peer.begin(stream.id);
  peer.items(stream.id, "a");
  peer.done(stream.id);
  peer.items(stream.id, "ghost");
  peer.cancelled(stream.id);
  const { items } = await drain(stream);
  assert.deepEqual(
    items.map(({ content }) => content),
    ["a", ""],
  );
  assert.deepEqual(peer.types(stream.id), ["open"]);
});

test("a second iteration throws and says what to do", async () => {
  const { stream } = await openChat();
  stream[Symbol.asyncIterator]();
  assert.throws(() => stream[Symbol.asyncIterator](), /can be iterated once.*collect\(\)/);
  await assert.rejects(stream.collect(), TypeError);
  assert.throws(() => stream.toReadableStream(), TypeError);
});

for (const leave of ["return", "throw"]) {
  test(`${leave}() sends cancel and settles a waiting next()`, async () => {
    const { peer, stream } = await openChat();
    peer.begin(stream.id);
    const iterator = stream[Symbol.asyncIterator]();
    const waiting = iterator.next();
    const left = iterator[leave]("mine").catch((reason) => ({ threw: reason }));
    assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
    assert.deepEqual(await waiting, { value: undefined, done: true });
    assert.deepEqual(
      await left,
      leave === "return" ? { value: "mine", done: true } : { threw: "mine" },
    );
  });
}

test("K05: break after three items cancels, a hundred times, and the next call is normal", async () => {
  const { client, socket } = await openClient();
  for (let i = 0; i < 100; i++) {
    const stream = client.llm.chatStream({ messages: MESSAGES });
    socket().begin(stream.id);
    socket().items(stream.id, "1", "2", "3", "4");
    let taken = 0;
    for await (const _ of stream) if (++taken === 3) break;
    assert.deepEqual(socket().types(stream.id), ["open", "cancel"]);
    socket().cancelled(stream.id);
  }
  const text = client.llm.chat({ messages: MESSAGES });
  socket().begin(101);
  socket().items(101, "fine");
  socket().done(101);
  assert.equal(await text, "fine");
});

test("several waiting next() are served in order, and a failure is told to the first only", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  const iterator = stream[Symbol.asyncIterator]();
  const [a, b, c] = [iterator.next(), iterator.next(), iterator.next()];
  peer.items(stream.id, "first");
  void stream.cancel("enough");
  assert.equal((await a).value.content, "first");
  await assert.rejects(b, (reason) => reason === "enough");
  assert.deepEqual(await c, { value: undefined, done: true });
});

test("toReadableStream takes items only when somebody reads, and its cancel cancels", async () => {
  const { peer, stream } = await openChat({ window: 1 });
  peer.begin(stream.id);
  peer.items(stream.id, "a");
  const reader = stream.toReadableStream().getReader();
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open"]);
  assert.equal((await reader.read()).value.content, "a");
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 1 });
  await reader.cancel();
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("toReadableStream closes on done and errors on failure", async () => {
  const { client, socket } = await openClient();
  const [good, bad] = [1, 2].map(() => client.llm.chatStream({ messages: MESSAGES }));
  socket().done(good.id);
  socket().say({
    type: "error",
    id: bad.id,
    seq: 0,
    error: { code: "generation_failed", class: "model", message: "m", retryable: true },
  });
  const reader = good.toReadableStream().getReader();
  assert.equal((await reader.read()).value.done, true);
  assert.equal((await reader.read()).done, true);
  await assert.rejects(bad.toReadableStream().getReader().read(), { code: "generation_failed" });
});

test("collect() resolves with every delta, or rejects with those so far in partial", async () => {
  const { client, socket } = await openClient();
  const whole = client.llm.chatStream({ messages: MESSAGES }).collect();
  const cut = client.llm.chatStream({ messages: MESSAGES }).collect();
  socket().items(1, "a");
  socket().done(1);
  socket().items(2, "b");
  socket().drop();
  assert.deepEqual(
    (await whole).map(({ content }) => content),
    ["a", ""],
  );
  await assert.rejects(cut, (error) => {
    assert.deepEqual(error.partial, [{ content: "b", done: false }]);
    return error.code === "connection_lost";
  });
});

test("chat() joins the text, and a broken answer keeps it in partial", async () => {
  const { client, socket } = await openClient();
  const whole = client.llm.chat({ messages: MESSAGES });
  const cut = client.llm.chat({ messages: MESSAGES });
  socket().items(1, "Hel", "lo");
  socket().done(1);
  socket().items(2, "Hal");
  socket().drop();
  assert.equal(await whole, "Hello");
  await assert.rejects(cut, (error) => StreamError.isInstance(error) && error.partial === "Hal");
});

const VIOLATIONS = {
  "a gap in seq": (peer, id) => peer.say({ type: "item", id, seq: 3, data: { content: "x" } }),
  "a repeated seq": (peer, id) => peer.say({ type: "item", id, seq: 1, data: { content: "x" } }),
  "an item this method does not have": (peer, id) =>
    peer.say({ type: "item", id, seq: 2, data: null }),
  "a terminal that names items that never came": (peer, id) =>
    peer.say({ type: "done", id, seq: 9, finish_reason: "stop", usage: {}, timing: {} }),
};
for (const [name, violate] of Object.entries(VIOLATIONS)) {
  test(`${name} is a protocol_error, never a good end`, async () => {
    const { peer, stream } = await openChat();
    peer.begin(stream.id);
    peer.items(stream.id, "kept");
    violate(peer, stream.id);
    const { items, error } = await drain(stream);
    assert.equal(items.length, 1);
    assert.equal(error.code, "protocol_error");
  });
}

test("a binary frame of a kind the method does not know is counted and ignored", async () => {
  const { peer, stream } = await openChat();
  peer.begin(stream.id);
  peer.sayBytes(new Uint8Array([1, 9, 0, 0, stream.id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
  peer.say({ type: "item", id: stream.id, seq: 2, data: { content: "a" } });
  peer.seqs = { [stream.id]: 2 };
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.deepEqual([items.length, error], [2, null]);
});

test("more items than the window allows end the stream instead of filling memory", async () => {
  const { peer, stream } = await openChat({ window: 2 });
  peer.begin(stream.id);
  peer.items(stream.id, "1", "2", "3");
  assert.equal(peer.sent.at(-1).type, "cancel");
  assert.equal((await drain(stream)).error.code, "protocol_error");
});

test("a window the protocol does not have is refused by name before anything is sent", async () => {
  const { client, socket } = await openClient();
  for (const window of [0, 257, 1.5, Number.NaN]) {
    const open = () => client.llm.chatStream({ messages: MESSAGES, window });
    assert.throws(open, { code: "invalid_request", param: "window" });
  }
  assert.deepEqual(socket().sent, []);
});

test("what cannot be JSON throws at the caller", async () => {
  const { client, socket } = await openClient();
  assert.throws(() => client.llm.chatStream({ messages: MESSAGES, seed: 1n }), TypeError);
  assert.deepEqual(socket().sent, []);
});
