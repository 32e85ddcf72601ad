/** Text that goes up while it is written: credit, order, endings. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { drain, MESSAGES, openClient, settled } from "./support/peer.js";

/** A source that gives pieces when told, and says when it was let go. */
function source() {
  const waiting = [];
  const ready = [];
  const state = { returned: 0, asked: 0 };
  const put = (result) => {
    const reader = waiting.shift();
    if (reader) reader(result);
    else ready.push(result);
  };
  return {
    state,
    give: (...pieces) => pieces.forEach((value) => void put(Promise.resolve({ value }))),
    end: () => put(Promise.resolve({ value: undefined, done: true })),
    fail: (reason) => put(Promise.reject(reason)),
    [Symbol.asyncIterator]: () => ({
      next: () => {
        state.asked += 1;
        return ready.shift() ?? new Promise((resolve) => waiting.push(resolve));
      },
      return: async () => {
        state.returned += 1;
        return { value: undefined, done: true };
      },
    }),
  };
}

async function openSpoken(request = {}) {
  const fake = await openClient();
  const text = source();
  const stream = fake.client.tts.synthesize({ text, ...request });
  const peer = fake.socket();
  const inputs = () => peer.sent.filter(({ type }) => type === "input").map(({ text }) => text);
  return { ...fake, text, stream, peer, inputs };
}

test("the open has no text, and nothing is asked of the source before there is room", async () => {
  const { peer, text, stream } = await openSpoken({ voice: "af_heart" });
  text.give("Hello.");
  await settled();
  assert.deepEqual(peer.sent[0].params, { voice: "af_heart" });
  assert.deepEqual([peer.types(stream.id), text.state.asked], [["open"], 0]);
});

test("pieces go up as they are written, and their end is said", async () => {
  const { peer, text, stream } = await openSpoken();
  peer.beginSpeech(stream.id);
  text.give("One ", "", "more.");
  text.end();
  await settled();
  assert.deepEqual(
    peer.sent.slice(1),
    [{ type: "input", text: "One " }, { type: "input", text: "more." }, { type: "end" }].map(
      (message) => ({ ...message, id: stream.id }),
    ),
  );
  assert.equal(text.state.returned, 0);
});

test("no more bytes go up than there is credit for, counted in UTF-8 and cut between characters", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id, 7);
  text.give("aé漢😀z");
  text.end();
  await settled();
  assert.deepEqual(inputs(), ["aé漢"]); // 1 + 2 + 3 bytes; the next character needs four
  peer.say({ type: "input_ack", id: stream.id, bytes: 6, window_bytes: 4 });
  await settled();
  assert.deepEqual(inputs(), ["aé漢", "😀"]);
  assert.equal(peer.types(stream.id).includes("end"), false);
  peer.say({ type: "input_ack", id: stream.id, bytes: 10, window_bytes: 7 });
  await settled();
  assert.deepEqual([inputs().at(-1), peer.sent.at(-1).type], ["z", "end"]);
});

test("the source is not read faster than its text goes up", async () => {
  const { peer, text, stream } = await openSpoken();
  peer.beginSpeech(stream.id, 3);
  text.give("abc", "def", "ghi");
  await settled();
  assert.equal(text.state.asked, 2);
  peer.say({ type: "input_ack", id: stream.id, bytes: 3, window_bytes: 3 });
  await settled();
  assert.equal(text.state.asked, 3);
});

test("a repeated accepted, or an older ack, takes no credit away", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id, 4);
  peer.say({ type: "input_ack", id: stream.id, bytes: 0, window_bytes: 8 });
  peer.say({ type: "accepted", id: stream.id, phase: "preparing", position: 0, window_bytes: 4 });
  text.give("12345678");
  await settled();
  assert.deepEqual(inputs(), ["12345678"]);
});

test("a long piece goes up in parts, and joined they are the piece", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id, 1_000_000);
  const long = "😀漢é ".repeat(9_000);
  text.give(long);
  await settled();
  assert.equal(inputs().join(""), long);
  assert.ok(inputs().every((part) => new TextEncoder().encode(part).length <= 16_384));
});

test("a pair of surrogates in two pieces arrives whole, half of one as U+FFFD", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id);
  text.give("a\ud83d", "\ude00b", "c\ud83d");
  text.end();
  await settled();
  assert.equal(inputs().join(""), "a😀bc\ufffd");
  assert.equal(peer.sent.at(-1).type, "end");
});

test("a byte order mark is text like any other", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id);
  text.give("\ufeffa");
  await settled();
  assert.deepEqual(inputs(), ["\ufeffa"]);
});

test("arrays and generators are sources too", async () => {
  const { client, socket } = await openClient();
  function* words() {
    yield "two ";
    yield "words";
  }
  for (const text of [["two ", "words"], words()]) {
    const stream = client.tts.synthesize({ text });
    socket().beginSpeech(stream.id);
    await settled();
    assert.deepEqual(socket().types(stream.id), ["open", "input", "input", "end"]);
  }
});

test("a ReadableStream is a source, also where it cannot be iterated", async () => {
  const { client, socket } = await openClient();
  let cancelled = 0;
  const readable = new ReadableStream({
    start: (controller) => controller.enqueue("From a stream. "),
    cancel: () => void cancelled++,
  });
  const text = { getReader: () => readable.getReader() };
  const stream = client.tts.synthesize({ text });
  socket().beginSpeech(stream.id);
  await settled();
  assert.equal(socket().sent.at(-1).text, "From a stream. ");
  stream.cancel();
  await settled();
  assert.equal(cancelled, 1);
});

