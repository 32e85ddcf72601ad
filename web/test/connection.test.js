import assert from "node:assert/strict";
import { test } from "node:test";
import { retryDelayMs } from "../sdk/backoff.js";
import { connect, PlaitError, StreamError } from "../sdk/index.js";
import { drain, fakeClient, MESSAGES, openClient, settled, WELCOME } from "./support/peer.js";

const chat = (client) => client.llm.chatStream({ messages: MESSAGES });

test("nothing is opened before first use", async () => {
  const { client, sockets } = fakeClient();
  await settled();
  assert.equal(client.state, "idle");
  assert.equal(client.welcome, null);
  assert.deepEqual(sockets, []);
});

test("requests made before the welcome go out in order once it came", async () => {
  const { client, socket } = fakeClient();
  const ids = [chat(client), chat(client), chat(client)].map(({ id }) => id);
  await settled();
  assert.deepEqual(socket().sent, []);
  socket().welcome();
  assert.deepEqual(
    socket().sent.map(({ id }) => id),
    ids,
  );
});

test("a listener that opens a stream on 'open' does not overtake those who waited", async () => {
  const { client, socket } = fakeClient();
  client.on("state", ({ state }) => state === "open" && chat(client));
  client.on("frame", ({ type }) => type === "welcome" && chat(client));
  chat(client);
  await settled();
  socket().welcome();
  assert.deepEqual(
    socket().sent.map(({ id }) => id),
    [1, 2, 3],
  );
});

test("the welcome is kept in camelCase, and models() lists what every method offers", async () => {
  const { client, socket } = fakeClient();
  const models = client.models();
  await settled();
  socket().welcome({
    ...WELCOME,
    methods: { chat: { models: ["a", "b"] }, embed: { models: ["c"] } },
  });
  assert.deepEqual(await models, [
    { id: "a", method: "chat" },
    { id: "b", method: "chat" },
    { id: "c", method: "embed" },
  ]);
  assert.equal(client.welcome.limits.maxTextBytes, 1_048_576);
});

test("K09: a lost socket throws connection_lost after the items, and never looks like an end", async () => {
  const { client, socket } = await openClient();
  const stream = chat(client);
  socket().begin(stream.id);
  socket().items(stream.id, "a", "b");
  socket().drop();
  const { items, error } = await drain(stream);
  assert.deepEqual(
    items.map(({ content, done }) => [content, done]),
    [
      ["a", false],
      ["b", false],
    ],
  );
  assert.ok(StreamError.isInstance(error));
  assert.deepEqual([error.code, error.retryable], ["connection_lost", true]);
  assert.deepEqual([stream.state, (await stream.done).state], ["errored", "errored"]);
});

test("a clean close by the server in mid-stream is a lost connection too", async () => {
  const { client, socket } = await openClient();
  const stream = chat(client);
  socket().drop(1001, "leaving");
  assert.match((await drain(stream)).error.message, /1001: leaving/);
});

test("a cancel whose proof was lost with the socket resolves and claims nothing", async () => {
  const { client, socket } = await openClient();
  const proof = chat(client).cancel();
  socket().drop();
  assert.deepEqual(await proof, {
    by: "client",
    released: false,
    stopMs: null,
    wasted: null,
    usage: null,
  });
});

test("reconnecting replays nothing, and ids go on increasing", async () => {
  const { client, sockets, socket, time } = await openClient();
  const first = chat(client);
  socket().drop();
  assert.equal(client.state, "reconnecting");
  time.advance(1_000);
  await settled();
  assert.equal(sockets.length, 2);
  socket().welcome();
  assert.equal(client.state, "open");
  assert.deepEqual(socket().sent, []);
  const second = chat(client);
  assert.ok(second.id > first.id);
  assert.deepEqual(socket().types(second.id), ["open"]);
});

test("a request made while reconnecting waits for the attempt and goes out with it", async () => {
  const { client, socket, time } = await openClient();
  socket().drop();
  const stream = chat(client);
  time.advance(1_000);
  await settled();
  socket().welcome();
  assert.deepEqual(socket().types(stream.id), ["open"]);
});

test("a failed attempt fails the requests that waited for it, and says what to check", async () => {
  const { client, socket } = fakeClient();
  const stream = chat(client);
  const models = client.models();
  await settled();
  socket().drop();
  const { error } = await drain(stream);
  assert.equal(error.code, "connection_failed");
  assert.match(error.message, /ws:\/\/server\.test\/v1\/ws.*Is the server running/);
  await assert.rejects(models, { code: "connection_failed" });
});

test("a server that accepts and never welcomes fails the attempt after ten seconds", async () => {
  const { client, socket, time } = fakeClient();
  const stream = chat(client);
  await settled();
  time.advance(10_000);
  assert.match((await drain(stream)).error.message, /no welcome within 10 s/);
  assert.equal(socket().readyState, 2);
});

