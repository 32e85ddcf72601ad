import { connect } from "../../sdk/index.js";

const plait = connect();
const unwatch = plait.on("frame", ({ direction, streamId, type, bytes, message, header }) => {
  const arrow = direction === "out" ? "→" : "←"; // message: JSON; header: of a binary frame
  console.log(arrow, streamId ?? "connection", type, bytes, message ?? header);
});

const answer = plait.llm.chatStream({ messages: [{ role: "user", content: "Hello." }] });
for await (const _ of answer) break; // leaving early is a cancel, as the frames show
console.log(await answer.done); // how it ended, in the server's words
unwatch();
