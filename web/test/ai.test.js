/** The AI SDK itself, over Plait's transport and a peer in memory. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { AbstractChat, readUIMessageStream } from "ai";
import { PlaitChatTransport } from "plait/ai";
import { chatMessages } from "../ai/messages.js";
import { openClient, settled } from "./support/peer.js";

const text = (words) => ({ type: "text", text: words });
const HI = { id: "u1", role: "user", parts: [text("hi")] };

/** The AI SDK's chat without a framework around it. */
class Chat extends AbstractChat {
  constructor(init) {
    super({
      ...init,
      state: {
        status: "ready",
        error: undefined,
        messages: [],
        pushMessage(message) {
          this.messages = [...this.messages, message];
        },
        popMessage() {
          this.messages = this.messages.slice(0, -1);
        },
        replaceMessage(index, message) {
          this.messages = this.messages.with(index, structuredClone(message));
        },
        snapshot: (value) => structuredClone(value),
      },
    });
  }
}

async function openChat(options, init) {
  const { client, socket } = await openClient();
  const transport = new PlaitChatTransport({ client, ...options });
  return { transport, chat: new Chat({ transport, ...init }), socket: socket() };
}

/** Sends, and waits until the request is on the wire. */
async function ask(chat, socket, body) {
  const over = chat.sendMessage({ text: "hi" }, { body });
  await settled();
  const { id, params } = socket.sent.findLast(({ type }) => type === "open");
  return { over, id, params };
}

test("text, usage, model and the reason of the end reach the message", async () => {
  let finished;
  const { chat, socket } = await openChat(
    { temperature: 0.5, maxTokens: 9, system: "Be short." },
    { onFinish: (event) => (finished = event) },
  );
  const { over, id, params } = await ask(chat, socket, { temperature: 0 });
  socket.begin(id);
  socket.items(id, "Hel", "lo.");
  socket.done(id);
  await over;

  assert.deepEqual(params, {
    temperature: 0,
    max_tokens: 9,
    messages: [
      { role: "system", content: "Be short." },
      { role: "user", content: "hi" },
    ],
  });
  const { parts, metadata } = chat.lastMessage;
  assert.deepEqual(parts.map(({ type, text, state }) => [type, text, state]).at(-1), [
    "text",
    "Hello.",
    "done",
  ]);
  assert.equal(metadata.usage.completionTokens, 2);
  assert.equal(metadata.model, "smol");
  assert.equal(finished.finishReason, "stop");
  assert.equal(chat.status, "ready");
});

test("stop() is a cancel on the wire, and the text so far stays", async () => {
  const { chat, socket } = await openChat();
  const { over, id } = await ask(chat, socket);
  socket.begin(id);
  socket.items(id, "Hel");
  await settled();

  const stopped = chat.stop();
  assert.equal(socket.types(id).at(-1), "cancel");
  socket.cancelled(id);
  await Promise.all([stopped, over]);

  assert.equal(chat.status, "ready");
  assert.equal(chat.lastMessage.parts.at(-1).text, "Hel");
});

test("a lost connection is the chat's typed error, and the text so far stays", async () => {
  const { chat, socket } = await openChat();
  const { over, id } = await ask(chat, socket);
  socket.begin(id);
  socket.items(id, "Hel");
  await settled();

  socket.drop();
  await over;

  assert.equal(chat.status, "error");
  assert.deepEqual([chat.error.code, chat.error.retryable], ["connection_lost", true]);
  assert.equal(chat.lastMessage.parts.at(-1).text, "Hel");
});

function sayCall(socket, id, entry) {
  const seq = (socket.seqs?.[id] ?? 0) + 1;
  socket.seqs = { ...socket.seqs, [id]: seq };
  socket.say({ type: "item", id, seq, data: { tool_calls: [{ index: 0, ...entry }] } });
}

test("a call of a tool is answered by the page, and goes on with its result", async () => {
  const called = [];
  const { chat, socket } = await openChat(
    {},
    { onToolCall: ({ toolCall }) => called.push(toolCall) },
  );
  const { over, id } = await ask(chat, socket);
  socket.begin(id);
  socket.items(id, "Let me see. ");
  sayCall(socket, id, { id: "c1", type: "function", function: { name: "time", arguments: "" } });
  sayCall(socket, id, { function: { arguments: '{"zone":' } });
  const whole = { name: "time", arguments: '{"zone":"utc"}' };
  sayCall(socket, id, { id: "c1", type: "function", function: whole, complete: true });
  socket.done(id);
  await over;

  assert.deepEqual(called[0].input, { zone: "utc" });
  await chat.addToolOutput({ tool: "time", toolCallId: "c1", output: { hour: 12 } });
  const next = await ask(chat, socket);
  assert.deepEqual(next.params.messages.slice(1, 3), [
    {
      role: "assistant",
      content: "Let me see. ",
      tool_calls: [{ id: "c1", type: "function", function: whole }],
    },
    { role: "tool", tool_call_id: "c1", content: '{"hour":12}' },
  ]);
  await Promise.all([chat.stop(), next.over]);
});