const ENDINGS = {
  done: (peer, stream) => peer.done(stream.id),
  error: (peer, stream) =>
    peer.say({ type: "error", id: stream.id, seq: 0, error: { code: "internal", message: "m" } }),
  rejected: (peer, stream) =>
    peer.say({ type: "rejected", id: stream.id, error: { code: "queue_full", message: "m" } }),
  deadline: (peer, stream) => peer.cancelled(stream.id, "deadline"),
  cancel: (_, stream) => void stream.cancel(),
  leaving: (_, stream) => stream[Symbol.asyncIterator]().return(),
  "a lost connection": (peer) => peer.drop(),
};
for (const [name, end] of Object.entries(ENDINGS)) {
  test(`a stream that ends by ${name} lets its source go, once`, async () => {
    const { peer, text, stream, inputs } = await openSpoken();
    if (name !== "rejected") peer.beginSpeech(stream.id);
    await settled();
    end(peer, stream);
    peer.cancelled(stream.id);
    text.give("too late");
    await settled();
    assert.deepEqual([text.state.returned, inputs()], [1, []]);
    assert.equal(peer.types(stream.id).includes("end"), false);
  });
}

test("a source that waits for credit is let go too", async () => {
  const { peer, text, stream, inputs } = await openSpoken();
  peer.beginSpeech(stream.id, 1);
  text.give("abc");
  await settled();
  stream.cancel();
  await settled();
  peer.say({ type: "input_ack", id: stream.id, bytes: 1, window_bytes: 9 });
  await settled();
  assert.deepEqual([text.state.returned, inputs()], [1, ["a"]]);
});

test("a source that fails cancels the stream, and the iteration rejects with its reason", async () => {
  const { peer, text, stream } = await openSpoken();
  peer.beginSpeech(stream.id);
  const reading = drain(stream);
  const reason = new RangeError("out of ink");
  text.fail(reason);
  assert.equal((await reading).error, reason);
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
  assert.equal(text.state.returned, 0); // it is over already
});

test("a piece that is no text fails the stream with a hint, and lets the source go", async () => {
  const { peer, text, stream } = await openSpoken();
  peer.beginSpeech(stream.id);
  const reading = drain(stream);
  text.give(7);
  const { error } = await reading;
  assert.deepEqual([error.code, error.param], ["invalid_request", "text"]);
  await settled();
  assert.equal(text.state.returned, 1);
});

test("a source that does not like to be let go is nobody's unhandled rejection", async () => {
  const unhandled = [];
  const listener = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const { client, socket } = await openClient();
  const returns = [
    () => {
      throw new Error("sync");
    },
    async () => {
      throw new Error("async");
    },
    undefined,
  ];
  for (const done of returns) {
    const text = { [Symbol.asyncIterator]: () => ({ next: async () => ({}), return: done }) };
    client.tts.synthesize({ text }).cancel();
  }
  assert.equal(socket().sent.length, 6);
  await settled();
  process.off("unhandledRejection", listener);
  assert.deepEqual(unhandled, []);
});

test("a server that takes no text while it speaks is said so, not waited for", async () => {
  const { peer, stream } = await openSpoken();
  peer.begin(stream.id);
  const { error } = await drain(stream);
  assert.equal(error.code, "protocol_error");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

async function spokenChat() {
  const fake = await openClient();
  const chat = fake.client.llm.chatStream({ messages: MESSAGES });
  const speech = fake.client.tts.synthesize({ text: chat });
  const peer = fake.socket();
  peer.begin(chat.id);
  peer.beginSpeech(speech.id);
  peer.items(chat.id, "Hel", "lo.");
  await settled();
  return { chat, speech, peer };
}

test("a chat stream is text: its content is spoken, its end is the text's", async () => {
  const { chat, speech, peer } = await spokenChat();
  peer.done(chat.id);
  await settled();
  const inputs = peer.sent.filter(({ id, type }) => id === speech.id && type === "input");
  assert.deepEqual(
    inputs.map(({ text }) => text),
    ["Hel", "lo."],
  );
  assert.equal(peer.sent.at(-1).type, "end");
});

test("A20: stopping the speech stops the chat it speaks", async () => {
  const { chat, speech, peer } = await spokenChat();
  speech.cancel();
  await settled();
  assert.equal(peer.types(speech.id).at(-1), "cancel");
  assert.equal(peer.types(chat.id).at(-1), "cancel");
});

test("A20: stopping the chat stops the speech, with its reason", async () => {
  const { chat, speech, peer } = await spokenChat();
  const reading = drain(speech);
  chat.cancel();
  assert.equal((await reading).error.name, "AbortError");
  assert.equal(peer.types(chat.id).at(-1), "cancel");
  assert.equal(peer.types(speech.id).at(-1), "cancel");
});

test("a chat that fails stops the speech with the chat's error", async () => {
  const { chat, speech, peer } = await spokenChat();
  const reading = drain(speech);
  peer.say({
    type: "error",
    id: chat.id,
    seq: 2,
    error: { code: "generation_failed", message: "m" },
  });
  assert.equal((await reading).error.code, "generation_failed");
  assert.equal(peer.types(speech.id).at(-1), "cancel");
});
