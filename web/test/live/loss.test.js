/** A real server that dies: in mid-stream of every kind, and comes back on the same port. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { StreamError } from "../../sdk/index.js";
import { chat, freePort, recite, serve } from "../support/live.js";

const PACE_MS = 20;
const ENDLESS = "tokens=100000 step_ms=20";
const client = { reconnect: { maxDelayMs: 500 } };

let port;
let server;
let plait;
before(async () => {
  port = await freePort();
  server = await serve({ port });
  plait = server.client(client);
});
after(() => server.stop());

/** At the pace of somebody who writes or talks. */
async function* forEver(make) {
  for (let i = 0; ; i++) {
    yield make(i);
    await delay(PACE_MS);
  }
}

/** Each kind as its users ask for it; `first` resolves once something has come, `partial` says whether it was kept. */
function everyKind() {
  const { llm, tts, transcribe, embed } = plait;
  const [word] = recite("three").samples;
  const text = forEver((i) => `Sentence ${i}. `);
  return {
    "llm.chatStream": llm.chatStream(chat(ENDLESS)),
    "tts.synthesize": tts.synthesize({ text }),
    "transcribe.live": transcribe.live({ source: forEver(() => word), sampleRate: 16_000 }),
    "embed.create": embed.create({ texts: forEver((i) => `text ${i}`), stream: true }),
  };
}

/** Reads to the end; `begun` resolves with the first item. */
function reading(stream) {
  const items = [];
  let begin;
  const begun = new Promise((resolve) => {
    begin = resolve;
  });
  const outcome = (async () => {
    for await (const item of stream) {
      items.push(item);
      begin();
    }
  })().then(
    () => "an end",
    (error) => error,
  );
  return { items, begun, outcome };
}

test("K09: a server killed in mid-stream: every kind throws, keeps what came, and is never done", async () => {
  const streams = everyKind();
  const readings = Object.values(streams).map(reading);
  const whole = [
    plait.llm.chat(chat(ENDLESS)),
    plait.embed.create({ texts: forEver((i) => `text ${i}`) }),
    plait.tts.synthesize({ text: forEver((i) => `Sentence ${i}. `) }).toWav(),
  ].map((promise) =>
    promise.then(
      () => "an end",
      (error) => error,
    ),
  );
  await Promise.all(readings.map(({ begun }) => begun));
  await server.kill();
  for (const [i, [kind, stream]] of Object.entries(streams).entries()) {
    const error = await readings[i].outcome;
    assert.ok(StreamError.isInstance(error), `${kind}: ${error}`);
    assert.deepEqual([error.code, error.retryable], ["connection_lost", true], kind);
    assert.ok(readings[i].items.length > 0);
    assert.equal((await stream.done).state, "errored");
  }
  const [text, vectors, wav] = await Promise.all(whole);
  for (const error of [text, vectors, wav]) assert.equal(error.code, "connection_lost");
  assert.equal(typeof text.partial, "string");
  assert.ok(Array.isArray(vectors.embeddings) && Array.isArray(wav.partial));
});

test("while it is away requests fail and say so; once it is back the connection is, and nothing is replayed", async () => {
  await assert.rejects(plait.llm.chat(chat("tokens=1")), { code: "connection_failed" });
  const open = new Promise((resolve) => {
    plait.on("state", ({ state }) => state === "open" && resolve());
  });
  const away = server;
  server = await serve({ port });
  await open;
  await server.idle();
  for (const { name, value } of await server.metrics()) {
    if (name.startsWith("plait_streams_total")) assert.equal(value, 0, name);
  }
  const stream = plait.llm.chatStream(chat("tokens=1"));
  assert.equal((await stream.collect())[0].content, "w0 ");
  assert.ok(stream.id > 7, "ids go on");
  await away.stop();
});

test("close() in mid-stream ends every kind, and the server holds nothing", async () => {
  plait = server.client(client);
  const readings = Object.values(everyKind()).map(reading);
  await Promise.all(readings.map(({ begun }) => begun));
  await plait.close();
  for (const { outcome } of readings) assert.equal((await outcome).code, "connection_closed");
  await server.idle();
});
