import { connect } from "../../sdk/index.js";

const plait = connect();
const stop = new AbortController();

const vectors = plait.embed.create({
  texts: ["It rained all night.", "There was heavy rain."], // or any iterable, of any length
  stream: true, // without it: await all of them, as an array
  signal: stop.signal, // stop.abort() ends it here, and in the model
});
for await (const { index, embedding, error } of vectors) console.log(index, error ?? embedding);
console.log(await vectors.done); // how it ended, in the server's words
