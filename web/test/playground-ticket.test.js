/** The ticket a page connects with: asked for with the token in a header, and nowhere else. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchTicket, TokenRefused } from "../playground/ticket.js";

/** @returns a fetch that answers so, and what it was asked */
function answering(status, body = {}) {
  const asked = [];
  const request = async (url, options) => {
    asked.push({ url, ...options });
    return new Response(JSON.stringify(body), { status });
  };
  return { request, asked };
}

test("the token goes into a header of a POST, and the answer is the ticket", async () => {
  const { request, asked } = answering(200, { ticket: "plait_once_x", expires_in: 30 });

  assert.equal(await fetchTicket("s3cret", request), "plait_once_x");

  const [{ url, method, headers, cache }] = asked;
  assert.deepEqual(
    [url, method, headers, cache],
    ["/v1/ticket", "POST", { authorization: "Bearer s3cret" }, "no-store"],
  );
});

test("a token that the server does not know is told from a server that gives no ticket now", async () => {
  await assert.rejects(fetchTicket("s3cret", answering(401).request), TokenRefused);
  await assert.rejects(fetchTicket("s3cret", answering(429).request), (error) => {
    return !(error instanceof TokenRefused) && /HTTP 429/.test(error.message);
  });
});

test("no failure says the token", async () => {
  for (const status of [401, 403, 429, 503])
    await assert.rejects(fetchTicket("s3cret", answering(status).request), ({ message }) => {
      return !message.includes("s3cret");
    });
});
