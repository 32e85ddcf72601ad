/** The chats' life in the page, over a client whose streams a test drives by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chats } from "../playground/chats.js";
import { Store } from "../playground/store.js";

const RECEIPT = { by: "client", released: true, stopMs: 14, wasted: { tokens: 0 }, usage: null };
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A stream as the SDK's is seen from here. */
class ScriptedStream {
  state = "pending";
  queue = null;
  started = null;
  #queue = [];
  #wake = () => {};

  constructor(id) {
    this.id = id;
    this.done = new Promise((resolve) => {
      this.settleDone = resolve;
    });
  }

  give(content, toolCalls = undefined) {
    this.state = "streaming";
    this.started = { model: "m" };
    this.#queue.push({ content, toolCalls });
    this.#wake();
  }

  complete() {
    this.#queue.push(null);
    this.settleDone({ state: "completed", finishReason: "stop", usage: { completionTokens: 2 } });
    this.#wake();
  }

  fail(code) {
    this.#queue.push(Object.assign(new Error("it broke"), { code }));
    this.settleDone({ state: "errored", usage: null });
    this.#wake();
  }

  cancel() {
    this.#queue.push(new DOMException("stopped", "AbortError"));
    this.#wake();
    return this.done;
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#queue.length === 0) {
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
      }
      const next = this.#queue.shift();
      if (next === null) return;
      if (next instanceof Error) throw next;
      yield next;
    }
  }
}

function page() {
  const state = { chats: [], focusedKey: null, stops: [], sample: null };
  const store = new Store(/** @type {any} */ (state), () => {});
  const streams = [];
  const asked = [];
  const announced = [];
  const chatStream = (request) => {
    asked.push(request);
    streams.push(new ScriptedStream(streams.length + 1));
    return streams.at(-1);
  };
  const client = () => /** @type {any} */ ({ llm: { chatStream } });
  const chats = new Chats(
    store,
    client,
    (text) => announced.push(text),
    () => {},
  );
  return { chats, state, streams, asked, announced };
}

test("an answer is collected, counted and announced once at start and end", async () => {
  const { chats, state, streams, announced } = page();
  chats.ask({ prompt: "hi" });
  streams[0].give("a");
  streams[0].give("b");
  streams[0].complete();
  await settle();

  const [chat] = state.chats;
  assert.deepEqual([chat.state, chat.unread.join(""), chat.tokens], ["completed", "ab", 2]);
  assert.deepEqual(announced, ["Answer 1 started.", "Answer 1 finished."]);
});

test("a call of a tool is shown once, when it is complete", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" });
  const call = { index: 0, id: "c1", type: "function" };
  const whole = { name: "time", arguments: '{"zone": "UTC"}' };
  streams[0].give("", [
    { ...call, function: { name: "time" } },
    { index: 0, function: { arguments: whole.arguments } },
  ]);
  streams[0].give("", [{ ...call, function: whole, complete: true }]);
  streams[0].complete();
  await settle();

  assert.equal(state.chats[0].text, '→ time({"zone": "UTC"})\n');
});

test("after stop nothing more is drawn, and the receipt is the server's", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" });
  streams[0].give("a");
  await settle();
  const [chat] = state.chats;

  chats.stop(chat);
  streams[0].give("late");
  assert.deepEqual([chat.state, chat.unread, chat.receipt], ["stopping", [], null]);
  streams[0].settleDone({ state: "cancelled", ...RECEIPT });
  await settle();

  assert.deepEqual([chat.state, chat.unread, chat.receipt?.stopMs], ["cancelled", [], 14]);
  assert.deepEqual(state.stops, [14]);
});

test("a lost connection keeps the text until a retry brings new text", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" });
  streams[0].give("partial");
  streams[0].fail("connection_lost");
  await settle();
  const [chat] = state.chats;
  assert.equal(chat.state, "errored");
  assert.equal(chat.trouble.lost, true);

  chats.retry(chat);

  assert.deepEqual([chat.state, chat.stale, chat.stream.id], ["pending", true, 2]);
});

test("what a previous attempt still says is not heard", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" });
  const [chat] = state.chats;
  streams[0].fail("connection_lost");
  await settle();
  chats.retry(chat);
  streams[0].settleDone({ state: "cancelled", ...RECEIPT });
  await settle();

  assert.equal(chat.state, "pending");
});

test("side by side copies ask the same with seeds of their own", () => {
  const { chats, asked } = page();

  chats.ask({ prompt: "hi", system: "be brief", seed: 5 }, 3);

  assert.deepEqual(
    asked.map(({ seed }) => seed),
    [5, 6, 7],
  );
  assert.deepEqual(asked[0].messages, [
    { role: "system", content: "be brief" },
    { role: "user", content: "hi" },
  ]);
});

test("Esc means the focused stream while it runs, else the newest that does", () => {
  const { chats, state } = page();
  chats.ask({ prompt: "hi" }, 3);
  const [first, second, third] = state.chats;
  chats.focus(first);
  assert.equal(chats.focused(), first);

  chats.stop(first);
  assert.equal(chats.focused(), third);
  chats.stop(third);
  assert.equal(chats.focused(), second);
  chats.stop(second);
  assert.equal(chats.focused(), null);
});

test("finished answers beyond 24 go, oldest first; running ones never", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "runs on" });
  for (let n = 0; n < 30; n += 1) {
    chats.ask({ prompt: String(n) });
    streams.at(-1).complete();
    await settle();
  }

  assert.ok(state.chats.length <= 25);
  assert.equal(state.chats[0].ask.prompt, "runs on");
  assert.equal(state.chats.at(-1).ask.prompt, "29");
});

test("of many stops only those with a slot to give back count, and a late one counts as late", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" }, 3);
  streams[0].give("a");
  streams[1].give("b");
  await settle();
  chats.stopAll();
  streams[0].settleDone({ state: "cancelled", ...RECEIPT });
  streams[1].settleDone({ ...RECEIPT, released: false, stopMs: null, wasted: null, usage: {} });
  streams[2].settleDone({ ...RECEIPT, stopMs: 0 });
  await settle();

  assert.deepEqual(state.stops, [14, "late"]);
});

test("a late slot is back once the gauges, read after the end, say so", async () => {
  const { chats, state, streams } = page();
  chats.ask({ prompt: "hi" });
  const [chat] = state.chats;
  chats.stop(chat);
  streams[0].settleDone({ ...RECEIPT, released: false, stopMs: null, wasted: null, usage: {} });
  await settle();

  const backAfter = (/** @type {number} */ ms, /** @type {number} */ slotsUsed) => {
    state.sample = { at: chat.endedAt + ms, active: 0, slotsUsed };
    chats.noticeSample();
    return chat.slotBack;
  };
  assert.deepEqual([backAfter(-1, 0), backAfter(1, 1), backAfter(2, 0)], [false, false, true]);
});
