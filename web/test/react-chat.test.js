/** The state behind useStreamedChat, over a peer in memory and frames that come when told. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatStore } from "../react/chat-store.js";
import { leaseOf } from "../react/lease.js";
import { watchQueue } from "../react/watching.js";
import { drain, openClient, settled } from "./support/peer.js";
import { Frames } from "./support/stage.js";

async function openChat(options) {
  const { client, socket } = await openClient();
  const frames = new Frames();
  const store = new ChatStore(leaseOf(client), options, frames.schedule);
  const leave = store.enter(leaseOf(client));
  let renders = 0;
  store.subscribe(() => {
    renders += 1;
  });
  return { client, socket: socket(), frames, store, leave, renders: () => renders };
}

const contents = (store) => store.get().messages.map(({ content }) => content);

test("an answer grows in messages, once per frame however fast it comes", async () => {
  const { socket, store, frames, renders } = await openChat();
  store.get().send("hi");
  socket.begin(1);
  socket.items(1, "a");
  await settled();
  const before = renders();

  for (let i = 0; i < 50; i += 1) socket.items(1, "b");
  await settled();
  assert.equal(renders(), before);
  frames.next();

  assert.equal(renders(), before + 1);
  assert.deepEqual(contents(store), ["hi", `a${"b".repeat(50)}`]);
  assert.equal(store.get().tokens, 51);
  assert.equal(store.get().status, "streaming");
});

test("the end is seen at once, with the server's count and with all that came", async () => {
  const { socket, store } = await openChat();
  store.get().send("hi");
  socket.begin(1);
  socket.items(1, "a", "b", "c");
  socket.done(1);
  await settled();

  const { status, isStreaming, tokens, usage, text } = store.get();
  assert.deepEqual(
    { status, isStreaming, tokens, text },
    {
      status: "completed",
      isStreaming: false,
      tokens: 2,
      text: "abc",
    },
  );
  assert.equal(usage.completionTokens, 2);
});

test("cancel sends its frame and changes the status in the same tick; the text stays as it was", async () => {
  const { socket, store } = await openChat();
  store.get().send("hi");
  socket.begin(1);
  socket.items(1, "a");
  await settled();

  const proof = store.get().cancel();
  assert.equal(socket.types(1).at(-1), "cancel");
  assert.equal(store.get().status, "cancelled");
  assert.equal(store.get().isStreaming, false);
  socket.items(1, "late");
  socket.cancelled(1);

  assert.equal((await proof).stopMs, 14);
  assert.deepEqual(contents(store), ["hi", "a"]);
  assert.equal(store.get().usage.completionTokens, 2);
  assert.equal(await store.get().cancel(), null);
});

test("where it stands in the queue is seen with the next frame", async () => {
  const { socket, store, frames } = await openChat();
  store.get().send("hi");
  assert.equal(store.get().status, "queued");

  socket.say({ type: "accepted", id: 1, phase: "queued", position: 3, eta_ms: 900 });
  frames.next();
  assert.equal(store.get().queue.position, 3);
  socket.begin(1);
  frames.next();

  assert.equal(store.get().queue, null);
  assert.equal(store.get().status, "streaming");
});

test("asking while an answer is written stops that one and keeps what it had", async () => {
  const { socket, store } = await openChat();
  store.get().send("one");
  socket.begin(1);
  socket.items(1, "a");
  await settled();

  store.get().send("two");
  socket.begin(2);
  socket.cancelled(1);
  socket.items(2, "b");
  await settled();

  assert.deepEqual(socket.types(1).slice(-1), ["cancel"]);
  const { messages } = socket.sent.find(({ id, type }) => id === 2 && type === "open").params;
  assert.deepEqual(
    messages.map(({ content }) => content),
    ["one", "a", "two"],
  );
  assert.deepEqual(contents(store), ["one", "a", "two", "b"]);
});

test("a lost connection keeps the text, is an error and can be tried again without doubling it", async () => {
  const { store, socket, client } = await openChat();
  store.get().send("hi");
  socket.begin(1);
  socket.items(1, "half");
  await settled();

  socket.drop();
  await settled();
  const { status, error } = store.get();
  assert.deepEqual([status, error.code, error.retryable], ["error", "connection_lost", true]);
  assert.deepEqual(contents(store), ["hi", "half"]);
  assert.equal(client.state, "reconnecting");

  store.get().retry();
  assert.equal(store.get().error, undefined);
  assert.deepEqual(contents(store), ["hi"]);
  assert.equal(store.get().status, "queued");
});

test("what the server stopped by itself is an error, not the user's stop", async () => {
  const { store, socket } = await openChat();
  store.get().send("hi");
  socket.begin(1);
  socket.cancelled(1, "deadline");
  await settled();

  assert.equal(store.get().status, "error");
  assert.equal(store.get().error.by, "deadline");
});

test("a signal of the caller's is a cancel", async () => {
  const controller = new AbortController();
  const { store, socket } = await openChat({ signal: controller.signal });
  store.get().send("hi");
  socket.begin(1);

  controller.abort("enough");
  await settled();

  assert.equal(store.get().status, "cancelled");
  assert.equal(store.get().error, undefined);
});

test("a request that cannot be made is an error in the state", async () => {
  const { store, socket } = await openChat({ window: 0 });
  const sent = socket.sent.length;

  store.get().send("hi");

  assert.equal(store.get().error.param, "window");
  assert.equal(store.get().status, "error");
  assert.equal(socket.sent.length, sent);
});

test("complete calls of tools enter the message, and their results are sent like anything else", async () => {
  const { store, socket } = await openChat();
  const call = { id: "c1", type: "function", function: { name: "time", arguments: "{}" } };
  store.get().send("hi");
  socket.begin(1);
  const begun = { index: 0, ...call, function: { name: "time", arguments: "" } };
  socket.say({ type: "item", id: 1, seq: 1, data: { tool_calls: [begun] } });
  const whole = { index: 0, ...call, complete: true };
  socket.say({ type: "item", id: 1, seq: 2, data: { tool_calls: [whole] } });
  socket.seqs = { 1: 2 };
  socket.done(1);
  await settled();

  const message = { role: "assistant", content: null, tool_calls: [call] };
  assert.deepEqual(store.get().messages.at(-1), message);
  store.get().send({ role: "tool", tool_call_id: "c1", content: "noon" });
  assert.equal(socket.sent.at(-1).params.messages.length, 3);
});

test("an answer can be read by somebody else as well, and cancel stops them all", async () => {
  const answers = [];
  const { store, socket } = await openChat({ onAnswer: (answer) => answers.push(answer) });
  store.get().send("hi");
  const heard = drain(answers[0]);
  socket.begin(1);
  socket.items(1, "a", "b");
  await settled();
  assert.equal(store.get().messages.at(-1).content.at(0), "a");

  void store.get().cancel();
  assert.equal(socket.types(1).at(-1), "cancel");

  const { items, error } = await heard;
  assert.equal(items.map(({ content }) => content).join(""), "ab");
  assert.equal(error.name, "AbortError");
  assert.equal(store.get().status, "cancelled");
});

test("an onAnswer that throws is an error, and nothing runs", async () => {
  const { store, socket } = await openChat({
    onAnswer: () => {
      throw new Error("no");
    },
  });

  store.get().send("hi");

  assert.deepEqual([store.get().status, store.get().error.message], ["error", "no"]);
  assert.equal(socket.types(1).at(-1), "cancel");
});

test("leaving cancels in the same tick", async () => {
  const { store, socket, leave } = await openChat();
  store.get().send("hi");
  socket.begin(1);

  leave();

  assert.equal(socket.types(1).at(-1), "cancel");
});

test("a question asked on entering stands there once when StrictMode enters twice", async () => {
  const { store, socket, leave, client } = await openChat();
  store.get().send("hi");
  leave();
  store.enter(leaseOf(client));
  assert.deepEqual([contents(store), store.get().status], [[], "idle"]);

  store.get().send("hi");
  socket.begin(2);
  socket.items(2, "a");
  await settled();

  assert.deepEqual(contents(store), ["hi", "a"]);
});

test("what a handler asks for after its component has left is not asked, until it comes back", async () => {
  const { client, socket, store, leave } = await openChat();
  leave();
  store.enter(leaseOf(client))(); // StrictMode, and gone again
  await settled();

  store.get().send("hi");
  await settled();
  assert.deepEqual([socket.sent, contents(store)], [[], []]);
  store.enter(leaseOf(client));
  store.get().send("hi");
  assert.equal(socket.sent.length, 1);
});

test("who comes back later finds what was there", async () => {
  const { store, leave, client } = await openChat();
  store.get().send("hi");
  leave();
  await settled();

  store.enter(leaseOf(client));

  assert.deepEqual([contents(store), store.get().status], [["hi"], "cancelled"]);
});

test("reset begins anew, with the messages of the options or others; an event is none", async () => {
  const system = { role: "system", content: "short" };
  const { store } = await openChat({ messages: [system] });
  store.get().send("hi");

  store.get().reset({ type: "click" });
  assert.deepEqual([contents(store), store.get().status], [["short"], "idle"]);
  store.get().reset([]);

  assert.deepEqual(contents(store), []);
  store.get().retry();
  assert.equal(store.get().status, "idle");
});

test("between changes the state is one and the same object", async () => {
  const { store, frames } = await openChat();

  const before = store.get();
  frames.next();

  assert.equal(store.get(), before);
});

test("a stream's frames are watched until it has begun, and no longer", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: [{ role: "user", content: "hi" }] });
  let moved = 0;
  watchQueue(client, stream, () => {
    moved += 1;
  });

  socket().begin(stream.id); // two frames
  socket().items(stream.id, "a", "b", "c");

  assert.equal(moved, 3);
  void stream.cancel();
});
