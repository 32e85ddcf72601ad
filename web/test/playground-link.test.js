/** What the banner says about the connection, and the addresses in the code shown. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { leftText } from "../playground/banner.js";
import { forReaders } from "../playground/code.js";
import { detailOf, noticeLeaving } from "../playground/link.js";

/** @param {object} fields @returns {any} */
const connection = (fields) => ({ state: "open", wasOpen: true, leavingAt: null, ...fields });

test("a server that says goodbye is leaving, then has left, then is back", () => {
  const state = { connection: connection({}) };
  const store = /** @type {any} */ ({ state, changed() {} });
  noticeLeaving(store, /** @type {any} */ ({ message: { drain_ms: 5000 }, time: 100 }));
  assert.equal(state.connection.leavingAt, 5100);
  assert.equal(state.connection.detail, "The server is shutting down");

  assert.match(detailOf({ ...state.connection, state: "reconnecting" }), /^The server shut down\./);
  assert.equal(detailOf(connection({})), "");
});

test("the seconds left are rounded up and end silently", () => {
  assert.deepEqual([4200, 1000, 1, 0, -5].map(leftText), [
    ...[" · 5 s left", " · 1 s left", " · 1 s left", "", ""],
  ]);
});

test("the code shown names this server, over TLS where the page is", () => {
  const source = 'import { connect } from "../../sdk/index.js";\nconst plait = connect();';

  assert.match(forReaders(source, "http://box:1"), /"http:\/\/box:1\/static\/sdk\/index.js"/);
  assert.match(forReaders(source, "http://box:1"), /connect\("ws:\/\/box:1\/v1\/ws"\)/);
  assert.equal(forReaders('fetch("/metrics")', "http://box:1"), 'fetch("http://box:1/metrics")');
  assert.match(forReaders(source, "https://box"), /connect\("wss:\/\/box\/v1\/ws"\)/);
});
