/** What a card says while it waits and when it ended. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { endingOf, stopsText, waitingText } from "../playground/ending.js";

const CONFIRMED = { by: "client", released: true, stopMs: 14, wasted: { tokens: 0 }, usage: {} };
const LATE = { by: "client", released: false, stopMs: null, wasted: null, usage: {} };

/** @param {object} fields @returns {any} */
function chat(fields) {
  const stream = { started: { model: "m" }, queue: null };
  return { state: "cancelled", stream, items: 3, slotBack: false, trouble: null, ...fields };
}

/** @param {object} receipt @param {object} [fields] */
function said(receipt, fields) {
  const { tone, parts } = endingOf(chat({ receipt, ...fields }));
  return `${tone}: ${parts.join(" · ")}`;
}

test("a confirmed stop is green and says what it took", () => {
  assert.equal(
    said(CONFIRMED),
    "good: stopped in 14 ms · 0 tokens wasted · slot and cache released",
  );
});

test("a late release stays true as time passes: in the past tense, and what the gauges showed since", () => {
  const late = "warn: stopped · the engine needed more than 100 ms to confirm";

  assert.equal(said(LATE), late);
  assert.equal(said(LATE, { slotBack: true }), `${late} · slot back since`);
});

test("a lost connection is not blamed on the engine", () => {
  const lost = { ...LATE, usage: null };

  assert.equal(
    said(lost),
    "warn: stopped · the connection was lost before the server confirmed it",
  );
});

test("a stream that never started has computed nothing", () => {
  const stream = { started: null };

  assert.equal(
    said({ ...CONFIRMED, stopMs: 0 }, { stream }),
    "good: stopped before it started · nothing was computed",
  );
  assert.match(said(CONFIRMED, { stream }), /stopped in 14 ms/, "its start was on the way");
});

test("whoever else stopped it is named first", () => {
  assert.match(
    said({ ...CONFIRMED, by: "shutdown" }),
    /^warn: the server was shutting down · stop/,
  );
});

test("between start and first item it reads the prompt", () => {
  assert.equal(waitingText(chat({ state: "streaming", items: 0 })), "Reading the prompt…");
  assert.equal(waitingText(chat({ state: "streaming", items: 1 })), "");
  assert.equal(waitingText(chat({ state: "pending", stream: null })), "Sent");
});

test("the median is of confirmed stops, and late ones are counted beside it", () => {
  assert.equal(stopsText([9, 14, 20]), "median stop 14 ms");
  assert.equal(stopsText([9, "late", 14]), "median stop 9 ms · 1 late");
  assert.equal(stopsText(["late"]), "1 late");
});
