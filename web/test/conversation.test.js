/**
 * A conversation with fakes as peers: what goes over the wire and to the audio thread, and what the app sees of it.
 * Whose turn it is decides turn-taking (conversation-turns.test.js); a real one is talked to in e2e.
 */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { MICROPHONE } from "../sdk/conversation.js";
import { FakeContext, FakeMediaStream } from "./support/audio.js";
import { Talk } from "./support/conversation.js";
import { settled } from "./support/peer.js";

const SAID = { role: "user", content: "Tell me." };

/** Heard for `seconds` of an answer of eight words. */
async function speaking(seconds = 0.6, options = {}) {
  const talk = await Talk.open(options);
  await talk.says("Tell me.");
  await talk.answers(seconds);
  return talk;
}

/** The server's proofs for the newest answer but so many. */
async function proves(talk, turn, heard) {
  talk.peer.cancelled(turn.speechId, "client", heard === undefined ? {} : { heard });
  talk.peer.cancelled(turn.chatId);
  await settled();
}

const opened = ({ peer }, method) => peer.sent.filter((message) => message.method === method);

test("the microphone is transcribed with events and words, and listening begins when it is", async () => {
  const talk = await Talk.open({ transcribe: { language: "en" } });
  const [{ params }] = opened(talk, "transcribe");
  assert.deepEqual(
    [params.events, params.words, params.interim, params.silence_ms, params.language],
    [true, true, true, 500, "en"],
  );
  assert.deepEqual(talk.events, [["state", { state: "listening", previous: "starting" }]]);
  assert.equal(MICROPHONE.echoCancellation, true);
});

test("what was said is asked, with what went before, and the answer is spoken while it is written", async () => {
  const system = { role: "system", content: "Be brief." };
  const talk = await Talk.open({
    messages: [system],
    chat: { maxTokens: 9 },
    speech: { speed: 1.1 },
  });
  await talk.says("Tell me.");
  const [chat] = opened(talk, "chat");
  assert.deepEqual(chat.params, { messages: [system, SAID], max_tokens: 9 });
  await talk.writes("One, ");
  const [speech] = opened(talk, "synthesize");
  assert.deepEqual(speech.params, { marks: true, speed: 1.1 });
  assert.equal(talk.peer.sent.at(-1).text, "One, ");
  assert.equal(talk.conversation.state, "thinking");
});

test("a turn that is heard to its end is completed, with its moments", async () => {
  const talk = await speaking(2);
  const { turn } = talk;
  await talk.finishes();
  assert.deepEqual([turn.state, turn.said], ["completed", "Tell me."]);
  assert.equal(
    talk.conversation.messages.at(-1).content,
    "One two three four. Five six seven eight. ",
  );
  const { speechStarted, speechStopped, transcribed, firstToken, firstHeard, ended } = turn.times;
  assert.deepEqual([speechStarted, speechStopped, transcribed, firstToken], [0, 800, 1400, 1400]);
  assert.deepEqual([firstHeard, ended > firstHeard], [1450, true]);
  assert.equal(talk.conversation.state, "listening");
});

test("talking into the answer silences it and cancels both streams in the tick of the event", async () => {
  const talk = await speaking();
  const { turn, peer } = talk;
  talk.start();
  assert.deepEqual(talk.node("plait-playout").posted.at(-1), { stop: true });
  assert.deepEqual(talk.sent("cancel"), [turn.speechId, turn.chatId]);
  assert.ok(Math.abs(peer.sent.find(({ type }) => type === "cancel").heard_ms - 600) < 1e-6);
  assert.deepEqual([turn.state, talk.conversation.state], ["interrupted", "hearing"]);
  assert.equal(talk.conversation.turns.length, 2);
});

test("the interruption has both proofs, and the history what was heard", async () => {
  const talk = await speaking();
  const { turn } = talk;
  talk.start();
  assert.equal(turn.interruption, null);
  await proves(talk, turn, "One two");
  const { by, heard, heardMs, chat, speech } = turn.interruption;
  assert.deepEqual([by, heard, Math.round(heardMs)], ["talk", "One two", 600]);
  assert.deepEqual([chat.released, speech.released, chat.stopMs], [true, true, 14]);
  assert.deepEqual(talk.conversation.messages, [SAID, { role: "assistant", content: "One two" }]);
  assert.ok(turn.times.chatStopped >= turn.times.interrupted);
});

