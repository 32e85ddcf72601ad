/** The life of a conversation in the page, over one whose turns, and a microphone that, a test drives by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { lacking, spoken } from "../playground/conversation-absent.js";
import { Conversations } from "../playground/conversations.js";
import { endingOf, phaseOf, turnCount } from "../playground/new-conversation.js";
import { Store } from "../playground/store.js";

const settle = () => new Promise((resolve) => setImmediate(resolve));
const OPTIONS = {
  device: "",
  voice: "af_heart",
  model: "",
  instructions: "Be brief.",
  endOfTurnMs: 600,
  bargeIn: true,
};
const PROOF = { by: "client", released: true, stopMs: 12, wasted: null, usage: null };
const CUT = { by: "talk", heardMs: 1800, heard: "Well", chat: PROOF, speech: PROOF };

/** As the SDK's is seen from here. */
class ScriptedConversation {
  state = "starting";
  messages = [];
  transcriptionId = 3;
  interrupted = 0;
  #listeners = new Map();

  constructor(options) {
    this.options = options;
    this.messages = [...options.messages];
    this.finished = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
    this.finished.catch(() => {});
  }

  on(type, listener) {
    this.#listeners.set(type, listener);
  }

  emit(type, event) {
    this.#listeners.get(type)?.(event);
  }

  move(state) {
    const previous = this.state;
    this.state = state;
    this.emit("state", { state, previous });
  }

  turn(index, part = {}) {
    this.emit("turn", {
      index,
      state: "hearing",
      interruption: null,
      withdrawn: [],
      times: {},
      ...part,
    });
  }

  interrupt() {
    this.interrupted += 1;
    return Promise.resolve(null);
  }

  end() {
    return this.finished;
  }
}

/** One whose permission a test gives or refuses. */
class FakeMicrophone {
  closed = 0;
  asked = [];

  open = (device, use) =>
    new Promise((resolve, reject) => {
      this.asked.push({ device, use, resolve, reject });
    });

  close = (media) => {
    if (media) this.closed += 1;
  };

  async allow() {
    const track = new EventTarget();
    this.asked.at(-1).resolve({ getAudioTracks: () => [track] });
    await settle();
    return track;
  }
}

function page() {
  const state = { askingToTalk: null, talkTrouble: null, conversation: null, talkStops: [] };
  const store = new Store(/** @type {any} */ (state), () => {});
  const begun = [];
  const announced = [];
  const microphone = new FakeMicrophone();
  const converse = (_client, options) => {
    begun.push(new ScriptedConversation(options));
    return begun.at(-1);
  };
  const conversations = new Conversations(
    store,
    () => /** @type {any} */ ({}),
    (text) => announced.push(text),
    () => {},
    /** @type {any} */ ({
      microphone,
      prepare: async () => {},
      sdk: async () => ({ converse, MICROPHONE: { echoCancellation: true } }),
    }),
  );
  const start = async (options = {}, before = null) => {
    void conversations.start({ ...OPTIONS, ...options }, before);
    await settle();
    return microphone.allow();
  };
  return { state: store.state, conversations, microphone, begun, announced, start };
}

test("it asks for a microphone with its echo cancelled, and begins with what the model is told", async () => {
  const { microphone, begun, start } = page();

  await start();

  assert.equal(microphone.asked[0].use.audio.echoCancellation, true);
  const { messages, speech, endOfTurnMs } = begun[0].options;
  assert.deepEqual(messages, [{ role: "system", content: "Be brief." }]);
  assert.deepEqual([speech, endOfTurnMs], [{ voice: "af_heart" }, 600]);
});

test("a refused microphone is said, with what to press again", async () => {
  const { state, conversations, microphone } = page();
  void conversations.start(OPTIONS);
  await settle();

  microphone.asked[0].reject(Object.assign(new Error("Allow it."), { code: "denied" }));
  await settle();

  assert.deepEqual(state.talkTrouble, { code: "denied", message: "Allow it." });
  assert.equal(state.askingToTalk, null);
  assert.equal(microphone.asked[0].use.press, "Start talking");
});

