/** Whatever ends a conversation, whenever: each turn ends once, all streams are stopped or over, and nobody waits on. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Talk } from "./support/conversation.js";
import { openClient, settled } from "./support/peer.js";

const TOLD = { role: "user", content: "Tell me." };
const HEARD = { role: "assistant", content: "One two" };

async function asked(options) {
  const talk = await Talk.open(options);
  await talk.says("Tell me.");
  return talk;
}

/** When, and the messages that are left then. */
const PHASES = {
  starting: async (options) => {
    const talk = new Talk();
    Object.assign(talk, await openClient());
    talk.peer = talk.socket();
    talk.begin(options);
    return [talk, []];
  },
  listening: async (options) => [await Talk.open(options), []],
  hearing: async (options) => {
    const talk = await Talk.open(options);
    talk.start();
    return [talk, []];
  },
  thinking: async (options) => [await asked(options), [TOLD]],
  writing: async (options) => {
    const talk = await asked(options);
    await talk.writes("One two. ");
    return [talk, [TOLD]];
  },
  speaking: async (options) => {
    const talk = await asked(options);
    await talk.answers(0.6);
    return [talk, [TOLD, HEARD]];
  },
  "saying something": async (options) => {
    const talk = await Talk.open(options);
    talk.conversation.say("Hello.");
    return [talk, []];
  },
};

/** What ends it, and what becomes of `finished`. */
const ENDINGS = {
  "end()": [({ conversation }) => void conversation.end(), "resolved"],
  "end() twice": [
    ({ conversation }) => {
      void conversation.end();
      void conversation.end();
    },
    "resolved",
  ],
  "an abort": [(_, controller) => controller.abort(), "AbortError"],
  "the microphone's end": [
    ({ microphone }) => microphone.getAudioTracks()[0].dispatchEvent(new Event("ended")),
    "resolved",
  ],
  "a lost connection": [({ peer }) => peer.drop(), "connection_lost"],
  "a closed connection": [({ client }) => void client.close(), "connection_closed"],
};

for (const [phase, begin] of Object.entries(PHASES)) {
  test(`A20: however it ends while ${phase}, it ends once and leaves nothing`, async () => {
    for (const [name, [end, outcome]] of Object.entries(ENDINGS)) {
      const controller = new AbortController();
      const [talk, messages] = await begin({ signal: controller.signal });
      let told = "";
      talk.conversation.finished.then(
        () => (told = "resolved"),
        (error) => (told = error.name === "AbortError" ? error.name : error.code),
      );
      end(talk, controller);
      const stopped = talk.sent("cancel");
      for (const id of stopped) talk.peer.cancelled(id);
      await settled();
      assert.deepEqual([told, talk.conversation.state], [outcome, "ended"], name);
      if (!/connection/.test(name)) assert.deepEqual(stopped.sort(), talk.sent("open").sort());
      assert.ok(talk.conversation.turns.every(({ times }) => times.ended !== undefined));
      assert.deepEqual(talk.conversation.messages, messages, name);
      assert.equal(new Set(talk.sent("cancel")).size, talk.sent("cancel").length);
    }
  });
}