test("the history is honest before the server has answered, and when it does not say", async () => {
  const talk = await speaking();
  const { turn } = talk;
  talk.start();
  assert.equal(talk.conversation.messages.at(-1).content, "One two");
  await proves(talk, turn);
  assert.equal(turn.interruption.heard, "One two");
});

test("of an answer that was whole on the server and still sounding, the marks tell what was heard", async () => {
  const talk = await speaking();
  const { turn, peer } = talk;
  peer.done(turn.chatId);
  await settled();
  peer.done(turn.speechId);
  await settled();
  talk.start();
  await settled();
  assert.deepEqual(talk.sent("cancel"), []);
  assert.deepEqual(talk.node("plait-playout").posted.at(-1), { stop: true });
  const { chat, speech, heard } = turn.interruption;
  assert.deepEqual([chat, speech, heard], [null, null, "One two"]);
  assert.equal(talk.conversation.messages.at(-1).content, "One two");
});

test("of a chat that was whole there is no proof, of the speech there is", async () => {
  const talk = await speaking();
  const { turn, peer } = talk;
  peer.done(turn.chatId);
  await settled();
  talk.start();
  peer.cancelled(turn.speechId, "client", { heard: "One" });
  await settled();
  assert.equal(turn.interruption.chat, null);
  assert.equal(turn.interruption.speech.heard, "One");
  assert.equal(talk.conversation.messages.at(-1).content, "One");
});

test("an answer of which nothing was heard is left out, and two questions in a row are one", async () => {
  const talk = await speaking(0.1);
  const { turn } = talk;
  talk.start();
  await proves(talk, turn, "");
  assert.deepEqual(talk.conversation.messages, [SAID]);
  talk.advance(800);
  talk.stop();
  await talk.segment("Quickly.");
  talk.advance(100);
  const asked = opened(talk, "chat").at(-1).params.messages;
  assert.deepEqual(asked, [{ role: "user", content: "Tell me. Quickly." }]);
});

test("who goes on before it sounds withdraws the answer, and all of it is one turn", async () => {
  const talk = await Talk.open();
  await talk.says("I want");
  const { turn } = talk;
  const { chatId, speechId } = turn;
  talk.start();
  assert.deepEqual(talk.sent("cancel"), [speechId, chatId]);
  assert.deepEqual([turn.state, talk.conversation.messages.length], ["hearing", 0]);
  await proves(talk, { chatId, speechId });
  assert.equal(turn.withdrawn[0].chat.released, true);
  talk.advance(800);
  talk.stop();
  await talk.segment("a pony.");
  talk.advance(100);
  assert.deepEqual(talk.conversation.messages, [{ role: "user", content: "I want a pony." }]);
  assert.equal(talk.conversation.turns.length, 1);
  assert.ok(turn.chatId > chatId);
});

test("a noise is a turn with nothing in it, and asks nothing", async () => {
  const talk = await Talk.open();
  talk.start();
  talk.stop();
  talk.advance(2000);
  assert.deepEqual([talk.turn.state, talk.turn.said, talk.turn.chatId], ["completed", "", null]);
  assert.deepEqual([talk.conversation.state, opened(talk, "chat").length], ["listening", 0]);
});

test("without barge-in the answer goes on, and who still talks at its end is heard", async () => {
  const talk = await speaking(2, { bargeIn: false });
  talk.start();
  talk.room({ user: 0.3 }, 8);
  assert.deepEqual([talk.sent("cancel"), talk.conversation.state], [[], "speaking"]);
  await talk.finishes();
  assert.deepEqual(
    [talk.conversation.turns[0].state, talk.conversation.state],
    ["completed", "hearing"],
  );
});

test("interrupt() is the app's: the same, with the proofs", async () => {
  const talk = await speaking();
  const { turn } = talk;
  const interruption = talk.conversation.interrupt();
  assert.deepEqual(talk.sent("cancel"), [turn.speechId, turn.chatId]);
  assert.equal(talk.conversation.state, "listening");
  await proves(talk, turn, "One");
  assert.deepEqual([(await interruption).by, (await interruption).heard], ["app", "One"]);
  assert.equal(await talk.conversation.interrupt(), null);
});

test("say() speaks without a question, and is an assistant's message", async () => {
  const talk = await Talk.open();
  talk.conversation.say("Hello there.");
  assert.equal(talk.conversation.state, "speaking");
  const { turn, peer } = talk;
  assert.deepEqual(
    [turn.chatId, opened(talk, "synthesize")[0].params.text],
    [null, "Hello there."],
  );
  peer.beginSpeech(turn.speechId);
  await talk.speaks("Hello there.");
  peer.done(turn.speechId);
  await settled();
  talk.sounds(0.5, { moving: false, finished: true });
  talk.advance(50);
  await settled();
  assert.deepEqual(talk.conversation.messages, [{ role: "assistant", content: "Hello there." }]);
});

