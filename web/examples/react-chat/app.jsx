// The same chat with React. To run it, in this folder:
//   npm install plait react react-dom esbuild
//   npx esbuild app.jsx --bundle --format=esm --jsx=automatic --outfile=app.bundle.js
//   PLAIT_ALLOWED_ORIGINS=http://localhost:8000 plait serve      (a page from elsewhere has to be let in)
//   python3 -m http.server --directory .. 8000
// and open http://localhost:8000/react-chat/

import { PlaitProvider, useStreamedChat } from "plait/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const server = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:8760";

function Chat() {
  const chat = useStreamedChat({ maxTokens: 1024 });
  return (
    <main>
      <h1>Chat</h1>
      <div role="log" aria-label="Conversation">
        {chat.messages.map(({ role, content }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages are only ever added
          <p key={index} className={role}>
            {content}
          </p>
        ))}
      </div>
      <Composer chat={chat} />
    </main>
  );
}

function Composer({ chat }) {
  const [prompt, setPrompt] = useState("");
  const [proof, setProof] = useState(null);

  async function submit(event) {
    event.preventDefault();
    if (chat.isStreaming) {
      setProof(await chat.cancel());
    } else if (prompt.trim()) {
      setProof(null);
      setPrompt("");
      chat.send(prompt.trim());
    }
  }

  return (
    <form onSubmit={submit}>
      <input
        aria-label="Message"
        placeholder="Ask something"
        autoComplete="off"
        value={prompt}
        onChange={(event) => setPrompt(event.target.value)}
      />
      <button type="submit">{chat.isStreaming ? "Stop" : "Send"}</button>
      {chat.status === "error" && (
        <p role="alert">
          {chat.error.message}{" "}
          {chat.error.retryable && (
            <button type="button" onClick={chat.retry}>
              Try again
            </button>
          )}
        </p>
      )}
      <div role="status">{statusOf(chat, proof)}</div>
    </form>
  );
}

function statusOf({ status, queue, usage }, proof) {
  if (status === "queued") return queue ? `Waiting, ${queue.position} before you` : "Waiting";
  if (status === "cancelled" && proof?.released) return `Stopped in ${Math.round(proof.stopMs)} ms`;
  if (status === "completed" && usage) return `${usage.completionTokens} tokens`;
  return "";
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <PlaitProvider url={server}>
      <Chat />
    </PlaitProvider>
  </StrictMode>,
);
