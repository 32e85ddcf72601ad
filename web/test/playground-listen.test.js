/** What the Listen panel knows without a page: segments and their revisions, subtitles, levels, microphones. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Levels } from "../playground/levels.js";
import { lasting, named, troubleOf } from "../playground/microphone.js";
import { compare, wordsOf } from "../playground/revised.js";
import { cuesOf, toSrt, toText, toVtt } from "../playground/subtitles.js";
import { Transcript } from "../playground/transcript.js";

/** @param {object} fields @returns {any} */
const segment = (fields) => ({
  index: 0,
  revision: 1,
  text: "hello",
  start: 0,
  end: 1,
  isFinal: false,
  lagMs: 100,
  ...fields,
});

/** @param {any[]} segments */
function heard(...segments) {
  const transcript = new Transcript();
  for (const one of segments) transcript.take(segment(one));
  return transcript;
}

/** @param {string} before @param {string} after */
const revised = (before, after) =>
  compare(before, after)
    .filter((word) => word.revised)
    .map(({ text }) => text.trim());

test("words that others replaced are revised, those that only follow are new", () => {
  assert.deepEqual(revised("", "ask not what"), []);
  assert.deepEqual(revised("ask not", "ask not what your"), []);
  assert.deepEqual(revised("ask nut", "ask not what your"), ["not"]);
  assert.deepEqual(revised("and so my fellow", "and so, my dear fellow"), ["dear"]);
  assert.deepEqual(revised("one too three", "one two three four"), ["two"]);
  assert.deepEqual(revised("one two three", "four five six seven"), ["four", "five", "six"]);
});

test("case and punctuation alone are no revision", () => {
  assert.deepEqual(revised("ask not what", "Ask not, what!"), []);
  assert.deepEqual(revised("- -", "– –"), ["–", "–"]);
});

test("the words compared are the text, white space and all", () => {
  for (const text of ["", " ", "a", "  a  b\n c ", "日本語"]) {
    assert.equal(wordsOf(text).join(""), text);
    assert.equal(
      compare("a b", text)
        .map((word) => word.text)
        .join(""),
      text,
    );
  }
});

test("a very long text is compared by its front alone", () => {
  const words = Array.from({ length: 500 }, (_, n) => `w${n}`);
  const other = words.with(250, "changed");
  assert.equal(revised(words.join(" "), `${words.join(" ")} more`).length, 0);
  assert.equal(revised(words.join(" "), other.join(" "))[0], "changed");
});

test("a segment keeps the texts it had, and a final one never changes", () => {
  const transcript = heard(
    { text: "ask nut" },
    { revision: 2, text: " ask not", stable: " ask" },
    { revision: 4, text: "ask not", end: 2 },
    { revision: 5, text: "Ask not.", isFinal: true },
    { revision: 6, text: "never" },
  );
  const [entry] = transcript.entries;
  assert.equal(entry?.text, "Ask not.");
  assert.equal(entry?.revision, 5);
  assert.deepEqual(entry?.earlier, [
    { revision: 1, text: "ask nut" },
    { revision: 4, text: "ask not" },
  ]);
  assert.equal(transcript.revisionsPerSegment, 5);
});

test("a revision that comes late is not taken", () => {
  const transcript = heard({ revision: 3, text: "new" }, { revision: 2, text: "old" });
  assert.equal(transcript.entries[0]?.text, "new");
});

test("what was no speech after all is not spoken", () => {
  const transcript = heard(
    { text: "thank you" },
    { revision: 2, text: "", isFinal: true },
    { index: 1, text: "yes", isFinal: true },
  );
  assert.deepEqual(
    transcript.spoken.map(({ text }) => text),
    ["yes"],
  );
});

test("the history of a segment is bounded", () => {
  const transcript = new Transcript();
  for (let n = 1; n <= 200; n += 1) transcript.take(segment({ revision: n, text: `text ${n}` }));
  assert.equal(transcript.entries[0]?.earlier.length, 24);
  assert.equal(transcript.entries[0]?.earlier.at(-1)?.text, "text 199");
});

test("a recording taken up again goes on in order and in time", () => {
  const transcript = heard({ text: "one", end: 2, isFinal: true }, { index: 1, start: 3, end: 4 });
  transcript.resume(5.5);
  transcript.take(
    segment({ text: "two", start: 0.5, end: 1, words: [{ text: "two", start: 0.5, end: 1 }] }),
  );
  assert.deepEqual(
    transcript.entries.map(({ key, start, end }) => [key, start, end]),
    [
      [0, 0, 2],
      [1, 3, 4],
      [2, 6, 6.5],
    ],
  );
  assert.equal(transcript.entries[2]?.words[0]?.start, 6);
});

const TWO = heard(
  { text: "Ask not.", start: 0.5, end: 1.25, isFinal: true },
  { index: 1, text: "You & <me>\n-->  us", start: 3661.0014, end: 3663, isFinal: true },
  { index: 2, text: "", isFinal: true, start: 3663, end: 3663 },
).entries;

