/** Over real sockets: what a fake cannot show. The server is `ws` speaking plait.v1 by script. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket, WebSocketServer } from "ws";
import { encodeBinary } from "../sdk/binary.js";
import { connect } from "../sdk/index.js";
import { drain, MESSAGES, WELCOME } from "./support/peer.js";

/** @returns a listening server; `on[type]` answers a message, `received` has all of them */
async function scriptedServer(t, answers = {}, { onConnection } = {}) {
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    handleProtocols: (offered) => offered.has("plait.v1") && "plait.v1",
  });
  const received = [];
  const sockets = [];
  server.on("connection", (socket, request) => {
    sockets.push(socket);
    const say = (...messages) => {
      for (const message of messages) socket.send(JSON.stringify(message));
    };
    socket.on("message", (data, isBinary) => {
      const message = isBinary ? { type: "audio_in", data } : JSON.parse(data);
      received.push(message);
      answers[message.type]?.(message, say, socket);
    });
    if (onConnection) onConnection(socket, request);
    else say(WELCOME);
  });
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.terminate();
    server.close();
  });
  return { url: `ws://127.0.0.1:${server.address().port}`, received, sockets };
}

function clientOf(t, url, options = {}) {
  const client = connect(url, { WebSocket, ...options });
  t.after(() => client.close());
  return client;
}

const item = (id, seq, content) => ({ type: "item", id, seq, data: { content } });
const USAGE = { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 2 };

test("a chat over a real socket", { timeout: 20_000 }, async (t) => {
  const open = ({ id }, say) =>
    say(
      { type: "accepted", id, phase: "queued", position: 0 },
      { type: "started", id, model: "smol" },
      item(id, 1, "Hel"),
      item(id, 2, "lo 👋"),
      { type: "done", id, seq: 2, finish_reason: "stop", usage: USAGE, timing: {} },
    );
  const { url } = await scriptedServer(t, { open });
  const client = clientOf(t, url);
  assert.equal(await client.llm.chat({ messages: MESSAGES }), "Hello 👋");
});

for (const [how, kill] of Object.entries({
  "is reset": (socket) => socket._socket.resetAndDestroy(),
  "is closed in order": (socket) => socket.close(1012),
})) {
  test(`K09: a socket that ${how} in mid-stream throws, keeps the partial, is never done`, {
    timeout: 20_000,
  }, async (t) => {
    const open = ({ id }, say, socket) => {
      say({ type: "accepted", id, phase: "queued", position: 0 }, { type: "started", id });
      say(item(id, 1, "cut"));
      socket.once("pong", () => kill(socket));
      socket.ping();
    };
    const { url } = await scriptedServer(t, { open });
    const client = clientOf(t, url);
    const { items, error } = await drain(client.llm.chatStream({ messages: MESSAGES }));
    assert.deepEqual(items, [{ content: "cut", done: false }]);
    assert.equal(error.code, "connection_lost");
  });
}

test("after a lost socket the client comes back and repeats nothing", {
  timeout: 20_000,
}, async (t) => {
  const open = (_, __, socket) => socket.terminate();
  const { url, received, sockets } = await scriptedServer(t, { open });
  const client = clientOf(t, url);
  await client.models();
  const back = new Promise((resolve) => {
    client.on("state", ({ state }) => state === "open" && resolve());
  });
  const lost = client.llm.chatStream({ messages: MESSAGES });
  assert.equal((await drain(lost)).error.code, "connection_lost");
  await back;
  assert.equal(sockets.length, 2);
  assert.equal(received.filter(({ type }) => type === "open").length, 1);
});

test("leaving the loop reaches the server as a cancel, and the proof comes back", {
  timeout: 20_000,
}, async (t) => {
  const answers = {
    open: ({ id }, say) => say({ type: "started", id }, item(id, 1, "a"), item(id, 2, "b")),
    cancel: ({ id }, say) =>
      say({
        type: "cancelled",
        id,
        seq: 2,
        by: "client",
        released: true,
        stop_ms: 3,
        wasted: { tokens: 0 },
        usage: USAGE,
      }),
  };
  const { url } = await scriptedServer(t, answers);
  const stream = clientOf(t, url).llm.chatStream({ messages: MESSAGES });
  for await (const _ of stream) break;
  const end = await stream.done;
  assert.deepEqual([end.state, end.released, end.stopMs], ["cancelled", true, 3]);
});

test("audio over a real socket: all of it, in order, and never beyond the credit", {
  timeout: 20_000,
}, async (t) => {
  const CREDIT_BYTES = 50_000;
  const samples = Int16Array.from({ length: 400_000 }, (_, i) => i % 30_000);
  const heard = [];
  let bytes = 0;
  let beyond = 0;
  const answers = {
    open: ({ id }, say) =>
      say(
        { type: "accepted", id, phase: "queued", window_bytes: CREDIT_BYTES },
        { type: "started", id },
      ),
    audio_in: ({ data }, say) => {
      const acked = bytes;
      bytes += data.length - 16;
      beyond = Math.max(beyond, bytes - acked - CREDIT_BYTES);
      heard.push(data.subarray(16));
      say({ type: "input_ack", id: data.readUInt32LE(4), bytes, window_bytes: CREDIT_BYTES });
    },
    end: ({ id }, say) => say({ type: "done", id, seq: 0, finish_reason: "stop" }),
  };
  const { url } = await scriptedServer(t, answers);
  const { transcribe } = clientOf(t, url);
  const stream = transcribe.live({ source: samples, sampleRate: 16_000 });
  assert.deepEqual(await stream.collect(), []);
  assert.ok(beyond <= 0);
  assert.ok(Buffer.concat(heard).equals(Buffer.from(samples.buffer)));
  assert.equal(stream.sentMs, 25_000);
});

