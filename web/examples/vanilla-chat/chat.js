// A chat over one connection, without a framework. To run it:
//   PLAIT_ALLOWED_ORIGINS=http://localhost:8000 plait serve      (a page from elsewhere has to be let in)
//   python3 -m http.server --directory web 8000
// and open http://localhost:8000/examples/vanilla-chat/

import { connect } from "../../sdk/index.js"; // with npm: from "plait"

const server = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:8760";
const { llm } = connect(server);
const [log, form] = document.querySelectorAll("#log, form");
const { prompt, button, note } = form.elements;
const messages = [];
let stream = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (stream) stream.cancel();
  else if (prompt.value.trim()) ask(prompt.value.trim());
});

async function ask(content) {
  messages.push({ role: "user", content });
  show("user", content);
  const answer = show("assistant", "");
  stream = llm.chatStream({ messages });
  [prompt.value, note.value, button.textContent] = ["", "", "Stop"];
  try {
    for await (const delta of stream) answer.append(delta.content);
  } catch (error) {
    note.value = error.message; // what has arrived stays
  }
  const end = await stream.done; // with the server's proof, when it was stopped
  if (end.state === "cancelled")
    note.value = end.released ? `Stopped in ${end.stopMs} ms` : "Stopped";
  messages.push({ role: "assistant", content: answer.textContent });
  [stream, button.textContent] = [null, "Send"];
}

const show = (className, textContent) =>
  Object.assign(log.appendChild(document.createElement("p")), { className, textContent });
