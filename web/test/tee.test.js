import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { StreamError, teeStream } from "../sdk/index.js";
import { drain, MESSAGES, openClient, settled } from "./support/peer.js";

const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

async function teed({ n, ...options } = {}) {
  const fake = await openClient();
  const stream = fake.client.llm.chatStream({ messages: MESSAGES, ...options });
  const branches = teeStream(stream, n);
  const peer = fake.socket();
  peer.begin(stream.id);
  return { ...fake, peer, stream, branches };
}

const readersOf = (branches) => branches.map((branch) => branch[Symbol.asyncIterator]());

/** A server that keeps to the credit: sends what it may of `total` items, each time it is called. */
function server(peer, { id }, window, total) {
  let sent = 0;
  const acked = () => peer.sent.findLast(({ type }) => type === "ack")?.seq ?? 0;
  const send = () => {
    while (sent < Math.min(total, acked() + window)) {
      sent += 1;
      peer.items(id, `${sent} `);
    }
  };
  return { send, acked, sent: () => sent };
}

/** How many items a reader gets before it has to wait. */
async function takeAll(reader, send) {
  let taken = 0;
  for (;;) {
    send();
    const next = reader.next().then(({ done }) => !done);
    if (!(await Promise.race([next, settled().then(() => null)]))) return { taken, waiting: next };
    taken += 1;
  }
}

test("each branch gets every item, then the end, of one stream on the wire", async () => {
  const { branches, peer, stream } = await teed({ n: 3 });
  peer.items(stream.id, "a", "b");
  peer.done(stream.id);
  for (const branch of branches) {
    const { items, error } = await drain(branch);
    assert.deepEqual([items.map(({ content }) => content).join(""), items.length], ["ab", 3]);
    assert.equal(error, null);
  }
  assert.deepEqual(peer.types(stream.id), ["open"]);
});

test("two branches by default; what came before the tee is theirs too", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES });
  socket().begin(stream.id);
  socket().items(stream.id, "early");
  socket().done(stream.id);
  const branches = teeStream(stream);
  const all = await Promise.all(branches.map((branch) => branch.collect()));
  assert.deepEqual(
    all.map((items) => items[0].content),
    ["early", "early"],
  );
});

test("K07: while B is never read, A gets a window of 10,000 items, waits, and nothing is acked", async () => {
  const { branches, peer, stream } = await teed({ window: 64 });
  const readers = readersOf(branches);
  const { send, sent, acked } = server(peer, stream, 64, 10_000);
  const { taken } = await takeAll(readers[0], send);
  assert.deepEqual([taken, sent(), acked()], [64, 64, 0]);
});

test("K07: 10,000 items go through at the pace of the slower branch, at most a window apart", async () => {
  const { branches, peer, stream } = await teed({ window: 32 });
  const readers = readersOf(branches);
  const [fast, slow] = readers;
  const { send, sent, acked } = server(peer, stream, 32, 10_000);
  let taken = 0;
  for (let read = 0; read < 10_000; read++) {
    send();
    const { value } = await slow.next();
    assert.equal(value.content, `${read + 1} `);
    while (taken < Math.min(sent(), read + 30)) {
      assert.equal((await fast.next()).value.content, `${++taken} `);
    }
    assert.ok(acked() <= read + 1 && sent() - read <= 33);
  }
  assert.deepEqual([sent(), acked()], [10_000, 10_000]);
});

test("a branch that has left counts no more: the other reads on", async () => {
  const { branches, peer, stream } = await teed({ window: 8 });
  const readers = readersOf(branches);
  const { send, sent } = server(peer, stream, 8, 1000);
  const { waiting } = await takeAll(readers[0], send);
  assert.equal(sent(), 8);
  await readers[1].return();
  send();
  assert.equal(await waiting, true);
  assert.equal((await takeAll(readers[0], send)).taken, 991);
  assert.deepEqual(new Set(peer.types(stream.id)), new Set(["open", "ack"]));
});

