/** A real server with apps: what it may not do, or cannot give, each of them is told as an error of its own class. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import {
  CapabilityDeniedError,
  InvalidRequestError,
  PlaitError,
  ResourceNotAvailableError,
} from "../../sdk/index.js";
import { chat, serve } from "../support/live.js";

const hash = (token) => `sha256:${createHash("sha256").update(token).digest("hex")}`;
const TOKENS = {
  notes: "notes-canary-1b7e",
  small: "small-canary-88c2",
  hasty: "hasty-canary-0d41",
};
const CONFIG = `
[apps.notes]
token_hashes = ["${hash(TOKENS.notes)}"]
capabilities = ["chat"]
max_streams = 1

[apps.small]
token_hashes = ["${hash(TOKENS.small)}"]
memory_budget_bytes = 300_000

[apps.hasty]
token_hashes = ["${hash(TOKENS.hasty)}"]
opens_per_second = 0.1
`;

let server;
before(async () => {
  server = await serve({ config: CONFIG });
});
after(() => server.stop());

test("a token is shown, also one that is fetched for each attempt; the welcome says whose it is", async () => {
  const plait = server.client({ token: async () => TOKENS.notes });
  assert.equal(await plait.llm.chat(chat("tokens=1")), "w0 ");
  assert.deepEqual([plait.welcome.app, plait.welcome.capabilities], ["notes", ["chat"]]);
});

test("a wrong token is unauthorized, once and for all", async () => {
  const plait = server.client({ token: "wrong" });
  await assert.rejects(plait.llm.chat(chat("tokens=1")), { code: "unauthorized" });
  assert.equal(plait.state, "closed");
});

test("a method an app may not use is a CapabilityDeniedError that names it", async () => {
  const plait = server.client({ token: TOKENS.notes });
  await assert.rejects(plait.tts.synthesize({ text: "Hello." }).toWav(), (error) => {
    assert.ok(CapabilityDeniedError.isInstance(error));
    assert.deepEqual([error.capability, error.retryable], ["synthesize", false]);
    return true;
  });
  assert.equal(await plait.llm.chat(chat("tokens=1")), "w0 ");
});

test("what does not fit into an app's memory is a ResourceNotAvailableError with the figures", async () => {
  const plait = server.client({ token: TOKENS.small });
  await assert.rejects(plait.llm.chat({ ...chat("tokens=1"), maxTokens: 1000 }), (error) => {
    assert.ok(ResourceNotAvailableError.isInstance(error), String(error));
    assert.equal(error.class, "capacity");
    assert.ok(error.requiredBytes > error.availableBytes);
    return true;
  });
  assert.equal(await plait.llm.chat({ ...chat("tokens=1"), maxTokens: 10 }), "w0 ");
});

test("one stream too many is refused, and the one that runs goes on", async () => {
  const plait = server.client({ token: TOKENS.notes });
  const stream = plait.llm.chatStream(chat("tokens=100000 step_ms=5"));
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  await assert.rejects(plait.llm.chat(chat("tokens=1")), (error) => {
    return PlaitError.isInstance(error) && error.code === "too_many_streams" && error.retryable;
  });
  assert.equal((await iterator.next()).done, false);
  assert.equal((await stream.cancel()).by, "client");
});

test("too many requests are told when to come again", async () => {
  const plait = server.client({ token: TOKENS.hasty });
  const asked = Array.from({ length: 3 }, () => plait.llm.chat(chat("tokens=1")));
  const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
  assert.ok(refused.length > 0);
  for (const { reason } of refused) {
    assert.deepEqual([reason.code, reason.retryable], ["rate_limited", true]);
    assert.ok(reason.retryAfterMs > 0);
  }
});

test("a parameter out of bounds is an InvalidRequestError that names it", async () => {
  const plait = server.client({ token: TOKENS.notes });
  await assert.rejects(plait.llm.chat({ ...chat("tokens=1"), topP: 7 }), (error) => {
    return InvalidRequestError.isInstance(error) && error.param === "top_p";
  });
});
