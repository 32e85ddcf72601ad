/** A conversation whose answer comes back through the microphone: it is nobody, and the user is heard through it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Talk } from "./support/conversation.js";

/** An answer sounds, and has come back for long enough to be known. */
async function echoing(options) {
  const talk = await Talk.open(options);
  await talk.says("Tell me.");
  await talk.answers(0.6);
  talk.room({ played: 0.3 }, 200);
  return talk;
}

const echoes = ({ events }) => events.filter(([type]) => type === "echo").map(([, echo]) => echo);

test("the answer's own sound, detected as speech, interrupts nothing and is told as an echo", async () => {
  const talk = await echoing();
  talk.start();
  talk.room({ played: 0.3 }, 30);
  assert.deepEqual([talk.sent("cancel"), talk.conversation.state], [[], "speaking"]);
  const [{ at, level, explained }] = echoes(talk);
  assert.ok(at > 0 && level > 0.01 && explained > 0.01);
});

test("what is transcribed of it is no part of any turn", async () => {
  const talk = await echoing();
  talk.start();
  talk.room({ played: 0.3 }, 30);
  await talk.segment("One two", { end: talk.heardSeconds, isFinal: false });
  talk.stop();
  await talk.segment("One two three.");
  talk.advance(5000);
  assert.deepEqual([talk.conversation.turns.length, talk.sent("cancel")], [1, []]);
  assert.equal(talk.turn.said, "Tell me.");
});

test("speech that is on already, from the echo: the user's voice alone triggers, in its tick", async () => {
  const talk = await echoing();
  talk.start();
  talk.room({ played: 0.3 }, 10);
  assert.deepEqual(talk.sent("cancel"), []);
  talk.room({ played: 0.3, user: 0.3 }, 9);
  const [answered, begun] = talk.conversation.turns;
  assert.deepEqual(talk.sent("cancel"), [answered.speechId, answered.chatId]);
  assert.deepEqual([answered.state, begun.state], ["interrupted", "hearing"]);
});

test("a voice that is heard first triggers when the server calls it speech", async () => {
  const talk = await echoing();
  talk.room({ played: 0.3, user: 0.3 }, 9);
  assert.deepEqual(talk.sent("cancel"), []);
  talk.start();
  assert.equal(talk.sent("cancel").length, 2);
  assert.deepEqual(echoes(talk), []);
});

test("who talked just before the answer sounds, and goes on with speech on from its echo, is heard", async () => {
  const talk = await echoing();
  await talk.finishes();
  talk.room({ user: 0.3 }, 20);
  talk.conversation.say("One moment, please.");
  talk.room({ played: 0.3 }, 24);
  talk.start();
  assert.equal(talk.turn.state, "speaking");
  talk.room({ played: 0.3, user: 0.6 }, 12);
  assert.equal(talk.turn.state, "hearing");
});

test("of a segment that began as echo the turn has the user's words alone", async () => {
  const talk = await echoing();
  talk.start();
  talk.room({ played: 0.3 }, 30);
  const onset = talk.heardSeconds;
  talk.room({ played: 0.3, user: 0.3 }, 20);
  talk.room({ user: 0.3 }, 20);
  const words = [
    { text: "One", start: talk.began, end: onset - 0.3 },
    { text: " stop", start: onset + 0.05, end: onset + 0.3 },
  ];
  talk.stop();
  await talk.segment("One stop", { words });
  talk.advance(100);
  assert.equal(talk.turn.said, "stop");
  assert.equal(talk.conversation.messages.at(-1).content, "stop");
});

test("the user who goes on after the answer's end, with speech on from its echo, is heard", async () => {
  const talk = await echoing();
  talk.start();
  await talk.finishes();
  assert.equal(talk.turn.state, "completed");
  talk.room({}, 60);
  assert.equal(talk.conversation.state, "listening");
  talk.room({ user: 0.3 }, 9);
  assert.equal(talk.conversation.state, "hearing");
});
