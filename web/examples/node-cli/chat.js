// A chat in the terminal: streams the answer to stdout; Ctrl+C stops it and prints the server's receipt to stderr.
//   plait serve
//   node web/examples/node-cli/chat.js "Why is the sky blue?"
// PLAIT_URL names another server, PLAIT_TOKEN a token for it. Node before 22 needs ws: npm install ws

import process from "node:process";
import { connect } from "../../sdk/index.js"; // with npm: from "plait"

const WebSocket = globalThis.WebSocket ?? (await import("ws")).WebSocket;
const { PLAIT_URL, PLAIT_TOKEN } = process.env;
const prompt = process.argv.slice(2).join(" ");
if (!prompt) {
  console.error('What do you want to know? node chat.js "Why is the sky blue?"');
  process.exit(2);
}

const client = connect(PLAIT_URL, { WebSocket, token: PLAIT_TOKEN });
const stream = client.llm.chatStream({ messages: [{ role: "user", content: prompt }] });
process.once("SIGINT", () => stream.cancel()); // a second Ctrl+C ends the process

try {
  for await (const { content } of stream) process.stdout.write(content);
} catch (error) {
  if (error.name !== "AbortError") console.error(`\n${error.name}: ${error.message}`);
}

const end = await stream.done;
process.stdout.write("\n");
if (end.state === "cancelled") console.error(receiptOf(end));
process.exitCode = { completed: 0, cancelled: 130, errored: 1 }[end.state];
await client.close();

function receiptOf({ stopMs, released, usage, wasted }) {
  const slot = released ? `stopped in ${stopMs} ms, slot released` : "stopped, not confirmed";
  return `${slot}; ${usage?.completionTokens ?? 0} tokens, ${wasted?.tokens ?? 0} of them wasted`;
}
