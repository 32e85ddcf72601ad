/** What holds for the streams of every method, and for a branch of a tee: how they are read, left and closed. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { collect, teeStream } from "../sdk/index.js";
import { drain, fakeClient, MESSAGES, openClient, settled, WELCOME } from "./support/peer.js";

const source = new Int16Array(1600);
const CHAT = {
  open: ({ llm }, options) => llm.chatStream({ messages: MESSAGES, ...options }),
  begin: (peer, id) => peer.begin(id),
  item: (peer, id) => peer.items(id, "x"),
  last: 1,
};
const METHODS = {
  chat: CHAT,
  speech: {
    open: ({ tts }, options) => tts.synthesize({ text: "hello", ...options }),
    begin: (peer, id) => peer.beginSpeech(id),
    item: (peer, id) => peer.audio(id, [1, 2]),
  },
  transcription: {
    open: ({ transcribe }, options) => transcribe.live({ source, sampleRate: 16_000, ...options }),
    begin: (peer, id) => peer.beginTranscription(id),
    item: (peer, id) => peer.segment(id, { index: 0, revision: 0, text: "x", is_final: false }),
  },
  embedding: {
    open: ({ embed }, options) => embed.create({ texts: ["a", "b"], stream: true, ...options }),
    begin: (peer, id) => peer.beginEmbedding(id),
    item: (peer, id) => peer.rows(id, [[1, 2]]),
  },
  tee: {
    ...CHAT,
    open: (client, options) => {
      const [kept, left] = teeStream(CHAT.open(client, options));
      void left.cancel();
      return kept;
    },
  },
};
const withEmbed = {
  ...WELCOME,
  methods: { ...WELCOME.methods, embed: { models: ["minilm"] } },
};

async function opened({ open, begin }, options) {
  const fake = await openClient({}, withEmbed);
  const stream = open(fake.client, options);
  begin(fake.socket(), stream.id);
  return { ...fake, stream, peer: fake.socket() };
}

for (const [name, method] of Object.entries(METHODS)) {
  test(`${name}: collect() gives all items, as a method and as a function`, async () => {
    for (const all of [(stream) => stream.collect(), collect]) {
      const { stream, peer } = await opened(method);
      const collected = all(stream);
      method.item(peer, stream.id);
      method.item(peer, stream.id);
      peer.done(stream.id);
      assert.equal((await collected).length, 2 + (method.last ?? 0));
    }
  });

  test(`${name}: collect() of a stream that breaks rejects, with the items so far in partial`, async () => {
    const { stream, peer } = await opened(method);
    const collected = collect(stream);
    method.item(peer, stream.id);
    peer.drop();
    await assert.rejects(collected, ({ code, partial }) => {
      assert.deepEqual([code, partial.length], ["connection_lost", 1]);
      return true;
    });
  });

  test(`${name}: a ReadableStream takes what is read, and its cancel cancels on the wire`, async () => {
    const { stream, peer } = await opened(method, { window: 1 });
    const reader = stream.toReadableStream().getReader();
    method.item(peer, stream.id);
    await settled();
    assert.equal(peer.types(stream.id).includes("ack"), false);
    assert.equal((await reader.read()).done, false);
    assert.equal(peer.types(stream.id).at(-1), "ack");
    await reader.cancel();
    assert.equal(peer.types(stream.id).at(-1), "cancel");
    assert.equal(stream.state, "cancelled");
  });

  test(`${name}: return() settles a waiting next(), and a second iteration says what to do`, async () => {
    const { stream, peer } = await opened(method);
    const iterator = stream[Symbol.asyncIterator]();
    const waiting = [iterator.next(), iterator.next()];
    await iterator.return();
    for (const next of waiting) assert.deepEqual(await next, { value: undefined, done: true });
    assert.equal(peer.types(stream.id).at(-1), "cancel");
    for (const again of [() => stream[Symbol.asyncIterator](), () => stream.toReadableStream()]) {
      assert.throws(again, /already being read.*collect\(\).*teeStream\(\)/);
    }
    await assert.rejects(stream.collect(), /already being read/);
  });

  test(`${name}: a hundred live streams on one signal warn of nothing and leave no listener`, async () => {
    const warnings = [];
    const listener = (warning) => warnings.push(warning);
    process.on("warning", listener);
    const { client, socket } = await openClient({}, withEmbed);
    const controller = new AbortController();
    const streams = Array.from({ length: 100 }, () =>
      method.open(client, { signal: controller.signal }),
    );
    await settled();
    assert.equal(getEventListeners(controller.signal, "abort").length, 1);
    for (const { id } of streams.slice(0, 50)) socket().done(id);
    controller.abort();
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    await settled();
    process.off("warning", listener);
    assert.deepEqual(warnings, []);
  });

  test(`${name}: close() settles all that waits, and what is asked for after it`, async () => {
    const { client, stream, time } = await opened(method);
    const reading = drain(stream);
    const other = method.open(client);
    const proof = other.cancel();
    const closed = client.close();
    assert.equal((await reading).error.code, "connection_closed");
    assert.equal((await stream.done).state, "errored");
    assert.equal((await proof).released, false);
    const late = method.open(client);
    assert.equal((await drain(late)).error.code, "connection_closed");
    assert.equal((await late.cancel()).by, null);
    time.advance(1000);
    await closed;
    assert.equal(time.pending, 0);
  });
}

const WHOLES = {
  "llm.chat()": ({ llm }) => llm.chat({ messages: MESSAGES }),
  "tts.voices()": ({ tts }) => tts.voices(),
  "toWav()": ({ tts }) => tts.synthesize({ text: "a" }).toWav(),
  "speech's format": ({ tts }) => tts.synthesize({ text: "a" }).format,
  "transcribe.file()": ({ transcribe }) =>
    transcribe.file({ file: new Uint8Array([82, 73, 70, 70]) }),
  "embed.create()": ({ embed }) => embed.create({ texts: ["a"] }),
  "models()": (client) => client.models(),
};
for (const [name, ask] of Object.entries(WHOLES)) {
  test(`close() rejects ${name}, asked before the connection is open, while open, or after`, async () => {
    const connecting = fakeClient();
    const open = await openClient({}, withEmbed);
    const asked = [ask(connecting.client)];
    if (!/voices|models/.test(name)) asked.push(ask(open.client)); // those have their answer already
    for (const { client } of [connecting, open]) void client.close();
    asked.push(ask(open.client));
    for (const outcome of await Promise.allSettled(asked)) {
      assert.equal(outcome.status, "rejected");
      assert.match(outcome.reason.code, /connection_closed|invalid_audio|invalid_request/);
    }
  });
}
