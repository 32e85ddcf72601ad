import { connect } from "../../sdk/index.js";

const plait = connect();
const stop = new AbortController();

const heard = plait.transcribe.live({
  source: await navigator.mediaDevices.getUserMedia({ audio: true }), // or a File, or samples
  signal: stop.signal, // stop.abort() ends it here, and in the model
});
setTimeout(() => heard.stopInput(), 5_000); // enough said: all of it becomes final
for await (const { text, isFinal } of heard) console.log(isFinal ? text : `${text} …`);
console.log(await heard.done); // how it ended, in the server's words
