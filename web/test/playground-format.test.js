/** Numbers as people read them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatBytes,
  formatMs,
  formatTime,
  languageName,
  ordinal,
  plural,
  streamHue,
} from "../playground/format.js";

test("times and sizes keep two or three figures", () => {
  assert.deepEqual([0, 0.04, 0.42, 14.3, 999, 1234, 12_345].map(formatMs), [
    "0 ms",
    "0 ms",
    "0.4 ms",
    "14 ms",
    "999 ms",
    "1.23 s",
    "12.3 s",
  ]);
  assert.deepEqual([512, 1536, 5 * 1024 ** 2, 300 * 1024 ** 2].map(formatBytes), [
    "512 B",
    "1.5 KB",
    "5.0 MB",
    "300 MB",
  ]);
});

test("places in line and counts are grammatical", () => {
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 102].map(ordinal), [
    ...["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd"],
  ]);
  assert.deepEqual(
    [0, 1, 1200].map((n) => plural(n, "token")),
    ["0 tokens", "1 token", "1,200 tokens"],
  );
});

test("neighbouring streams never look alike", () => {
  for (let id = 1; id < 100; id += 1) {
    const gap = Math.abs(streamHue(id) - streamHue(id + 1));
    assert.ok(Math.min(gap, 360 - gap) > 90);
    assert.equal(streamHue(id), streamHue(id));
  }
});

test("a place in audio has hours only where there are some, and never rounds up", () => {
  assert.deepEqual(
    [0, 7.96, 61, 3599.99, 3661].map((seconds) => formatTime(seconds)),
    [...["0:00", "0:07", "1:01", "59:59", "1:01:01"]],
  );
  assert.deepEqual(
    [0.3, 7.96, 3600].map((seconds) => formatTime(seconds, 1)),
    [...["0:00.3", "0:07.9", "1:00:00.0"]],
  );
});

test("a language has its name, and what is no code stays as it is", () => {
  assert.deepEqual(["en", "de", "no code!"].map(languageName), ["English", "German", "no code!"]);
});
