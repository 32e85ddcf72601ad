import assert from "node:assert/strict";
import { test } from "node:test";
import { Credit } from "../sdk/credit.js";
import { MESSAGES, openClient } from "./support/peer.js";

function acksOf(window, seqs) {
  const credit = new Credit(window, 0);
  for (const seq of seqs) credit.receive(seq);
  return seqs.map((seq) => credit.take(seq, 0)).filter((seq) => seq !== null);
}

const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);

test("acks are absolute and come every quarter of the window", () => {
  assert.deepEqual(acksOf(64, upTo(64)), [16, 32, 48, 64]);
  assert.deepEqual(acksOf(8, upTo(7)), [2, 4, 6]);
});

test("a window below four is acked item by item", () => {
  for (const window of [1, 2, 3]) assert.deepEqual(acksOf(window, upTo(window)), upTo(window));
});

test("a consumer slower than the batch is acked once a second has passed", () => {
  const credit = new Credit(64, 0);
  for (const seq of upTo(4)) credit.receive(seq);
  assert.equal(credit.take(1, 999), null);
  assert.equal(credit.take(2, 1000), 2);
  assert.equal(credit.take(3, 1001), null);
  assert.equal(credit.take(4, 9000), 4);
});

test("items in order within the window are received; gaps, repeats and excess are not", () => {
  const credit = new Credit(2, 0);
  assert.equal(credit.receive(2), false);
  assert.equal(credit.receive(1), true);
  assert.equal(credit.receive(1), false);
  assert.equal(credit.receive(2), true);
  assert.equal(credit.receive(3), false);
  credit.take(2, 0);
  assert.equal(credit.receive(3), true);
  assert.equal(credit.received, 3);
});

test("an ack is sent when the consumer takes an item, not when it arrives", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES, window: 8 });
  socket().begin(stream.id);
  socket().items(stream.id, "1", "2", "3");
  assert.deepEqual(socket().types(stream.id), ["open"]);
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  assert.deepEqual(socket().types(stream.id), ["open"]);
  await iterator.next();
  assert.deepEqual(socket().sent.at(-1), { type: "ack", id: stream.id, seq: 2 });
});

test("an item a reader was waiting for counts as taken on arrival", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES, window: 1 });
  const waiting = stream[Symbol.asyncIterator]().next();
  socket().items(stream.id, "now");
  assert.deepEqual(socket().sent.at(-1), { type: "ack", id: stream.id, seq: 1 });
  await waiting;
});

test("a long answer through a small window never stalls", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES, window: 5 });
  const iterator = stream[Symbol.asyncIterator]();
  for (let seq = 1; seq <= 500; seq++) {
    const acked = socket().sent.findLast(({ type }) => type === "ack")?.seq ?? 0;
    assert.ok(seq <= acked + 5, `no credit for item ${seq} after ack ${acked}`);
    socket().items(stream.id, "x");
    await iterator.next();
  }
});
