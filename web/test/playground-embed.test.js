/** What the Embed panel knows without a page: lines, likeness, places on a plane, files, pieces of work, endings. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { countText } from "../playground/embed-composer.js";
import { endingOf, waitingText } from "../playground/ending.js";
import { formatCosine } from "../playground/format.js";
import { blankEmbedding, linesOf, Pace } from "../playground/new-embedding.js";
import { inPieces } from "../playground/pieces.js";
import { Pointed } from "../playground/pointed.js";
import { planeOf, pointOf } from "../playground/projection.js";
import { placeLabels, shortened } from "../playground/scatter-labels.js";
import { cosine, nearest, Similarity } from "../playground/similarity.js";
import { toCsv, toJson } from "../playground/vectors-file.js";

/** The result of a generator that is never interrupted. */
function run(work) {
  for (;;) {
    const { value, done } = work.next();
    if (done) return value;
  }
}
const floats = (...numbers) => Float32Array.from(numbers);

test("each line that says something is a text", () => {
  assert.deepEqual(linesOf(" a b \r\n\n  \nc\n"), ["a b", "c"]);
  assert.deepEqual(linesOf(""), []);
});

test("more lines than the page keeps are counted, and said", () => {
  assert.equal(countText(1), "1 line");
  assert.match(countText(20_001), /^the first 20,000 of 20,001 lines/);
});

test("the pace is that of the last two seconds", () => {
  const pace = new Pace();
  assert.equal(pace.perSecond, null);
  pace.note(0, 0);
  pace.note(1_000, 1_000);
  assert.equal(pace.perSecond, 1_000);
  for (let at = 2_000; at <= 10_000; at += 500) pace.note(1_000 + (at - 1_000) / 10, at);
  assert.equal(Math.round(pace.perSecond), 100);
});

test("cosines do not care for lengths, and nothing is like nothing", () => {
  assert.equal(cosine(floats(2, 0), floats(5, 0)), 1);
  assert.equal(cosine(floats(1, 0), floats(0, 3)), 0);
  assert.equal(cosine(floats(0, 0), floats(0, 3)), 0);
  assert.deepEqual(["-0.001", "-0.4", "1"].map(Number).map(formatCosine), [
    "0.00",
    "-0.40",
    "1.00",
  ]);
});

test("similarities are known of the first lines as they come, and of no line without a vector", () => {
  const similarity = new Similarity(3);
  const vectors = [floats(1, 0), null];
  similarity.take(vectors);
  vectors.push(floats(0.6, 0.8), floats(0, 1));
  similarity.take(vectors);
  assert.equal(similarity.count, 3);
  assert.equal(similarity.of(2, 0).toFixed(2), "0.60");
  assert.equal(similarity.of(0, 2), similarity.of(2, 0));
  assert.ok(Number.isNaN(similarity.of(0, 1)));
});

test("the nearest come in order, without the line itself and those that have no vector", () => {
  const vectors = [floats(1, 0), floats(0, 1), null, floats(0.9, 0.1), floats(0.5, 0.5)];
  assert.deepEqual(
    nearest(vectors, 0, 2).map(({ index }) => index),
    [3, 4],
  );
  assert.deepEqual(nearest(vectors, 2, 2), []);
});

/** Two heaps far from each other, in ten dimensions. */
function heaps() {
  return Array.from({ length: 40 }, (_, i) => {
    const row = new Float32Array(10).map((_, d) => Math.sin(i * 7.1 + d * 3.3) / 10);
    row[3] = i % 2 === 0 ? 5 : -5;
    return row;
  });
}

test("the plane tells apart what differs most", () => {
  const rows = heaps();
  const plane = run(planeOf(rows));
  const points = rows.map((row) => pointOf(plane, row));
  const sides = points.map(([x]) => Math.sign(x));
  assert.ok(points.every(([x]) => Math.abs(x) > 4.5 && Math.abs(x) < 5.5));
  assert.ok(sides.every((side, i) => side === sides[i % 2]) && sides[0] !== sides[1]);
  const [one, two] = plane.axes;
  assert.ok(Math.abs(one.reduce((sum, value, i) => sum + value * two[i], 0)) < 1e-6);
});

test("more lines do not throw the plane's sides about", () => {
  const rows = heaps();
  const before = run(planeOf(rows.slice(0, 10)));
  const flipped = { ...before, axes: before.axes.map((axis) => axis.map((value) => -value)) };
  for (const plane of [before, flipped]) {
    const after = run(planeOf(rows, plane));
    assert.equal(Math.sign(pointOf(after, rows[0])[0]), Math.sign(pointOf(plane, rows[0])[0]));
  }
});

test("where nothing differs there is no plane, and where one thing does it is a line", () => {
  assert.equal(run(planeOf([])), null);
  assert.equal(run(planeOf([floats(1, 2)])), null);
  assert.equal(run(planeOf([floats(1, 2), floats(1, 2)])), null);
  const plane = run(planeOf([floats(0, 0), floats(4, 0)]));
  assert.deepEqual(
    [0, 4].map((x) => Math.abs(pointOf(plane, floats(x, 0))[0])),
    [2, 2],
  );
  assert.equal(pointOf(plane, floats(4, 0))[1], 0);
});

