/** A conversation whose microphone, loudspeaker and server are the test; the audio clock is the fake clock. */

import { converseWith } from "../../sdk/conversation.js";
import { FakeContext, FakeMediaStream, FakeNode } from "./audio.js";
import { openClient, settled } from "./peer.js";

/** Samples a second of speech. */
export const RATE = 24_000;
const WORD_SECONDS = 0.25;

let state = 1;

/** Seeded, so that it is the same each time. */
function noise(level) {
  return Float32Array.from({ length: 128 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return level * (state / 2 ** 31 - 1);
  });
}

export class Talk {
  context = new FakeContext();
  microphone = new FakeMediaStream();
  events = [];
  segments = 0;
  at = 0;

  /** Begun, and listening. */
  static async open(options = {}) {
    const talk = new Talk();
    Object.assign(talk, await openClient());
    talk.peer = talk.socket();
    talk.begin(options);
    talk.peer.beginTranscription(talk.ears);
    await settled();
    talk.hear();
    await settled();
    return talk;
  }

  begin(options) {
    const { context, microphone } = this;
    const all = { context, microphone, ...options };
    this.conversation = converseWith(this.time.runtime(), this.client, all);
    for (const type of ["state", "turn", "messages", "echo", "playback"]) {
      this.conversation.on(type, (event) => this.events.push([type, event]));
    }
  }

  get ears() {
    return this.conversation.transcriptionId;
  }

  get turn() {
    return this.conversation.turns.at(-1);
  }

  node(name) {
    return FakeNode.made.findLast((node) => node.context === this.context && node.name === name);
  }

  /** A block of the microphone. */
  hear() {
    const level = { rms: 0.1, peak: 0.2, time: this.context.currentTime, ended: false };
    this.node("plait-capture").port.onmessage({
      data: { samples: new Int16Array(1440), ...level },
    });
  }

  /** The clocks, together. */
  advance(ms) {
    this.context.currentTime = (this.time.nowMs + ms) / 1000;
    this.peer.say({ type: "pong", n: 0 }); // else the connection would be given up
    this.time.advance(ms);
  }

  // The user, as the server hears: moments are seconds of the transcription, 0.03 of which came at 0.

  get heardSeconds() {
    return this.time.nowMs / 1000 + 0.03;
  }

  start() {
    this.began = this.heardSeconds;
    this.peer.event(this.ears, "speech_started", this.began);
  }

  stop(silenceMs = 500) {
    this.advance(silenceMs);
    this.ended = this.heardSeconds - silenceMs / 1000;
    this.peer.event(this.ears, "speech_stopped", this.ended);
  }

  async segment(text, { start = this.began, end = this.ended, isFinal = true, words } = {}) {
    const [index, revision] = [this.segments, 1];
    if (isFinal) this.segments += 1;
    const segment = { index, revision, text, start, end, is_final: isFinal, lag_ms: 1, words };
    this.peer.segment(this.ears, segment);
    await settled();
  }

  /** A whole turn of the user's, up to the question on the wire. */
  async says(text) {
    this.start();
    this.advance(800);
    this.stop();
    await this.segment(text);
    this.advance(100);
    await settled();
  }

  // The answer, as the server gives it.

  async writes(...texts) {
    if (!this.peer.seqs?.[this.turn.chatId]) this.peer.begin(this.turn.chatId);
    if (!this.peer.samples?.[this.turn.speechId]) this.peer.beginSpeech(this.turn.speechId);
    this.peer.items(this.turn.chatId, ...texts);
    await settled();
  }

  /** Audio of a text, a quarter of a second for each word, with its marks. */
  async speaks(text) {
    const id = this.turn.speechId;
    const base = (this.peer.samples?.[id] ?? 0) / RATE;
    const words = text.match(/\S+/g).map((word, i) => {
      const start = base + i * WORD_SECONDS;
      return { text: word, start, end: start + WORD_SECONDS };
    });
    this.peer.mark(id, { text, start: base, end: words.at(-1).end, words });
    this.peer.audio(id, new Array(words.length * WORD_SECONDS * RATE).fill(100));
    await settled();
  }

  /** What the audio thread has played by now, of what it got. */
  sounds(seconds, more = {}) {
    const time = this.context.currentTime;
    this.node("plait-playout").report({ time, position: seconds * RATE, ...more });
  }

  /** An answer of eight words, of which `seconds` have been heard. */
  async answers(seconds, text = "One two three four. Five six seven eight. ") {
    await this.writes(text);
    await this.speaks(text);
    this.sounds(0);
    this.advance(seconds * 1000 + 50); // and the way to the ear
    this.sounds(seconds + 0.05);
    await settled();
  }

  /** The server has said all, and it is heard to its end. */
  async finishes(turn = this.turn) {
    if (turn.chatId !== null) this.peer.done(turn.chatId);
    await settled();
    this.peer.done(turn.speechId);
    await settled();
    const position = this.peer.samples[turn.speechId];
    this.sounds(position / RATE, { moving: false, finished: true });
    this.advance(50);
    await settled();
  }

  /**
   * So many blocks of 16 ms of the room: what is played comes back, later and softer; the user is beside it.
   * Levels are peaks of noise.
   */
  room({ played = 0, user = 0 }, blocks) {
    for (let i = 0; i < blocks; i += 1) {
      this.advance(16);
      const sound = noise(played);
      const mic = noise(user).map((sample, at) => sample + 0.4 * (this.sounded?.[at] ?? 0));
      this.sounded = sound;
      const time = this.context.currentTime;
      this.node("plait-echo").port.onmessage({ data: { time, mic, played: sound } });
    }
  }

  /** What was sent, by type and id, of one kind. */
  sent(type) {
    return this.peer.sent.filter((message) => message.type === type).map(({ id }) => id);
  }
}
