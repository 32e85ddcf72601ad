import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { onAbort } from "../sdk/abort-watch.js";
import { drain, fakeClient, MESSAGES, openClient, settled } from "./support/peer.js";

const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

async function abortable() {
  const fake = await openClient();
  const controller = new AbortController();
  const stream = fake.client.llm.chatStream({ messages: MESSAGES, signal: controller.signal });
  return { ...fake, controller, stream, peer: fake.socket() };
}

test("K01: abort sends the cancel frame and leaves 'streaming' in the same tick", async () => {
  const { controller, peer, stream } = await abortable();
  peer.begin(stream.id);
  controller.abort();
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
  assert.equal(stream.state, "cancelled");
});

test("K04: an abort rejects the iteration once with AbortError", async () => {
  const { controller, peer, stream } = await abortable();
  peer.begin(stream.id);
  peer.items(stream.id, "a", "b", "c");
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  controller.abort();
  controller.abort();
  await assert.rejects(iterator.next(), isAbort);
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
});

test("an abort while next() waits rejects that next()", async () => {
  const { controller, peer, stream } = await abortable();
  peer.begin(stream.id);
  const waiting = stream[Symbol.asyncIterator]().next();
  controller.abort();
  await assert.rejects(waiting, isAbort);
});

test("a reason given to abort() is what the iteration throws", async () => {
  const { controller, stream } = await abortable();
  const reason = new RangeError("changed my mind");
  controller.abort(reason);
  assert.equal((await drain(stream)).error, reason);
});

test("K04: a signal that is already aborted sends nothing, and does not even connect", async () => {
  const { client, sockets } = fakeClient();
  const stream = client.llm.chatStream({ messages: MESSAGES, signal: AbortSignal.abort() });
  const { items, error } = await drain(stream);
  assert.deepEqual(items, []);
  assert.ok(isAbort(error));
  assert.deepEqual(sockets, []);
  const end = await stream.done;
  assert.deepEqual([end.state, end.by, end.released, end.stopMs], ["cancelled", "client", true, 0]);
  await assert.rejects(
    client.llm.chat({ messages: MESSAGES, signal: AbortSignal.abort() }),
    isAbort,
  );
});

test("an abort before the connection is open withdraws the request unsent", async () => {
  const { client, socket } = fakeClient();
  const controller = new AbortController();
  const stream = client.llm.chatStream({ messages: MESSAGES, signal: controller.signal });
  const other = client.llm.chatStream({ messages: MESSAGES });
  controller.abort();
  await settled();
  socket().welcome();
  assert.deepEqual(
    socket().sent.map(({ type, id }) => [type, id]),
    [["open", other.id]],
  );
  assert.ok(isAbort((await drain(stream)).error));
});

test("an abort after the end changes nothing", async () => {
  const { controller, peer, stream } = await abortable();
  peer.begin(stream.id);
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  controller.abort();
  assert.deepEqual([items.length, error, stream.state], [1, null, "completed"]);
  assert.deepEqual(peer.types(stream.id), ["open"]);
});

test("an abort while a finished answer is still being read stops the reading", async () => {
  const { controller, peer, stream } = await abortable();
  peer.begin(stream.id);
  peer.items(stream.id, "a", "b");
  peer.done(stream.id);
  const iterator = stream[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value.content, "a");
  controller.abort();
  await assert.rejects(iterator.next(), isAbort);
});

test("a controller instead of its signal is refused with a hint", async () => {
  const { client } = await openClient();
  const open = () => client.llm.chatStream({ messages: MESSAGES, signal: new AbortController() });
  assert.throws(open, /controller\.signal/);
});

const ENDINGS = {
  done: (peer, stream) => peer.done(stream.id),
  error: (peer, stream) =>
    peer.say({ type: "error", id: stream.id, seq: 0, error: { code: "internal", message: "m" } }),
  rejected: (peer, stream) =>
    peer.say({ type: "rejected", id: stream.id, error: { code: "queue_full", message: "m" } }),
  cancelled: (peer, stream) => peer.cancelled(stream.id, "deadline"),
  cancel: (_, stream) => void stream.cancel(),
  break: (_, stream) => stream[Symbol.asyncIterator]().return(),
};
for (const [name, end] of Object.entries(ENDINGS)) {
  test(`K03: a thousand streams that end by ${name} leave no listener on one signal`, async () => {
    const { client, socket } = await openClient();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) {
      const stream = client.llm.chatStream({ messages: MESSAGES, signal });
      assert.equal(getEventListeners(signal, "abort").length, 1);
      end(socket(), stream);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    }
  });
}

test("who is taken back by another, in the abort itself, is not called any more", () => {
  const controller = new AbortController();
  const called = [];
  const first = onAbort(controller.signal, () => {
    called.push("first");
    takeBack();
  });
  const takeBack = onAbort(controller.signal, () => called.push("second"));
  controller.abort();
  first();
  assert.deepEqual(called, ["first"]);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("K03: a lost and a closed connection leave no listener either", async () => {
  const { client, socket, time } = await openClient();
  const { signal } = new AbortController();
  client.llm.chatStream({ messages: MESSAGES, signal });
  socket().drop();
  assert.equal(getEventListeners(signal, "abort").length, 0);
  time.advance(1000);
  client.llm.chatStream({ messages: MESSAGES, signal });
  void client.close();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("K04: a thousand calls, ended in every way and never looked at, leave no unhandled rejection", async () => {
  const unhandled = [];
  const listener = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const { client, socket } = await openClient();
  const ends = Object.values(ENDINGS);
  for (let i = 0; i < 1000; i++) {
    const controller = new AbortController();
    const stream = client.llm.chatStream({ messages: MESSAGES, signal: controller.signal });
    if (i % 7 === 6) controller.abort();
    else ends[i % ends.length](socket(), stream);
    if (i % 100 === 0) await settled();
  }
  client.llm.chatStream({ messages: MESSAGES });
  socket().drop();
  await settled();
  process.off("unhandledRejection", listener);
  assert.deepEqual(unhandled, []);
});