test("long work rests as soon as its time is up, and stops when nobody wants it any more", async () => {
  let clock = 0;
  let rests = 0;
  function* work() {
    for (let i = 0; i < 10; i++) {
      clock += 5;
      yield;
    }
    return "done";
  }
  const rest = async () => {
    rests += 1;
  };
  const now = () => clock;
  assert.equal(await inPieces(work(), () => true, now, rest), "done");
  assert.equal(rests, 5);
  assert.equal(await inPieces(work(), () => false, now, rest), null);
});

test("labels hide neither points nor each other, and what has no room is left out", () => {
  const room = {
    width: 200,
    height: 100,
    gap: 6,
    line: 12,
    measure: (words) => words.length * 6,
    taken: [
      { x: 50, y: 50 },
      { x: 60, y: 50 },
      { x: 195, y: 50 },
    ],
  };
  const wanted = room.taken.map((point, index) => ({ text: `label ${index}`, index, point }));
  const labels = placeLabels([...wanted, { text: "nowhere", index: 3, point: null }], room);
  assert.deepEqual(
    labels.map(({ index }) => index),
    [0, 1, 2],
  );
  const [first, , third] = labels;
  assert.ok(first.x + 7 * 6 <= 50, "left of it, as another point is on its right");
  assert.ok(third.x + 7 * 6 <= 200, "inside");
  const many = Array.from({ length: 30 }, (_, index) => ({ ...wanted[0], index }));
  assert.ok(placeLabels(many, room).length <= 4);
  assert.equal(shortened("x".repeat(99)).length, 30);
});

test("pointing at the same again changes nothing", () => {
  let changes = 0;
  const pointed = new Pointed(() => {
    changes += 1;
  });
  pointed.point({ a: 1, b: 2 });
  pointed.point({ a: 1, b: 2 });
  assert.deepEqual([changes, pointed.has(2), pointed.has(0)], [1, true, false]);
  pointed.point(null);
  pointed.point(null);
  assert.equal(changes, 2);
});

/** Three lines: one with a vector, one too long, one that was cut. */
function batch() {
  const embedding = blankEmbedding({ lines: ['say "a", b', "long", "=1+1"], truncate: false });
  embedding.vectors = [floats(0.1, -2), null, floats(1 / 3, 0)];
  embedding.failures.set(1, { code: "input_too_long", message: "too long" });
  embedding.cut.add(2);
  return embedding;
}

test("JSON has every line, and its numbers are the very same when read again", () => {
  const read = JSON.parse(run(toJson(batch())).join(""));
  assert.deepEqual(
    read.map(({ index, text, error, truncated }) => [index, text, error?.code, truncated]),
    [
      [0, 'say "a", b', undefined, undefined],
      [1, "long", "input_too_long", undefined],
      [2, "=1+1", undefined, true],
    ],
  );
  assert.deepEqual(Float32Array.from(read[2].embedding), floats(1 / 3, 0));
});

test("CSV has a row for every line, and no text is a formula", () => {
  const rows = run(toCsv(batch())).join("").split("\r\n");
  assert.deepEqual(rows, [
    "index,text,error,v0,v1",
    '0,"say ""a"", b",,0.100000001,-2',
    '1,"long",input_too_long,,',
    '2,"\'=1+1",,0.333333343,0',
    "",
  ]);
});

const EMBEDDING = {
  kind: "embedding",
  state: "completed",
  stream: { started: { model: "m" }, queue: null },
  items: 12,
  sentAt: 0,
  endedAt: 1,
  finishReason: "stop",
  receipt: null,
  slotBack: false,
  trouble: null,
  timing: { totalMs: 800, queuedMs: 300, pausedMs: 0 },
};

test("a finished batch says how many lines have a vector, and that some were cut or have none", () => {
  assert.deepEqual(endingOf({ ...EMBEDDING, usage: { texts: 12 } }).parts, [
    "embedded 12 lines",
    "in 500 ms",
  ]);
  const { tone, parts } = endingOf({ ...EMBEDDING, usage: { failed: 1, truncated: 2 } });
  assert.equal(tone, "warn");
  assert.deepEqual(parts, [
    "embedded 11 lines",
    "in 500 ms",
    "2 cut",
    "1 line without a vector, marked in the list",
  ]);
});

test("a stopped batch says what the server said, in lines", () => {
  const receipt = { by: "client", released: true, stopMs: 14, wasted: { texts: 3 }, usage: {} };
  const { tone, parts } = endingOf({ ...EMBEDDING, state: "cancelled", receipt });
  assert.equal(tone, "good");
  assert.deepEqual(parts, ["stopped in 14 ms", "3 lines wasted", "slot released"]);
});

test("a waiting batch says for what, and a lost one what is left", () => {
  assert.equal(
    waitingText({ ...EMBEDDING, state: "streaming", items: 0 }),
    "Embedding the first lines…",
  );
  const trouble = { code: "connection_lost", message: "m", lost: true };
  assert.match(endingOf({ ...EMBEDDING, trouble }).parts[0], /can be saved/);
});
