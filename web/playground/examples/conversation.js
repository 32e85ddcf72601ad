import { converse, MICROPHONE } from "../../sdk/conversation.js";
import { connect } from "../../sdk/index.js";

const talk = converse(connect(), {
  microphone: await navigator.mediaDevices.getUserMedia({ audio: MICROPHONE }),
  messages: [{ role: "system", content: "Answer in one short sentence." }],
});
talk.on("turn", ({ state, said, written }) => console.log(state, said, "→", written));
talk.on("turn", ({ interruption }) => interruption && console.log("heard:", interruption.heard));
addEventListener("keydown", ({ key }) => key === "Escape" && talk.end(), { once: true });
await talk.finished; // until you press Esc; talking into an answer stops speech and chat at once
console.log("ended", talk.messages);
