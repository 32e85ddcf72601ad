/** The AI SDK's useChat over Plait, for e2e/test_react.py. `?server=` is Plait's address. */

import { useChat } from "@ai-sdk/react";
import { connect } from "plait";
import { PlaitChatTransport } from "plait/ai";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

const client = connect(new URLSearchParams(location.search).get("server"));
window.sent = [];
client.on("frame", ({ direction, type }) => {
  if (direction === "out") window.sent.push(type);
});
const transport = new PlaitChatTransport({ client, system: "Be short." });

function App() {
  const { messages, sendMessage, status, stop, error } = useChat({ transport });
  function submit(event) {
    event.preventDefault();
    sendMessage({ text: event.currentTarget.elements.prompt.value });
  }
  return (
    <section>
      <form onSubmit={submit}>
        <input name="prompt" aria-label="Prompt" />
      </form>
      <button type="button" onClick={stop}>
        stop
      </button>
      <output data-testid="status">{status}</output>
      <output data-testid="error">{error?.code}</output>
      <ol data-testid="messages">
        {messages.map(({ id, role, parts, metadata }) => (
          <li key={id}>
            {role}: {parts.map(({ text }) => text)} {metadata?.usage?.completionTokens}
          </li>
        ))}
      </ol>
    </section>
  );
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
