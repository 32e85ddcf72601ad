import { connect } from "../../sdk/index.js";

const plait = connect();
const stop = new AbortController();

const speech = plait.tts.synthesize({
  text: "I begin at once, and I stop at once.", // or a chat stream, as it is written
  voice: "af_heart",
  signal: stop.signal, // stop.abort() is silence here, and in the model
});
await speech.play().finished; // or read it: for await (const { samples } of speech) …
console.log(await speech.done); // how it ended, in the server's words