test("attempts back off exponentially up to the maximum, and jitter is a share of the delay", () => {
  const delays = [0, 1, 2, 10].map((attempt) => retryDelayMs(attempt, 10_000, () => 0));
  assert.deepEqual(delays, [250, 500, 1_000, 10_000]);
  assert.equal(
    retryDelayMs(10, 10_000, () => 1),
    5_000,
  );
});

test("a server that welcomes and drops at once does not reset the back-off", async () => {
  const { sockets, socket, time } = await openClient();
  for (const delayMs of [250, 500, 1_000]) {
    const before = sockets.length;
    socket().drop();
    time.advance(delayMs - 1);
    assert.equal(sockets.length, before);
    time.advance(1);
    await settled();
    assert.equal(sockets.length, before + 1);
    socket().welcome();
  }
});

test("a connection that lasted starts the back-off anew", async () => {
  const { sockets, socket, time } = await openClient();
  socket().drop();
  time.advance(250);
  await settled();
  socket().welcome();
  time.advance(5_000);
  socket().drop();
  time.advance(250);
  await settled();
  assert.equal(sockets.length, 3);
});

test("4401 ends in 'closed' with unauthorized, for those waiting and all who come, without a loop", async () => {
  const { client, sockets, socket, time } = fakeClient({ token: "wrong" });
  const waiting = chat(client);
  await settled();
  socket().drop(4401, "unauthorized");
  assert.equal((await drain(waiting)).error.code, "unauthorized");
  assert.equal((await drain(chat(client))).error.code, "unauthorized");
  await assert.rejects(client.models(), (error) => PlaitError.isInstance(error));
  time.advance(3_600_000);
  assert.deepEqual([client.state, sockets.length, time.pending], ["closed", 1, 0]);
});

for (const code of [1007, 1009, 4400]) {
  test(`close code ${code} blames this client: no reconnection`, async () => {
    const { client, socket, sockets, time } = await openClient();
    const stream = chat(client);
    socket().drop(code);
    time.advance(600_000);
    const { error } = await drain(stream);
    assert.deepEqual([error.code, error.retryable], ["connection_lost", false]);
    assert.deepEqual([client.state, sockets.length], ["closed", 1]);
  });
}

test("after a flood (4429) the client comes back much later", async () => {
  const { socket, sockets, time } = await openClient();
  socket().drop(4429);
  time.advance(59_999);
  assert.equal(sockets.length, 1);
  time.advance(1);
  await settled();
  assert.equal(sockets.length, 2);
});

test("the token travels as a subprotocol in base64url, and never in the URL", async () => {
  const { client, socket } = fakeClient({ token: async () => "t?>ü" });
  chat(client);
  await settled();
  assert.deepEqual(socket().protocols, ["plait.v1", "plait.token.dD8-w7w"]);
  assert.equal(socket().url, "ws://server.test/v1/ws");
  for (const url of ["ws://a/?token=x", "ws://me:pw@a/"]) {
    assert.throws(() => connect(url, { WebSocket: class {} }), /no credentials in the URL/);
  }
});

test("a token function is asked before each attempt, and its failure fails the attempt", async () => {
  const tokens = ["one"];
  const token = () => tokens.shift() ?? Promise.reject(new Error("signed out"));
  const { client, socket, time } = fakeClient({ token });
  const first = chat(client);
  await settled();
  assert.equal(socket().protocols[1], "plait.token.b25l");
  socket().drop();
  await drain(first);
  const second = chat(client);
  time.advance(1_000);
  await settled();
  const { error } = await drain(second);
  assert.deepEqual([error.code, error.cause.message], ["connection_failed", "signed out"]);
});

test("with reconnect: false a lost connection is closed for good", async () => {
  const { client, socket, sockets, time } = fakeClient({ reconnect: false });
  chat(client);
  await settled();
  socket().welcome();
  socket().drop();
  time.advance(60_000);
  assert.deepEqual([client.state, sockets.length], ["closed", 1]);
  assert.equal((await drain(chat(client))).error.code, "connection_lost");
});

test("close() ends running and later requests, resolves when the socket is gone, leaves no timer", async () => {
  const { client, socket, time } = await openClient();
  const running = chat(client);
  const proof = chat(client).cancel();
  const closed = client.close();
  assert.equal(client.state, "closed");
  assert.equal((await drain(running)).error.code, "connection_closed");
  assert.equal((await drain(chat(client))).error.code, "connection_closed");
  assert.equal((await proof).released, false);
  await assert.rejects(client.models(), { code: "connection_closed" });
  socket().drop(1000);
  await closed;
  await client.close();
  assert.equal(time.pending, 0);
});

test("close() does not wait for a peer that never answers the close", async () => {
  const { client, time } = await openClient();
  const closed = client.close();
  time.advance(1_000);
  await closed;
});

test("close() before, during and between attempts settles everything", async () => {
  const idle = fakeClient();
  await idle.client.close();
  const asking = fakeClient({ token: () => new Promise(() => {}) });
  const stream = chat(asking.client);
  await asking.client.close();
  assert.equal((await drain(stream)).error.code, "connection_closed");
  const between = await openClient();
  between.socket().drop();
  const waiting = chat(between.client);
  await between.client.close();
  assert.equal((await drain(waiting)).error.code, "connection_closed");
  for (const { time } of [idle, asking, between]) assert.equal(time.pending, 0);
});