test("who thinks better of it before the browser answers has no microphone open", async () => {
  const { state, conversations, microphone, begun } = page();
  void conversations.start(OPTIONS);
  await settle();

  conversations.stopAsking();
  await microphone.allow();

  assert.equal(microphone.closed, 1);
  assert.equal(begun.length, 0);
  assert.equal(state.conversation, null);
});

test("stop closes the microphone in its tick and is over once the server has confirmed it", async () => {
  const { state, conversations, microphone, begun, announced, start } = page();
  await start();
  begun[0].move("listening");
  begun[0].turn(0);

  conversations.stop(state.conversation);

  assert.equal(microphone.closed, 1);
  assert.equal(phaseOf(state.conversation), "stopping");
  begun[0].finish();
  await settle();
  assert.equal(phaseOf(state.conversation), "ended");
  assert.match(
    endingOf(state.conversation).parts.join(" · "),
    /^all streams stopped in .* · 1 turn$/,
  );
  assert.deepEqual(announced, ["Conversation started.", "Conversation ended: 1 turn."]);
});

test("an interruption is announced once, and its proofs are among the last stops", async () => {
  const { state, begun, announced, start } = page();
  await start();
  begun[0].turn(0, { state: "speaking" });

  begun[0].turn(0, { state: "interrupted", interruption: CUT });
  begun[0].turn(0, { state: "interrupted", interruption: CUT });

  assert.deepEqual(announced, ["Answer interrupted after 1.8 seconds."]);
  assert.deepEqual(state.talkStops, [12, 12]);
});

test("a lost connection keeps the turns, and going on tells the model what was said", async () => {
  const { state, begun, start } = page();
  await start();
  begun[0].turn(0);
  begun[0].messages = [...begun[0].messages, { role: "user", content: "Hello" }];
  begun[0].fail(Object.assign(new Error("gone"), { code: "connection_lost" }));
  await settle();
  assert.equal(phaseOf(state.conversation), "lost");

  await start({ instructions: "Be long." }, state.conversation);
  begun[1].turn(0);

  assert.deepEqual(begun[1].options.messages, [
    { role: "system", content: "Be long." },
    { role: "user", content: "Hello" },
  ]);
  assert.deepEqual(
    state.conversation.entries.map(({ key }) => key),
    [1, 2],
  );
});

test("a microphone that goes ends it, and says so", async () => {
  const { state, begun, start } = page();
  const track = await start();

  track.dispatchEvent(new Event("ended"));
  begun[0].finish();
  await settle();

  assert.equal(endingOf(state.conversation).tone, "warn");
  assert.match(endingOf(state.conversation).parts[0], /^The microphone is gone/);
});

test("of a conversation without end the newest turns are kept, and all are counted", async () => {
  const { state, begun, start } = page();
  await start();

  for (let index = 0; index < 300; index += 1) begun[0].turn(index);
  begun[0].turn(20, { state: "completed" }); // forgotten
  begun[0].turn(299, { state: "completed" });

  const { entries } = state.conversation;
  assert.equal(entries.length, 200);
  assert.equal(turnCount(state.conversation), 300);
  assert.deepEqual([entries[0].turn.index, entries.at(-1).turn.state], [100, "completed"]);
});

test("its own voice, heard and ignored, is counted", async () => {
  const { state, begun, start } = page();
  await start();

  begun[0].emit("echo", { at: 1, level: 0.1, explained: 0.2 });

  assert.equal(state.conversation.echoes, 1);
});

test("what a server lacks for it is known once it has said what it can do", () => {
  const state = { connection: { wasOpen: true }, hearing: null, models: ["m"], voices: null };

  const verbs = lacking(/** @type {any} */ (state)).map(({ verb }) => verb);

  assert.deepEqual(verbs, ["listen", "speak"]);
  assert.equal(spoken(verbs), "listen or speak");
  assert.deepEqual(lacking(/** @type {any} */ ({ ...state, connection: { wasOpen: false } })), []);
});
