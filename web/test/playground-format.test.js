/** Numbers as people read them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes, formatMs, ordinal, plural, streamHue } from "../playground/format.js";

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