test("messages of unknown types, and for unknown streams, are ignored", async () => {
  const { client, socket } = await openClient();
  const stream = chat(client);
  socket().say({ type: "confetti", id: stream.id }, { type: "goaway", code: "x", drain_ms: 1 });
  socket().begin(99);
  socket().items(99, "whose?");
  socket().sayBytes(new Uint8Array([1, 9, 0, 0, 99, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
  socket().begin(stream.id);
  socket().done(stream.id);
  assert.equal((await drain(stream)).error, null);
});

for (const [name, text] of Object.entries({
  "is not JSON": "{",
  "has no type": "{}",
  "names no stream": '{"type":"item","seq":1,"data":{}}',
  "is an error without a code": '{"type":"error","id":1}',
})) {
  test(`a server text frame that ${name} closes 4400 and loses the streams`, async () => {
    const { client, socket } = await openClient();
    const stream = chat(client);
    socket().onmessage({ data: text });
    assert.equal(socket().closedWith, 4400);
    assert.equal((await drain(stream)).error.code, "connection_lost");
    assert.equal(client.state, "reconnecting");
  });
}

test("a server of another protocol is refused by name", async () => {
  const { client, socket } = fakeClient();
  const stream = chat(client);
  await settled();
  socket().welcome({ ...WELCOME, protocol: "plait.v2" });
  assert.match((await drain(stream)).error.message, /speaks plait\.v2/);
});

test("a request above the server's limit fails alone, with numbers, instead of closing the socket", async () => {
  const { client, socket } = fakeClient();
  const long = client.llm.chatStream({ messages: [{ role: "user", content: "ü".repeat(300) }] });
  const short = chat(client);
  await settled();
  socket().welcome({ ...WELCOME, limits: { ...WELCOME.limits, max_text_bytes: 500 } });
  const { error } = await drain(long);
  assert.equal(error.code, "invalid_request");
  assert.match(error.message, /has 7\d\d bytes.*at most 500/);
  assert.deepEqual(
    socket().sent.map(({ id }) => id),
    [short.id],
  );
});

test("'state' tells each transition with its reason, until unsubscribed", async () => {
  const { client, socket } = fakeClient();
  const seen = [];
  const off = client.on("state", ({ previous, state, error }) => {
    seen.push([previous, state, error?.code]);
  });
  const stream = chat(client);
  await settled();
  socket().welcome();
  socket().drop();
  off();
  void client.close();
  await drain(stream);
  assert.deepEqual(seen, [
    ["idle", "connecting", undefined],
    ["connecting", "open", undefined],
    ["open", "reconnecting", "connection_lost"],
  ]);
});

test("'frame' tells every frame in both directions, as it was on the wire", async () => {
  const { client, socket, time } = await openClient();
  const frames = [];
  client.on("frame", (frame) => frames.push(frame));
  time.advance(5);
  const stream = chat(client);
  socket().say({ type: "accepted", id: stream.id, phase: "queued", position: 0, eta_ms: 7 });
  socket().say({ type: "pong", n: 1 });
  socket().sayBytes(new Uint8Array([1, 1, 2, 0, 9, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0xff]));
  const [open, accepted, pong, binary] = frames;
  assert.deepEqual(
    [open.direction, open.type, open.streamId, open.time],
    ["out", "open", stream.id, 5],
  );
  assert.equal(open.bytes, JSON.stringify(open.message).length);
  assert.deepEqual([accepted.direction, accepted.message.eta_ms], ["in", 7]);
  assert.equal(pong.streamId, null);
  assert.deepEqual(binary.header, { kind: 1, flags: 2, id: 9, seq: 5, aux: 6 });
  assert.deepEqual([binary.type, binary.bytes, binary.streamId], ["binary", 17, 9]);
});

test("there is no other event, and asking for one says which there are", () => {
  assert.throws(() => fakeClient().client.on("open", () => {}), /there are: state, frame/);
});

test("connect() without any WebSocket class says what to install", {
  skip: !!globalThis.WebSocket,
}, () => {
  assert.throws(() => connect("ws://a"), /npm install ws/);
});

test("connect() takes http URLs and fills in the path; other schemes are refused", async () => {
  const seen = [];
  class Socket {
    constructor(url) {
      seen.push(url);
    }
    close() {}
  }
  const clients = ["http://a:1", "https://a/", "ws://a/own#x", undefined].map((url) =>
    connect(url, { WebSocket: Socket }),
  );
  for (const client of clients) void chat(client);
  await settled();
  await Promise.all(clients.map((client) => client.close()));
  assert.deepEqual(seen, [
    "ws://a:1/v1/ws",
    "wss://a/v1/ws",
    "ws://a/own",
    "ws://127.0.0.1:8760/v1/ws",
  ]);
  assert.throws(() => connect("ftp://a", { WebSocket: Socket }), /not ftp:/);
});