const LEAVINGS = {
  break: async (branch) => {
    for await (const _ of branch) break;
  },
  "return()": (branch) => branch[Symbol.asyncIterator]().return(),
  "throw()": (branch) =>
    branch[Symbol.asyncIterator]()
      .throw(new Error("mine"))
      .catch(() => {}),
  "cancel()": (branch) => void branch.cancel(),
  "a ReadableStream's cancel()": (branch) => branch.toReadableStream().cancel(),
};
for (const [name, leave] of Object.entries(LEAVINGS)) {
  test(`the last branch that leaves by ${name} cancels the stream, once`, async () => {
    const { branches, peer, stream } = await teed();
    peer.items(stream.id, "a");
    await branches[0][Symbol.asyncIterator]().return();
    assert.equal(stream.state, "streaming");
    await leave(branches[1]);
    void branches[1].cancel();
    assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
    assert.deepEqual([stream.state, branches[0].state], ["cancelled", "cancelled"]);
  });
}

test("cancel() of one branch claims nothing, of the last one resolves with the server's proof", async () => {
  const { branches, peer, stream } = await teed();
  const first = await branches[0].cancel();
  assert.deepEqual(first, { by: null, released: false, stopMs: null, wasted: null, usage: null });
  assert.deepEqual([peer.types(stream.id), branches[0].state], [["open"], "streaming"]);
  const last = branches[1].cancel();
  peer.cancelled(stream.id);
  assert.deepEqual(
    [(await last).by, (await last).released, (await last).stopMs],
    ["client", true, 14],
  );
  assert.deepEqual(await branches[0].cancel(), await last);
});

test("cancel() of a branch after the end says it had ended, and takes nothing from the other", async () => {
  const { branches, peer, stream } = await teed();
  peer.items(stream.id, "kept");
  peer.done(stream.id);
  assert.deepEqual([(await branches[0].cancel()).by, stream.state], [null, "completed"]);
  assert.equal((await branches[1].collect())[0].content, "kept");
});

test("a branch's cancel() rejects its own iteration with the reason, and no other", async () => {
  const { branches, peer, stream } = await teed();
  const readers = readersOf(branches);
  const [mine, other] = readers.map((reader) => reader.next());
  const reason = new RangeError("enough");
  void branches[0].cancel(reason);
  await assert.rejects(mine, reason);
  peer.items(stream.id, "a");
  assert.equal((await other).value.content, "a");
});

test("return() settles the branch's waiting next()", async () => {
  const { branches } = await teed();
  const readers = readersOf(branches);
  const waiting = readers[0].next();
  await readers[0].return();
  assert.deepEqual(await waiting, { value: undefined, done: true });
});

test("K09: a lost connection reaches every branch after its items, and is kept in partial", async () => {
  const { branches, peer, socket, stream } = await teed();
  peer.items(stream.id, "a", "b");
  socket().drop();
  const [read, collected] = [drain(branches[0]), branches[1].collect().catch((error) => error)];
  const { items, error } = await read;
  assert.deepEqual([items.length, error.code], [2, "connection_lost"]);
  assert.ok(StreamError.isInstance(await collected));
  assert.deepEqual((await collected).partial.length, 2);
  assert.equal((await branches[0].done).state, "errored");
});

test("an abort of the source's signal, and its cancel(), reach every branch", async () => {
  const controller = new AbortController();
  const { branches, peer, stream } = await teed({ signal: controller.signal });
  const ends = branches.map(drain);
  controller.abort();
  for (const end of ends) assert.ok(isAbort((await end).error));
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  const other = await teed();
  void other.stream.cancel();
  for (const branch of other.branches) assert.ok(isAbort((await drain(branch)).error));
});

test("an abort while a finished stream is still being read stops each branch", async () => {
  const controller = new AbortController();
  const { branches, peer, stream } = await teed({ signal: controller.signal });
  const readers = readersOf(branches);
  peer.items(stream.id, "a", "b");
  peer.done(stream.id);
  await readers[0].next();
  controller.abort();
  for (const reader of readers) await assert.rejects(reader.next(), isAbort);
});

