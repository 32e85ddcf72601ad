/** Every method against a real server: how it streams, stops, and gives everything back. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  collect,
  InvalidRequestError,
  PlaitError,
  StreamCancelledError,
  StreamError,
  teeStream,
  wavOf,
} from "../../sdk/index.js";
import { chat, Proofs, recite, serve } from "../support/live.js";
import { drain } from "../support/peer.js";

const ENDLESS = "tokens=100000 step_ms=5";
const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

const proofs = new Proofs();
let server;
let plait;
before(async () => {
  server = await serve();
  plait = server.client();
});
after(() => server.stop());

/** What each method streams, without end. */
const ENDLESS_STREAMS = {
  chat: () => plait.llm.chatStream(chat(ENDLESS)),
  synthesize: () => plait.tts.synthesize({ text: words() }),
  transcribe: () => plait.transcribe.live({ source: talk(), sampleRate: 16_000 }),
  embed: () => plait.embed.create({ texts: texts(), stream: true }),
};
async function* words() {
  for (let i = 0; ; i++) yield `Sentence ${i}. `;
}
async function* talk() {
  const { samples } = recite("one two three");
  for (;;) yield* samples;
}
async function* texts() {
  for (let i = 0; ; i++) yield `text ${i}`;
}

test("a chat: its deltas, its usage, its end", async () => {
  const deltas = await collect(plait.llm.chatStream(chat("tokens=3")));
  assert.equal(deltas.map(({ content }) => content).join(""), "w0 w1 w2 ");
  const { done, usage, finishReason } = deltas.at(-1);
  assert.deepEqual([done, usage.completionTokens, finishReason], [true, 3, "stop"]);
  assert.equal(await plait.llm.chat(chat("tokens=2")), "w0 w1 ");
});

test("models() and the welcome say what the server has", async () => {
  assert.deepEqual((await plait.models()).map(({ method }) => method).sort(), [
    "chat",
    "embed",
    "synthesize",
    "transcribe",
  ]);
  assert.equal(plait.welcome.protocol, "plait.v1");
  assert.ok((await plait.tts.voices()).length > 0);
});

for (const [method, open] of Object.entries(ENDLESS_STREAMS)) {
  test(`${method}: cancel() in mid-stream resolves with the proof, and nothing is held`, async () => {
    const stream = open();
    const iterator = stream[Symbol.asyncIterator]();
    assert.equal((await iterator.next()).done, false);
    proofs.add(await stream.cancel());
    await assert.rejects(iterator.next(), isAbort);
    await server.idle();
  });

  test(`${method}: the cancel of its ReadableStream stops it on the server`, async () => {
    const cancelled = await server.ended("cancelled", method);
    const stream = open();
    const reader = stream.toReadableStream().getReader();
    assert.equal((await reader.read()).done, false);
    await reader.cancel();
    proofs.add(await stream.done);
    await server.idle();
    await server.endedAre(cancelled + 1, "cancelled", method);
  });
}

test("an abort throws AbortError, or the reason that was given", async () => {
  for (const reason of [undefined, new RangeError("changed my mind")]) {
    const controller = new AbortController();
    const stream = plait.llm.chatStream({ ...chat(ENDLESS), signal: controller.signal });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    controller.abort(reason);
    await assert.rejects(iterator.next(), reason ?? isAbort);
    proofs.add(await stream.done);
  }
  await server.idle();
});

test("a deadline ends the stream with what had come, and says who stopped it", async () => {
  const request = { ...chat(ENDLESS), deadlineMs: 300 };
  await assert.rejects(plait.llm.chat(request), (error) => {
    assert.ok(StreamCancelledError.isInstance(error));
    assert.deepEqual([error.by, typeof error.partial], ["deadline", "string"]);
    return true;
  });
  await server.idle();
});

test("a priority is taken, and one there is not is refused by name", async () => {
  for (const priority of ["interactive", "batch"]) {
    assert.equal(await plait.llm.chat({ ...chat("tokens=1"), priority }), "w0 ");
  }
  await assert.rejects(
    plait.llm.chat({ ...chat("tokens=1"), priority: "urgent" }),
    (error) => InvalidRequestError.isInstance(error) && error.param === "priority",
  );
});

test("K05: break after three items, a hundred times: nothing is held, and the next call is normal", async () => {
  const cancelled = await server.ended("cancelled", "chat");
  for (let call = 0; call < 100; call++) {
    let items = 0;
    for await (const _ of plait.llm.chatStream(chat(ENDLESS))) {
      items += 1;
      if (items === 3) break;
    }
  }
  await server.idle();
  await server.endedAre(cancelled + 100, "cancelled", "chat");
  assert.equal(await plait.llm.chat(chat("tokens=2")), "w0 w1 ");
});

test("an answer is spoken while it is written, and stopping the speech stops both", async () => {
  const answer = plait.llm.chatStream(chat(`${ENDLESS} say=yes.`));
  const speech = plait.tts.synthesize({ text: answer });
  for await (const chunk of speech) {
    assert.ok(chunk.samples.length > 0);
    assert.equal(answer.state, "streaming");
    break;
  }
  proofs.add(await speech.done);
  proofs.add(await answer.done);
  await server.idle();
});

