/** Whose turn it is: what was detected and transcribed goes in, with its moments, and what is to be done comes out. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { TurnTaking } from "../sdk/turn-taking.js";

const END_MS = 600;

/** The user's side of it on a clock of its own: what was decided, as it was. */
class Table {
  nowMs = 0;
  taking = new TurnTaking(END_MS);
  decided = [];

  take(decisions) {
    this.decided.push(...decisions);
    return decisions.map(({ type }) => type);
  }

  start(users = true) {
    return this.take(this.taking.speechStarted(users));
  }

  /** The server says so after half a second of silence. */
  stop() {
    this.nowMs += 500;
    return this.take(this.taking.speechStopped(this.silentFrom, this.nowMs - 500, this.nowMs));
  }

  get silentFrom() {
    return (this.nowMs - 500) / 1000;
  }

  segment(index, text, isFinal = true, end = this.silentFrom) {
    return this.take(this.taking.segment({ index, text, end, isFinal }, this.nowMs));
  }

  /** Time goes on; what was to be woken for happens. */
  advance(ms) {
    const end = this.nowMs + ms;
    const types = [];
    for (;;) {
      const wakeMs = this.taking.wakeMs;
      if (wakeMs === null || wakeMs > end) break;
      this.nowMs = Math.max(this.nowMs, wakeMs);
      const woken = this.take(this.taking.tick(this.nowMs));
      assert.ok(woken.length > 0, "was woken for nothing");
      types.push(...woken);
    }
    this.nowMs = end;
    return types;
  }

  /** All of a turn, up to the question. */
  says(index, text) {
    this.start();
    this.advance(1000);
    this.stop();
    this.segment(index, text);
    return this.advance(END_MS);
  }
}

test("the turn is over after the silence, once all of it is final", () => {
  const table = new Table();
  assert.deepEqual(table.start(), ["begin"]);
  table.advance(1000);
  assert.deepEqual(table.stop(), []);
  assert.deepEqual(table.segment(0, "Hello."), ["said"]);
  assert.deepEqual(table.advance(99), []);
  assert.deepEqual(table.advance(1), ["ask"]);
  assert.deepEqual(table.decided.at(-1), { type: "ask", said: "Hello." });
});

test("silence alone is not enough: what was begun has to be final", () => {
  const table = new Table();
  table.start();
  table.advance(1000);
  table.segment(0, "Hel", false);
  table.stop();
  assert.deepEqual(table.advance(5000), []);
  assert.deepEqual(table.segment(0, "Hello.", true, 1), ["said", "ask"]);
});

test("a final that comes before the event that ends it counts as well", () => {
  const table = new Table();
  table.start();
  table.advance(1000);
  table.segment(0, "Hello.", true, 1);
  table.stop();
  assert.deepEqual(table.advance(100), ["ask"]);
});

test("speech that goes on before the turn is over belongs to it", () => {
  const table = new Table();
  table.start();
  table.advance(1000);
  table.stop();
  table.segment(0, "I want");
  assert.deepEqual(table.start(), []);
  table.advance(1000);
  table.stop();
  assert.deepEqual(table.segment(1, "a pony."), ["said"]);
  assert.deepEqual(table.advance(100), ["ask"]);
  assert.equal(table.decided.at(-1).said, "I want a pony.");
});

test("who goes on while it thinks takes the question back, and all of it is asked", () => {
  const table = new Table();
  table.says(0, "I want");
  assert.equal(table.taking.phase, "thinking");
  assert.deepEqual(table.start(), ["withdraw"]);
  table.advance(1000);
  table.stop();
  table.segment(1, "a pony.");
  table.advance(100);
  assert.equal(table.decided.at(-1).said, "I want a pony.");
});

test("who talks into the answer interrupts it and begins a turn of their own", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.taking.sounds();
  assert.deepEqual(table.start(), ["interrupt", "begin"]);
  table.advance(500);
  table.stop();
  table.segment(1, "Stop.");
  table.advance(100);
  assert.equal(table.decided.at(-1).said, "Stop.");
});

test("speech that may be the answer's own does nothing until the user is told from it", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.taking.sounds();
  assert.deepEqual(table.start(false), []);
  assert.deepEqual(table.take(table.taking.talk()), ["interrupt", "begin"]);
  assert.deepEqual(table.take(table.taking.talk()), []);
});

test("a sound that is loud but no speech does nothing, whichever comes first", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.taking.sounds();
  assert.deepEqual(table.take(table.taking.talk()), []);
  assert.deepEqual(table.start(false), []);
  assert.deepEqual(table.stop(), []);
  assert.equal(table.taking.phase, "speaking");
});