test("text is one segment a line", () => {
  assert.equal(toText(TWO), "Ask not.\nYou & <me> --> us\n");
  assert.equal(toText([]), "");
});

test("SubRip has numbers, commas, CRLF and nothing that reads as markup or as an arrow", () => {
  assert.equal(
    toSrt(TWO),
    "1\r\n00:00:00,500 --> 00:00:01,250\r\nAsk not.\r\n\r\n" +
      "2\r\n01:01:01,001 --> 01:01:03,000\r\nYou & ‹me› --› us\r\n\r\n",
  );
});

test("WebVTT has its header, points, and its characters escaped", () => {
  assert.equal(
    toVtt(TWO),
    "WEBVTT\n\n00:00:00.500 --> 00:00:01.250\nAsk not.\n\n" +
      "01:01:01.001 --> 01:01:03.000\nYou &amp; &lt;me&gt; --&gt; us\n\n",
  );
});

const LONG = Array.from({ length: 60 }, (_, n) => `word${n}`);

test("a long segment becomes cues of two short lines, timed by their words", () => {
  const words = LONG.map((text, n) => ({ text: ` ${text}`, start: n * 0.2, end: n * 0.2 + 0.15 }));
  const { entries } = heard({ text: LONG.join(" "), end: 12, words, isFinal: true });
  const cues = cuesOf(entries);
  assert.equal(cues.flatMap(({ lines }) => lines).join(" "), LONG.join(" "));
  for (const { start, end, lines } of cues) {
    assert.ok(lines.length <= 2);
    for (const line of lines) assert.ok(line.length <= 42, line);
    const spoken = lines.join(" ").split(" ");
    const first = words[LONG.indexOf(spoken[0] ?? "")];
    const last = words[LONG.indexOf(spoken.at(-1) ?? "")];
    assert.deepEqual(
      [start, end],
      [first?.start, last?.end].map((s) => Math.round((s ?? 0) * 1000)),
    );
  }
});

test("cues are in order and never overlap, whatever the times were", () => {
  const texts = [LONG.join(" "), "one", "日本語".repeat(60), "two"];
  const { entries } = heard(
    ...texts.map((text, index) => ({ index, text, start: index, end: index, isFinal: true })),
  );
  const cues = cuesOf(entries);
  for (const [index, { start, end }] of cues.entries()) {
    assert.ok(end > start);
    assert.ok(start >= (cues[index - 1]?.end ?? 0));
  }
  const kept = cues.flatMap(({ lines }) => lines).join("");
  assert.equal(kept.replaceAll(" ", ""), texts.join("").replaceAll(" ", ""));
});

test("levels are the loudest of each twentieth, and know how long there was no sound", () => {
  const levels = new Levels();
  for (let n = 1; n <= 100; n += 1) levels.push(n === 30 ? 0.5 : 0, n * 0.02);
  assert.equal(levels.seconds, 2);
  assert.equal(levels.between(0.5, 0.7), 0.5);
  assert.equal(levels.between(0.7, 2), 0);
  assert.ok(Math.abs(levels.silence - 1.4) < 1e-9);
});

test("an hour of levels is kept from its beginning", () => {
  const levels = new Levels();
  levels.push(0.9, 0.1);
  for (let second = 1; second <= 3600; second += 1) levels.push(0.1, second);
  assert.ok(Math.abs(levels.between(0, 0.2) - 0.9) < 1e-6);
  assert.ok(Math.abs(levels.between(3599, 3600) - 0.1) < 1e-6);
});

/** @param {string} name @param {string} [message] */
function thrown(name, message = "") {
  const error = new Error(message);
  error.name = name;
  return troubleOf(error);
}

test("what the browser refuses is said with the next step", () => {
  const cases = [
    [thrown("NotAllowedError", "Permission denied"), "denied", /site settings/],
    [thrown("NotAllowedError", "Permission dismissed"), "dismissed", /choose Allow/],
    [thrown("NotAllowedError", "Permission denied by system"), "denied_by_system", /privacy/],
    [thrown("NotFoundError"), "no_device", /Plug one in/],
    [thrown("NotReadableError"), "busy", /another program/],
    [thrown("TypeError", "odd"), "internal", /odd/],
  ];
  for (const [trouble, code, step] of /** @type {[any, string, RegExp][]} */ (cases)) {
    assert.equal(trouble.code, code);
    assert.match(trouble.message, step);
  }
});

test("without a secure context there is no microphone, and files still work", () => {
  assert.match(lasting(false)?.message ?? "", /https.*file/);
  assert.equal(lasting(true), null);
});

test("microphones are offered by name, once each", () => {
  const devices = [
    { deviceId: "default", label: "Default - Desk" },
    { deviceId: "a1", label: "Desk (046d:0825)" },
    { deviceId: "b2", label: "" },
  ];
  assert.deepEqual(named(devices), [{ id: "a1", label: "Desk" }]);
});
