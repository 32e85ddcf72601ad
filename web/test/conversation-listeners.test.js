/** What an app does while it is told of something, or does wrong: nothing runs on that nobody hears. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { converseWith } from "../sdk/conversation.js";
import { FakeContext, FakeMediaStream } from "./support/audio.js";
import { Talk } from "./support/conversation.js";
import { openClient, settled } from "./support/peer.js";

/** An answer sounds; what the app does when a turn has come to `state`, once. */
async function speaking(state, act) {
  const talk = await Talk.open();
  await talk.says("Tell me.");
  await talk.answers(0.6);
  const off = talk.conversation.on("turn", (turn) => {
    if (turn.state !== state) return;
    off();
    act(talk.conversation);
  });
  return talk;
}

/** Streams that nobody has asked to stop. */
function running(talk) {
  const cancelled = talk.sent("cancel");
  return talk.sent("open").filter((id) => !cancelled.includes(id));
}

const living = ({ conversation }) =>
  conversation.turns.filter(({ times }) => times.ended === undefined);

test("who ends it on hearing that say() interrupts leaves nothing running", async () => {
  const talk = await speaking("interrupted", (conversation) => void conversation.end());
  talk.conversation.say("Hello.");
  await settled();
  assert.deepEqual(running(talk), []);
  assert.equal(talk.conversation.turns.length, 1);
});

test("who says something on hearing that say() interrupts is who speaks", async () => {
  const talk = await speaking("interrupted", (conversation) => conversation.say("Oh."));
  talk.conversation.say("Hello.");
  assert.deepEqual(
    living(talk).map(({ written }) => written),
    ["Oh."],
  );
  assert.equal(talk.conversation.state, "speaking");
  void talk.conversation.end();
  assert.deepEqual(running(talk), []);
});

test("what is said when an answer was heard, or was interrupted by the app, is spoken and can be talked into", async () => {
  const ways = {
    completed: (talk) => talk.finishes(),
    interrupted: (talk) => void talk.conversation.interrupt(),
  };
  for (const [state, over] of Object.entries(ways)) {
    const talk = await speaking(state, (conversation) => conversation.say("More?"));
    await over(talk);
    assert.equal(talk.conversation.state, "speaking", state);
    talk.start();
    assert.deepEqual([talk.conversation.state, talk.turn.said], ["hearing", ""]);
    assert.equal(talk.conversation.turns.at(-2).state, "interrupted");
  }
});

test("who never lets it listen has no two answers either", async () => {
  const talk = await Talk.open();
  talk.conversation.on("turn", ({ said, state }) => {
    if (talk.conversation.state === "ended") return;
    if ((said && state === "hearing") || state === "interrupted") talk.conversation.say("Well,");
  });
  talk.start();
  talk.stop();
  talk.advance(1000);
  await talk.segment("Tell me.");
  assert.equal(living(talk).length, 1);
  assert.deepEqual(talk.conversation.messages, [{ role: "user", content: "Tell me." }]);
  void talk.conversation.end();
  assert.deepEqual([running(talk), living(talk)], [[], []]);
});

test("it has ended for whoever is told of its end", async () => {
  const seen = [];
  const talk = await speaking("interrupted", ({ state }) => seen.push(state));
  void talk.conversation.end();
  assert.deepEqual(seen, ["ended"]);
});

test("end() waits for the proof of an answer that had failed, and its turn has the moment", async () => {
  const talk = await speaking();
  const { turn, peer } = talk;
  const error = { code: "internal", message: "m" };
  peer.say({ type: "error", id: turn.chatId, error });
  await settled();
  let over = false;
  const end = talk.conversation.end().then(() => (over = true));
  peer.cancelled(talk.ears);
  await settled();
  assert.equal(over, false);
  peer.cancelled(turn.speechId);
  await end;
  assert.deepEqual([turn.state, turn.times.speechReleased], ["failed", talk.time.nowMs]);
});

test("the chat that failed speech has left is confirmed like any other", async () => {
  const talk = await Talk.open();
  await talk.says("Tell me.");
  await talk.writes("One, ");
  const { turn, peer } = talk;
  peer.say({ type: "error", id: turn.speechId, error: { code: "internal", message: "m" } });
  await settled();
  assert.deepEqual([turn.state, talk.sent("cancel")], ["failed", [turn.chatId]]);
  talk.advance(9);
  peer.cancelled(turn.chatId);
  await settled();
  assert.equal(turn.times.chatStopped, talk.time.nowMs);
});

test("speech that breaks while it sounds fails with its own error, once what had come was heard", async () => {
  const talk = await speaking();
  const { turn, peer } = talk;
  peer.say({ type: "error", id: turn.speechId, error: { code: "internal", message: "m" } });
  await settled();
  peer.cancelled(turn.chatId);
  await settled();
  assert.equal(turn.state, "speaking");
  talk.sounds(2, { moving: false, finished: true });
  talk.advance(50);
  await settled();
  assert.deepEqual([turn.state, turn.error.code], ["failed", "internal"]);
  assert.match(talk.conversation.messages.at(-1).content, /^One two .* eight\. $/);
});

test("say() of what is no text is refused, and asks nothing", async () => {
  const talk = await Talk.open();
  assert.throws(() => talk.conversation.say(undefined), TypeError);
  assert.deepEqual([running(talk), talk.conversation.turns], [[talk.ears], []]);
});

test("messages that cannot be copied leave no transcription open", async () => {
  const { client, socket, time } = await openClient();
  const messages = [{ role: "user", content: () => {} }];
  const options = { context: new FakeContext(), microphone: new FakeMediaStream(), messages };
  assert.throws(() => converseWith(time.runtime(), client, options), { name: "DataCloneError" });
  await settled();
  assert.deepEqual(socket().sent, []);
});
