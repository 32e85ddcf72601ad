import { connect } from "../../sdk/index.js";

const plait = connect();
const stop = new AbortController();

const answer = plait.llm.chatStream({
  messages: [{ role: "user", content: "Why is the sky blue?" }],
  signal: stop.signal, // stop.abort() ends it here, and in the model
});
for await (const { content } of answer) console.log(content);
console.log(await answer.done); // how it ended, in the server's words