test("say() interrupts what is answered; while the user talks it is not heard", async () => {
  const talk = await speaking();
  const { turn } = talk;
  talk.conversation.say("One moment.");
  assert.deepEqual(talk.sent("cancel"), [turn.speechId, turn.chatId]);
  assert.equal(talk.conversation.state, "speaking");
  talk.start();
  talk.conversation.say("Wait.");
  assert.equal(talk.turn.state, "interrupted");
  assert.equal(talk.conversation.state, "hearing");
  await talk.segment("Go on.", { isFinal: false });
  assert.equal(talk.conversation.turns[2].said, "Go on.");
});

test("an answer that fails fails its turn, stops its speech, and the conversation goes on", async () => {
  const talk = await Talk.open();
  await talk.says("Tell me.");
  const { turn, peer } = talk;
  const error = { code: "engine_crashed", class: "internal", message: "It fell.", retryable: true };
  peer.say({ type: "error", id: turn.chatId, error, seq: 0 });
  await settled();
  assert.deepEqual([turn.state, turn.error.code], ["failed", "engine_crashed"]);
  assert.deepEqual(talk.sent("cancel"), [turn.speechId]);
  assert.equal(talk.conversation.state, "listening");
});

test("speech that is refused fails the turn, and stops the chat that nobody will hear", async () => {
  const talk = await Talk.open({ speech: { voice: "nobody" } });
  await talk.says("Tell me.");
  const { turn, peer } = talk;
  peer.begin(turn.chatId);
  const error = { code: "voice_not_found", class: "client", message: "No.", retryable: false };
  peer.say({ type: "rejected", id: turn.speechId, error });
  await settled();
  assert.deepEqual([turn.state, turn.error.code], ["failed", "voice_not_found"]);
  assert.deepEqual(talk.sent("cancel"), [turn.chatId]);
});

test("parameters that cannot be sent fail the turn and leave no stream open", async () => {
  const talk = await Talk.open({ speech: { window: 1000 } });
  await talk.says("Tell me.");
  assert.deepEqual([talk.turn.state, talk.turn.error.code], ["failed", "invalid_request"]);
  assert.deepEqual(talk.sent("cancel"), [opened(talk, "chat")[0].id]);
  assert.equal(talk.conversation.state, "listening");
});

test("A20: end() stops all three streams at once and resolves with the last proof", async () => {
  const talk = await speaking();
  const { turn, peer, conversation, ears } = talk;
  let over = false;
  const ended = conversation.end().then(() => (over = true));
  assert.deepEqual(talk.sent("cancel"), [turn.speechId, turn.chatId, ears]);
  assert.deepEqual(talk.node("plait-playout").posted.at(-1), { stop: true });
  await proves(talk, turn, "One two");
  assert.equal(over, false);
  peer.cancelled(ears);
  await ended;
  await conversation.finished;
  assert.deepEqual([conversation.state, turn.interruption.by], ["ended", "app"]);
});

test("A20: after the end nothing is asked, said or sent any more", async () => {
  const talk = await speaking();
  talk.start();
  void talk.conversation.end();
  const sent = talk.peer.sent.length;
  talk.stop();
  await talk.segment("Hello?");
  talk.advance(5000);
  assert.equal(talk.peer.sent.length, sent);
  assert.throws(() => talk.conversation.say("Hello?"), /is over/);
});

