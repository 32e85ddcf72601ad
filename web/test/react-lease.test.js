/** Whose connection hooks use, and when it is closed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { leaseOf, SharedLease } from "../react/lease.js";
import { fakeClient, settled } from "./support/peer.js";

function lease() {
  const made = [];
  const shared = new SharedLease(() => {
    made.push(fakeClient());
    return made.at(-1).client;
  });
  return { made, shared };
}

test("one connection for all who hold it, made when the first asks", () => {
  const { made, shared } = lease();
  shared.hold();
  shared.hold();
  assert.equal(made.length, 0);

  assert.equal(shared.client(), shared.client());
  assert.equal(made.length, 1);
});

test("it is closed when the last has let go, and made anew for who comes later", async () => {
  const { made, shared } = lease();
  const [first, second] = [shared.hold(), shared.hold()];
  const client = shared.client();

  first();
  first(); // once is enough
  await settled();
  assert.notEqual(client.state, "closed");
  second();
  await settled();
  assert.equal(client.state, "closed");

  assert.notEqual(shared.client(), client);
  assert.equal(made.length, 2);
});

test("letting go and taking hold again in one go keeps it open", async () => {
  const { made, shared } = lease();
  const letGo = shared.hold();
  const client = shared.client();

  letGo();
  shared.hold();
  await settled();

  assert.equal(client.state, "idle");
  assert.equal(shared.client(), client);
  assert.equal(made.length, 1);
});

test("one that was given stays open", async () => {
  const { client } = fakeClient();
  const given = leaseOf(client);

  given.hold()();
  await settled();

  assert.equal(given.client(), client);
  assert.equal(client.state, "idle");
});
