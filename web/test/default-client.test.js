/** What is exported at top level, on a connection to the page's own server that all of it shares. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect, embed, llm, models, transcribe, tts } from "../sdk/index.js";
import { MESSAGES, settled, WELCOME } from "./support/peer.js";

const sockets = [];
globalThis.location = new URL("https://app.example/notes/1?q=2");
globalThis.WebSocket = class {
  readyState = 0;
  sent = [];
  constructor(url) {
    this.url = url;
    sockets.push(this);
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {}
  say(message) {
    this.readyState = 1;
    this.onmessage({ data: JSON.stringify(message) });
  }
};

// The shared connection has no close() of its own, and would keep this process: the server ends it for good.
after(() => {
  for (const socket of sockets) socket.onclose?.({ code: 4401, reason: "the test is over" });
});

test("importing connects to nobody", () => assert.deepEqual(sockets, []));

test("every method and models() share one connection to the server the page came from", async () => {
  const listed = models();
  const voices = tts.voices();
  const samples = { source: new Int16Array(8), sampleRate: 8000 };
  const streams = [
    llm.chatStream({ messages: MESSAGES }),
    tts.synthesize({ text: "a" }),
    transcribe.live(samples),
    embed.create({ texts: ["a"], stream: true }),
  ];
  await settled();
  const [socket] = sockets;
  assert.deepEqual([sockets.length, socket.url], [1, "wss://app.example/v1/ws"]);
  socket.say(WELCOME);
  assert.deepEqual(
    socket.sent.map(({ method }) => method),
    ["chat", "synthesize", "transcribe", "embed"],
  );
  assert.deepEqual((await listed)[0], { id: "smol", method: "chat" });
  assert.ok((await voices).length > 0);
  for (const stream of streams) void stream.cancel();
  assert.equal(socket.sent.filter(({ type }) => type === "cancel").length, 4);
});

test("what a method resolves with is asked on the same connection", async () => {
  const [socket] = sockets;
  const asked = [llm.chat({ messages: MESSAGES }), embed.create({ texts: ["a"] })];
  for (const [i, { id }] of socket.sent.slice(-2).entries()) {
    socket.say({ type: "rejected", id, error: { code: "queue_full", message: "later" } });
    await assert.rejects(asked[i], { code: "queue_full" });
  }
  assert.equal(sockets.length, 1);
});

test("connect() makes another one", async () => {
  const client = connect();
  void client.models().catch(() => {});
  await settled();
  assert.equal(sockets.length, 2);
  void client.close();
});