test("A20: an abort ends all of it in its tick, and finished rejects with its reason", async () => {
  const controller = new AbortController();
  const talk = await speaking(0.6, { signal: controller.signal });
  controller.abort();
  assert.deepEqual(talk.sent("cancel").sort(), [talk.ears, talk.turn.chatId, talk.turn.speechId]);
  await proves(talk, talk.turn);
  talk.peer.cancelled(talk.ears);
  await assert.rejects(talk.conversation.finished, { name: "AbortError" });
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("a listener may end it, or have it say something, in the middle of a decision", async () => {
  const ended = await Talk.open();
  ended.conversation.on("turn", ({ said }) => said && void ended.conversation.end());
  await ended.says("Tell me.");
  assert.deepEqual([opened(ended, "chat"), ended.time.pending], [[], 1]);
  const talk = await Talk.open();
  const off = talk.conversation.on("turn", ({ said }) => {
    if (said) off();
    if (said) talk.conversation.say("Let me see.");
  });
  talk.start();
  talk.stop();
  talk.advance(1000);
  await talk.segment("Tell me.");
  const live = talk.conversation.turns.filter(({ times }) => times.ended === undefined);
  assert.deepEqual(
    live.map(({ said, state }) => [said, state]),
    [["Tell me.", "thinking"]],
  );
});

test("a signal that is aborted already sends nothing", async () => {
  const talk = await Talk.open();
  const sent = talk.peer.sent.length;
  talk.begin({ signal: AbortSignal.abort() });
  await assert.rejects(talk.conversation.finished, { name: "AbortError" });
  assert.deepEqual([talk.peer.sent.length, talk.conversation.state], [sent, "ended"]);
});

test("A20: a microphone that goes ends all of it; that is no failure", async () => {
  const talk = await speaking();
  talk.microphone.tracks[0].end();
  assert.deepEqual(talk.sent("cancel").length, 3);
  await proves(talk, talk.turn);
  talk.peer.cancelled(talk.ears);
  await talk.conversation.finished;
});

test("a track that its owner stops, without an event, ends it as well", async () => {
  const talk = await Talk.open();
  talk.microphone.tracks[0].stop();
  talk.hear();
  talk.node("plait-capture").port.onmessage({ data: { samples: new Int16Array(0), ended: true } });
  await settled();
  talk.peer.done(talk.ears);
  await talk.conversation.finished;
  assert.equal(talk.conversation.state, "ended");
});

test("A20: a lost connection fails it; what was heard is kept to begin again with", async () => {
  const talk = await speaking();
  talk.peer.drop();
  await assert.rejects(talk.conversation.finished, { code: "connection_lost" });
  assert.deepEqual(talk.node("plait-playout").posted.at(-1), { stop: true });
  assert.deepEqual([talk.turn.state, talk.turn.error.code], ["failed", "connection_lost"]);
  assert.deepEqual(talk.conversation.messages, [SAID, { role: "assistant", content: "One two" }]);
});

test("a transcription that is refused or ended by the server fails it with what the server said", async () => {
  const refused = await Talk.open();
  refused.peer.say({ type: "cancelled", id: refused.ears, seq: 0, by: "shutdown", released: true });
  await assert.rejects(refused.conversation.finished, { code: "cancelled", by: "shutdown" });
  const ended = await Talk.open();
  ended.peer.done(ended.ears);
  await assert.rejects(ended.conversation.finished, { code: "transcription_ended" });
});

test("without a live track, or with silence out of bounds, nothing begins", async () => {
  const talk = await Talk.open();
  const sent = talk.peer.sent.length;
  assert.throws(() => talk.begin({ microphone: new FakeMediaStream([]) }), /no live audio track/);
  assert.throws(() => talk.begin({ endOfTurnMs: 100 }), /from 200 to 3000, not 100/);
  assert.equal(talk.peer.sent.length, sent);
});

test("an echo module that does not load ends it: there is no talking without a guard", async () => {
  const context = new FakeContext();
  const talk = await Talk.open();
  context.audioWorklet.addModule = async (url) => {
    if (url.includes("echo")) throw new Error("404");
  };
  talk.begin({ context });
  await settled();
  talk.peer.cancelled(talk.ears);
  await assert.rejects(talk.conversation.finished, /echo-worklet\.js/);
});

test("nothing outlives it: no listener, no timer, no node", async () => {
  const talk = await speaking();
  const track = talk.microphone.tracks[0];
  const ended = talk.conversation.end();
  await proves(talk, talk.turn);
  talk.peer.cancelled(talk.ears);
  await ended;
  assert.equal(getEventListeners(track, "ended").length, 0);
  assert.equal(getEventListeners(talk.context, "statechange").length, 0);
  assert.equal(talk.time.pending, 1); // the connection's own
  assert.equal(talk.node("plait-echo").destination, null);
});

test("hours of it: turns are bounded, and nothing is left waiting", async () => {
  const talk = await Talk.open();
  for (let i = 0; i < 600; i += 1) {
    talk.start();
    talk.stop();
    await talk.segment("", { start: 0, end: 1e6 });
    talk.advance(100);
  }
  const { turns } = talk.conversation;
  assert.deepEqual([turns.length, turns.at(-1).index, talk.time.pending], [500, 599, 1]);
});