test("a noise asks nothing", () => {
  const table = new Table();
  table.start();
  table.advance(200);
  table.stop();
  assert.deepEqual(table.advance(1999), []);
  assert.deepEqual(table.advance(1), ["nothing"]);
  assert.equal(table.taking.phase, "idle");
});

test("what had been shown and was no speech asks nothing, without waiting", () => {
  const table = new Table();
  table.start();
  table.advance(1000);
  table.segment(0, "Mm", false);
  table.stop();
  table.segment(0, "");
  assert.deepEqual(table.advance(100), ["nothing"]);
});

test("a noise that interrupted the answer leaves it interrupted", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.taking.sounds();
  table.start();
  table.stop();
  assert.deepEqual(table.advance(2000), ["nothing"]);
  assert.equal(table.taking.phase, "idle");
});

test("a noise while it thinks asks the same again", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.start();
  table.stop();
  assert.deepEqual(table.advance(2000), ["ask"]);
  assert.equal(table.decided.at(-1).said, "Tell me.");
});

test("words that come late, after a noise was given up, are a turn all the same", () => {
  const table = new Table();
  table.start();
  table.stop();
  table.advance(3000);
  assert.deepEqual(table.segment(0, "Yes."), ["begin", "said", "ask"]);
});

test("words that come late while the answer sounds begin the next turn's text", () => {
  const table = new Table();
  table.says(0, "Tell me.");
  table.taking.sounds();
  assert.deepEqual(table.segment(1, "Please."), []);
  table.start();
  table.advance(500);
  table.stop();
  table.segment(2, "Now.");
  table.advance(100);
  assert.equal(table.decided.at(-1).said, "Please. Now.");
});

test("a server that never finishes does not keep the turn for ever", () => {
  const table = new Table();
  table.start();
  table.segment(0, "Hello", false);
  table.stop();
  assert.deepEqual(table.advance(9_999), []);
  assert.deepEqual(table.advance(1), ["ask"]);
});

test("what never ends is bounded", () => {
  const table = new Table();
  table.start();
  for (let i = 0; i < 1000; i += 1) table.segment(i, `w${i}`, true, i);
  assert.equal(table.taking.said.split(" ").length, 200);
});

/** A generator of its own: the same game again and again. */
function chance(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What may happen to a conversation, in any order; one that speaks may also be over, or be stopped by the app. */
function moves(table, random) {
  const { taking } = table;
  let index = 0;
  const pick = (list) => list[Math.floor(random() * list.length)];
  const speech = () => (taking.voice ? table.stop() : table.start(random() < 0.7));
  const words = () => {
    const isFinal = random() < 0.7;
    const types = table.segment(index, random() < 0.8 ? `w${index}` : "", isFinal);
    if (isFinal) index += 1;
    return types;
  };
  const all = [
    speech,
    words,
    () => table.advance(Math.floor(random() * 3000)),
    () => table.take(taking.talk()),
    () => taking.sounds(),
    () => taking.over(),
  ];
  return () => pick(all)();
}

/** The rules, kept by whoever does as decided. */
class Referee {
  turn = null;
  answer = false;
  begun = 0;
  ended = 0;

  follow({ type, said }) {
    if (type === "begin") {
      assert.equal(this.turn, null, "a turn is heard already");
      assert.equal(this.answer, false, "nobody talks into an answer that goes on");
      this.begun += 1;
      this.turn = "hearing";
    } else if (type === "ask") {
      assert.ok(said && this.turn === "hearing" && !this.answer);
      this.answer = true;
      this.turn = "answered";
    } else if (type === "withdraw") {
      assert.ok(this.answer);
      this.answer = false;
      this.turn = "hearing";
    } else if (type === "interrupt" || type === "nothing") this.end();
    else assert.equal(this.turn, "hearing");
  }

  end() {
    assert.notEqual(this.turn, null);
    this.answer = false;
    this.turn = null;
    this.ended += 1;
  }
}

test("in any order of things a turn ends once, and there are never two answers", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const table = new Table();
    const referee = new Referee();
    const move = moves(table, chance(seed));
    for (let step = 0; step < 200; step += 1) {
      const before = table.taking.phase;
      move();
      for (const decision of table.decided.splice(0)) referee.follow(decision);
      const answered = before === "thinking" || before === "speaking";
      if (answered && table.taking.phase === "idle" && referee.answer) referee.end();
      const phase =
        referee.turn === "answered" ? ["thinking", "speaking"] : [referee.turn ?? "idle"];
      assert.ok(phase.includes(table.taking.phase), `seed ${seed}, step ${step}`);
    }
    assert.ok(referee.begun - referee.ended <= 1 && referee.begun > 0);
  }
});