test("stopping the answer stops its speech", async () => {
  const answer = plait.llm.chatStream(chat(`${ENDLESS} say=yes.`));
  const speech = plait.tts.synthesize({ text: answer });
  const heard = drain(speech);
  await speech.format;
  proofs.add(await answer.cancel());
  assert.ok(isAbort((await heard).error));
  proofs.add(await speech.done);
  await server.idle();
});

test("speech: chunks follow each other, marks joined are the text, and toWav() keeps all", async () => {
  const text = "One two. Three four. ";
  const chunks = await collect(plait.tts.synthesize({ text, marks: true }));
  assert.equal(chunks.map(({ mark }) => mark?.text ?? "").join(""), text);
  let at = 0;
  for (const { startSample, samples } of chunks) {
    assert.equal(startSample, at);
    at += samples.length;
  }
  const wav = await plait.tts.synthesize({ text }).toWav();
  assert.equal(wav.size, 44 + 2 * at);
});

test("transcription: words come while they are said, and all are final at the end", async () => {
  const { samples, sampleRate } = recite("one two three four");
  async function* said() {
    for (const piece of samples) yield piece;
  }
  const stream = plait.transcribe.live({ source: said(), sampleRate, events: true });
  const events = [];
  stream.on("speech", ({ type }) => events.push(type));
  const segments = await stream.collect();
  assert.equal(segments.at(-1).isFinal, true);
  assert.equal(segments.at(-1).text.trim(), "one two three four");
  assert.ok(segments.length > 1 && events[0] === "started");
});

test("transcription of a file gives its text", async () => {
  const { samples, sampleRate } = recite("five six");
  const audioBytes = Buffer.concat(samples.map(({ buffer }) => Buffer.from(buffer)));
  const { text, segments } = await plait.transcribe.file({
    file: wavOf([{ audioBytes, sampleRate }]),
  });
  assert.deepEqual([text, segments.length], ["five six", 1]);
});

test("embeddings: a vector for each text, the same each time, and errors that end nothing else", async () => {
  const vectors = await plait.embed.create({ texts: ["a", "b", "a"] });
  assert.deepEqual(vectors[0], vectors[2]);
  assert.notDeepEqual(vectors[0], vectors[1]);
  const answers = await collect(plait.embed.create({ texts: ["a", "nan", "b"], stream: true }));
  assert.deepEqual(
    answers.map(({ error }) => error?.code),
    [undefined, "generation_failed", undefined],
  );
});

test("K07: of a tee that is half read the server computes a window ahead, and goes on once the other left", async () => {
  const stream = plait.llm.chatStream({ ...chat("tokens=1000 burst=8"), window: 16 });
  const [read, unread] = teeStream(stream);
  const iterator = read[Symbol.asyncIterator]();
  for (let i = 0; i < 16; i++) assert.equal((await iterator.next()).value.content, `w${i} `);
  const waiting = iterator.next();
  const seen = await Promise.race([waiting, plait.llm.chat(chat("tokens=3 step_ms=30"))]);
  assert.equal(seen, "w0 w1 w2 ");
  assert.equal((await unread.cancel()).by, null);
  let last = (await waiting).value;
  for (let next = await iterator.next(); !next.done; next = await iterator.next())
    last = next.value;
  assert.equal(last.usage.completionTokens, 1000);
});

test("a tee is stopped by its last branch, and both branches have what was read", async () => {
  const [one, two] = teeStream(plait.llm.chatStream(chat(ENDLESS)));
  for (const branch of [one, two]) {
    for await (const { content } of branch) {
      assert.equal(content, "w0 ");
      break;
    }
  }
  proofs.add(await two.cancel());
  assert.equal((await one.done).by, "client");
  await server.idle();
});

test("an unknown model and a refused request are typed, and touch nothing else", async () => {
  const other = plait.llm.chatStream(chat("tokens=5 step_ms=20"));
  await assert.rejects(plait.llm.chat({ ...chat("x"), model: "none" }), {
    code: "model_not_found",
  });
  await assert.rejects(plait.llm.chat({ ...chat("x"), temperature: -1 }), (error) => {
    return InvalidRequestError.isInstance(error) && error.param === "temperature";
  });
  await assert.rejects(plait.llm.chat(chat("refuse=out_of_memory")), (error) => {
    return PlaitError.isInstance(error) && error.class === "capacity" && error.retryable;
  });
  assert.equal((await other.collect()).length, 6);
});

test("what fails in the engine keeps the text so far, and a crashed engine serves the next call", async () => {
  for (const [script, code, retryable] of [
    ["fail_at=2", "generation_failed", false],
    ["crash_at=2", "engine_crashed", true],
  ]) {
    await assert.rejects(plait.llm.chat(chat(`tokens=9 step_ms=20 ${script}`)), (error) => {
      assert.ok(StreamError.isInstance(error));
      assert.deepEqual([error.code, error.retryable], [code, retryable]);
      assert.match(error.partial, /^(w0 (w1 )?)?$/);
      return true;
    });
  }
  assert.equal(await plait.llm.chat(chat("tokens=1")), "w0 ");
  await server.idle();
});

test("most of all these stops were confirmed within 100 ms", () => {
  proofs.assertMostReleased();
});