test("arguments that are no JSON are an error of that call alone", async () => {
  const { chat, socket } = await openChat();
  const { over, id } = await ask(chat, socket);
  socket.begin(id);
  const broken = { name: "time", arguments: "{" };
  sayCall(socket, id, { id: "c1", type: "function", function: broken, complete: true });
  socket.done(id);
  await over;

  const part = chat.lastMessage.parts.at(-1);
  assert.deepEqual([part.type, part.state, part.toolCallId], ["tool-time", "output-error", "c1"]);
  assert.match(part.errorText, /no JSON/);
});

test("the SDK's own reader understands the stream", async () => {
  const { transport, socket } = await openChat();
  const stream = await transport.sendMessages({ messages: [HI] });
  socket.begin(1);
  socket.items(1, "Hel");
  const texts = [];
  for await (const message of readUIMessageStream({ stream })) {
    texts.push(message.parts.findLast(({ type }) => type === "text")?.text);
    if (texts.at(-1) === "Hel") socket.done(1);
  }

  assert.equal(texts.at(-1), "Hel");
  assert.equal(await transport.reconnectToStream(), null);
});

test("cancelling the stream is on the wire in the same tick, also while a read waits", async () => {
  const { transport, socket } = await openChat();
  const stream = await transport.sendMessages({ messages: [HI] });
  const reader = stream.getReader();
  socket.begin(1);
  await reader.read();
  await reader.read();
  const waits = reader.read();
  await settled();

  const left = reader.cancel();
  assert.equal(socket.types(1).at(-1), "cancel");
  socket.cancelled(1);

  await left;
  assert.equal((await waits).done, true);
});

test("a signal that is aborted already sends nothing", async () => {
  const { transport, socket } = await openChat();
  const before = socket.sent.length;

  const stream = await transport.sendMessages({ messages: [HI], abortSignal: AbortSignal.abort() });

  await assert.rejects(
    async () => {
      for await (const chunk of stream) assert.ok(["start", "start-step"].includes(chunk.type));
    },
    { name: "AbortError" },
  );
  assert.equal(socket.sent.length, before);
});

test("an item is acknowledged when it is read, not before", async () => {
  const { transport, socket } = await openChat({ window: 4 });
  const stream = await transport.sendMessages({ messages: [HI] });
  socket.begin(1);
  socket.items(1, "a", "b", "c", "d");
  await settled();
  assert.ok(!socket.types(1).includes("ack"));

  const reader = stream.getReader();
  for (let i = 0; i < 5; i += 1) await reader.read();

  assert.ok(socket.types(1).includes("ack"));
  await reader.cancel();
});

test("of a conversation the model is told text, answered calls and their results", () => {
  const tool = (state, more) => ({
    type: "tool-time",
    toolCallId: "c1",
    input: {},
    state,
    ...more,
  });
  const said = chatMessages([
    { role: "system", parts: [text("Be "), text("short.")] },
    HI,
    {
      role: "assistant",
      parts: [
        { type: "step-start" },
        { type: "reasoning", text: "hm" },
        tool("output-error", { errorText: "no clock" }),
        tool("input-available", { toolCallId: "c2" }),
        { type: "step-start" },
        { ...tool("output-denied"), type: "dynamic-tool", toolName: "ask" },
        text("Sorry."),
      ],
    },
    { role: "assistant", parts: [] },
  ]);

  const call = (name) => ({ id: "c1", type: "function", function: { name, arguments: "{}" } });
  assert.deepEqual(said, [
    { role: "system", content: "Be short." },
    { role: "user", content: "hi" },
    { role: "assistant", content: null, tool_calls: [call("time")] },
    { role: "tool", tool_call_id: "c1", content: "no clock" },
    { role: "assistant", content: "Sorry.", tool_calls: [call("ask")] },
    { role: "tool", tool_call_id: "c1", content: "The user did not allow this call." },
  ]);
});

test("a file is refused rather than passed over", async () => {
  const { chat, socket } = await openChat();
  const before = socket.sent.length;
  const file = { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA" };

  await chat.sendMessage({ parts: [text("what is it?"), file] });

  assert.equal(chat.error.param, "messages");
  assert.match(chat.error.message, /image\/png/);
  assert.equal(socket.sent.length, before);
});