test("a branch shows the stream's id, state, queue, start and end", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES });
  const [branch] = teeStream(stream);
  socket().say({ type: "accepted", id: stream.id, phase: "queued", position: 4 });
  assert.deepEqual([branch.id, branch.state, branch.queue.position], [stream.id, "pending", 4]);
  socket().begin(stream.id);
  assert.deepEqual([branch.state, branch.queue, branch.started.model], ["streaming", null, "smol"]);
  socket().done(stream.id);
  assert.equal(await branch.done, await stream.done);
});

test("a source is teed or read, and a branch is read, once", async () => {
  const { branches, client, stream } = await teed();
  assert.throws(() => teeStream(stream), /already being read/);
  assert.throws(() => stream[Symbol.asyncIterator](), /already being read.*teeStream/);
  void branches[0][Symbol.asyncIterator]();
  assert.throws(() => branches[0][Symbol.asyncIterator](), /already being read/);
  const read = client.llm.chatStream({ messages: MESSAGES });
  void drain(read);
  assert.throws(() => teeStream(read), /already being read/);
});

test("what cannot be teed says why", async () => {
  const { stream } = await teed();
  for (const n of [0, -1, 1.5, Number.NaN, "2"])
    assert.throws(() => teeStream(stream, n), RangeError);
  for (const other of [null, undefined, {}, []])
    assert.throws(() => teeStream(other), /llm\.chatStream/);
});

test("a branch can be teed again, and the slowest of all sets the pace", async () => {
  const { branches, peer, stream } = await teed({ window: 8 });
  const readers = readersOf([branches[0]]);
  const deeper = readersOf(teeStream(branches[1]));
  const { send, sent } = server(peer, stream, 8, 100);
  const { waiting } = await takeAll(readers[0], send);
  await takeAll(deeper[0], send);
  assert.equal(sent(), 8);
  await deeper[1].return();
  send();
  assert.equal(await waiting, true);
  await Promise.all([readers[0].return(), deeper[0].return()]);
  assert.equal(peer.types(stream.id).at(-1), "cancel");
});

test("speech: marks and audio reach both branches, and what one was marked counts for the other", async () => {
  const { client, socket } = await openClient();
  const stream = client.tts.synthesize({ text: "a b", marks: true, window: 1 });
  const readers = readersOf(teeStream(stream));
  const peer = socket();
  peer.beginSpeech(stream.id);
  for (const reader of readers) {
    const next = reader.next();
    if (reader === readers[0]) {
      peer.mark(stream.id, { text: "a ", start: 0, end: 1 });
      peer.audio(stream.id, [1, 2]);
    }
    const { value } = await next;
    assert.deepEqual([[...value.samples], value.mark.text], [[1, 2], "a "]);
  }
  assert.equal(peer.sent.findLast(({ type }) => type === "ack").seq, 2);
});

test("embeddings: a frame of rows counts when the slower branch has taken its last row", async () => {
  const { client, socket } = await openClient();
  const stream = client.embed.create({ texts: ["a", "b"], stream: true, window: 1 });
  const [one, two] = readersOf(teeStream(stream));
  socket().beginEmbedding(stream.id);
  socket().rows(stream.id, [
    [1, 2],
    [3, 4],
  ]);
  for (let i = 0; i < 2; i++) await one.next();
  await two.next();
  assert.deepEqual(socket().types(stream.id), ["open"]);
  await two.next();
  assert.deepEqual(socket().types(stream.id), ["open", "ack"]);
});

test("branches nobody looks at, of streams that end in every way, leave no unhandled rejection", async () => {
  const unhandled = [];
  const listener = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const { client, socket } = await openClient();
  for (const end of [
    (id) => socket().done(id),
    (id) => socket().cancelled(id, "slow"),
    () => void client.close(),
  ]) {
    const stream = client.llm.chatStream({ messages: MESSAGES });
    teeStream(stream);
    socket().begin(stream.id);
    end(stream.id);
  }
  await settled();
  process.off("unhandledRejection", listener);
  assert.deepEqual(unhandled, []);
});