test("texts over a real socket: a vector for each, in order, and never beyond the credit", {
  timeout: 20_000,
}, async (t) => {
  const CREDIT_BYTES = 20_000;
  const COUNT = 20_000;
  const DIMS = 8;
  let bytes = 0;
  let beyond = 0;
  let seq = 0;
  let answered = 0;
  const answers = {
    open: ({ id }, say) =>
      say(
        { type: "accepted", id, phase: "queued", window_bytes: CREDIT_BYTES },
        { type: "started", id, format: { encoding: "f32", dims: DIMS } },
      ),
    input: ({ id, texts }, say, socket) => {
      const acked = bytes;
      for (const text of texts) bytes += Buffer.byteLength(text) + 16;
      beyond = Math.max(beyond, bytes - acked - CREDIT_BYTES);
      const rows = Float32Array.from({ length: texts.length * DIMS }, (_, i) => answered + i);
      seq += 1;
      socket.send(rowsFrame(id, seq, answered, rows));
      answered += texts.length;
      say({ type: "input_ack", id, bytes, window_bytes: CREDIT_BYTES });
    },
    end: ({ id }, say) => say({ type: "done", id, seq, finish_reason: "stop" }),
  };
  const { url } = await scriptedServer(t, answers);
  function* texts() {
    for (let i = 0; i < COUNT; i++) yield `text ${i}`;
  }
  const { embed } = clientOf(t, url);
  let next = 0;
  for await (const { index, embedding } of embed.create({ texts: texts(), stream: true })) {
    assert.deepEqual([index, embedding.length], [next, DIMS]);
    next += 1;
  }
  assert.equal(next, COUNT);
  assert.ok(beyond <= 0);
});

/** @returns a frame of float32 rows, as the server sends them */
function rowsFrame(id, seq, aux, rows) {
  const payload = new Uint8Array(rows.buffer);
  return encodeBinary({ kind: 3, flags: 0, id, seq, aux }, payload);
}

test("a socket that nobody reads is not filled: the source waits", {
  timeout: 20_000,
}, async (t) => {
  const LIMIT_BYTES = 131_072;
  let sendBehind = 0;
  let own;
  class Watched extends WebSocket {
    send(data) {
      own = this;
      if (typeof data !== "string") sendBehind = Math.max(sendBehind, this.bufferedAmount);
      super.send(data);
    }
  }
  const answers = {
    open: ({ id }, say, socket) => {
      say({ type: "accepted", id, phase: "queued", window_bytes: 1e9 }, { type: "started", id });
      socket.pause();
    },
  };
  const { url, sockets } = await scriptedServer(t, answers);
  function* noise() {
    for (;;) yield new Uint8Array(32_768);
  }
  const client = clientOf(t, url, { WebSocket: Watched });
  const stream = client.transcribe.live({ source: noise(), sampleRate: 16_000 });
  await client.models();
  // What the kernel holds is taken, and then no more.
  while (own.bufferedAmount <= LIMIT_BYTES) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(sendBehind <= LIMIT_BYTES, `sent on with ${sendBehind} bytes waiting`);
  stream.cancel();
  sockets[0].resume();
});

test("nobody listens: the request fails with connection_failed and its cause", {
  timeout: 20_000,
}, async (t) => {
  const client = clientOf(t, "ws://127.0.0.1:9");
  await assert.rejects(client.llm.chat({ messages: MESSAGES }), (error) => {
    assert.match(String(error.cause?.message), /ECONNREFUSED/);
    return error.code === "connection_failed";
  });
});

test("a refused token (4401 after accepting) is unauthorized", { timeout: 20_000 }, async (t) => {
  const offered = [];
  const onConnection = (socket, request) => {
    offered.push(request.headers["sec-websocket-protocol"], request.url);
    socket.close(4401, "unauthorized");
  };
  const { url } = await scriptedServer(t, {}, { onConnection });
  const client = clientOf(t, url, { token: "ticket" });
  await assert.rejects(client.models(), { code: "unauthorized" });
  assert.deepEqual(offered, ["plait.v1,plait.token.dGlja2V0", "/v1/ws"]);
  assert.equal(client.state, "closed");
});

test("a token refused by HTTP 401 is unauthorized too, without a loop", {
  timeout: 20_000,
}, async (t) => {
  const server = createServer();
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const client = clientOf(t, `ws://127.0.0.1:${server.address().port}`, { token: "wrong" });
  await assert.rejects(client.models(), { code: "unauthorized" });
  assert.equal(client.state, "closed");
});

test("a Node process ends by itself after close(), and after a failed request", {
  timeout: 20_000,
}, async (t) => {
  const { url } = await scriptedServer(t);
  const script = `
    import { WebSocket } from "ws";
    import { connect } from "./sdk/index.js";
    const client = connect(${JSON.stringify(url)}, { WebSocket });
    await client.models();
    await client.close();
    await connect("ws://127.0.0.1:9", { WebSocket }).models().catch(() => {});
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: ["ignore", "inherit", "inherit"],
  });
  t.after(() => child.kill());
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
});
