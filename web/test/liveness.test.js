import assert from "node:assert/strict";
import { test } from "node:test";
import { Liveness } from "../sdk/liveness.js";
import { drain, MESSAGES, openClient } from "./support/peer.js";

const TICK_MS = 10_000;

function verdicts(gapsMs, heardBefore = []) {
  const liveness = new Liveness(TICK_MS, 0);
  let nowMs = 0;
  return gapsMs.map((gapMs, i) => {
    nowMs += gapMs;
    if (heardBefore.includes(i)) liveness.receive();
    return liveness.tick(nowMs);
  });
}

test("a quiet peer is asked once and given a whole tick to answer", () => {
  assert.deepEqual(verdicts([TICK_MS, TICK_MS, TICK_MS]), ["alive", "ping", "dead"]);
});

test("any frame counts as an answer", () => {
  assert.deepEqual(verdicts([TICK_MS, TICK_MS, TICK_MS, TICK_MS], [2]), [
    "alive",
    "ping",
    "alive",
    "ping",
  ]);
});

test("K13: minute-long ticks with frames between them never even ask", () => {
  const gaps = Array.from({ length: 60 }, () => 60_000);
  const heard = gaps.map((_, i) => i);
  assert.deepEqual(new Set(verdicts(gaps, heard)), new Set(["alive"]));
});

test("a late tick asks instead of judging: what arrived may still wait behind it", () => {
  assert.deepEqual(verdicts([TICK_MS, TICK_MS, 3_600_000, TICK_MS], []), [
    "alive",
    "ping",
    "ping",
    "dead",
  ]);
});

test("a throttled page still finds a dead peer in the end", () => {
  assert.equal(verdicts([60_000, 60_000, 60_000, 60_000]).at(-1), "dead");
});

test("K13: an hour hidden, timers once a minute, frames arriving: no reconnection, no ping", async () => {
  const { client, socket, sockets, time } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES, window: 256 });
  socket().begin(stream.id);
  for (let minute = 0; minute < 60; minute++) {
    socket().items(stream.id, "x");
    time.wakeAfter(60_000);
  }
  assert.equal(client.state, "open");
  assert.equal(sockets.length, 1);
  assert.deepEqual(socket().types(undefined), []);
});

test("a page that slept an hour asks, hears the pong and stays", async () => {
  const { client, socket, time } = await openClient();
  time.advance(2 * TICK_MS);
  time.wakeAfter(3_600_000);
  assert.equal(client.state, "open");
  const ping = socket().sent.at(-1);
  assert.equal(ping.type, "ping");
  socket().say({ type: "pong", n: ping.n });
  time.advance(TICK_MS);
  assert.equal(client.state, "open");
});

test("an idle connection is kept by ping and pong", async () => {
  const { client, socket, time } = await openClient();
  for (let i = 0; i < 20; i++) {
    time.advance(TICK_MS);
    const ping = socket().sent.at(-1);
    if (ping) socket().say({ type: "pong", n: ping.n });
  }
  assert.equal(client.state, "open");
});

test("a peer that answers nothing for two pings' time is a lost connection", async () => {
  const { client, socket, time } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES });
  socket().items(stream.id, "kept");
  time.advance(3 * TICK_MS);
  const { items, error } = await drain(stream);
  assert.equal(items.length, 1);
  assert.equal(error.code, "connection_lost");
  assert.equal(client.state, "reconnecting");
});
