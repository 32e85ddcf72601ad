/**
 * A page that uses every hook, for e2e/test_react.py. `?server=` is Plait's address; with `&prompt=` the chat asks that
 * as soon as it is there. What a test wants to know stands in the page; what went out on the wire in `window.sent`.
 */

import { connect } from "plait";
import { PlaitProvider, useLive, useSpeech, useStreamedChat, useTranscription } from "plait/react";
import { StrictMode, useEffect, useState, useSyncExternalStore, version } from "react";
import { createRoot } from "react-dom/client";

const asked = new URLSearchParams(location.search);
const server = asked.get("server");
// Given to all but the first chat, which has the provider's own; its frames are looked at.
const client = connect(server);
window.sent = [];
client.on("frame", ({ direction, type }) => {
  if (direction === "out" && type !== "binary") window.sent.push(type);
});

/** An answer of words that are sentences, for longer than anybody listens. */
const SENTENCES = "tokens=100000 step_ms=20 say=word.";

const onState = (listener) => client.on("state", listener);

function App() {
  const [shown, setShown] = useState("chat");
  const connection = useSyncExternalStore(onState, () => client.state);
  return (
    <PlaitProvider url={server}>
      <h1>React {version}</h1>
      <output data-testid="connection">{connection}</output>
      {["chat", "given", "ears", "voice", "nothing"].map((name) => (
        <button key={name} type="button" onClick={() => setShown(name)}>
          show {name}
        </button>
      ))}
      {shown === "chat" && <Chat prompt={asked.get("prompt")} />}
      {shown === "given" && <Chat client={client} />}
      {shown === "ears" && <Ears />}
      {shown === "voice" && <Voice />}
    </PlaitProvider>
  );
}

function Chat({ client, prompt }) {
  const chat = useStreamedChat({ client });
  const { send, cancel, retry } = chat;
  const [proof, setProof] = useState(null);
  useEffect(() => {
    if (prompt) send(prompt);
  }, [prompt, send]);

  function stop() {
    const before = window.sent.length;
    cancel().then(setProof);
    window.sentInTheTick = window.sent.slice(before);
  }

  return (
    <section>
      <form onSubmit={(event) => submit(event, send)}>
        <input name="prompt" aria-label="Prompt" />
      </form>
      <button type="button" onClick={stop}>
        stop
      </button>
      <button type="button" onClick={retry}>
        retry
      </button>
      <Shown of={chat} names={["status", "text", "tokens"]} />
      <output data-testid="error">{chat.error?.code}</output>
      <output data-testid="usage">{chat.usage?.completionTokens}</output>
      <output data-testid="released">{String(proof?.released)}</output>
      <ol data-testid="messages">
        {chat.messages.map(({ role, content }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages are only ever added
          <li key={index}>
            {role}: {content}
          </li>
        ))}
      </ol>
    </section>
  );
}

function submit(event, send) {
  event.preventDefault();
  send(event.currentTarget.elements.prompt.value);
}

function Ears() {
  const heard = useTranscription({ client, workletUrl: "/sdk/capture-worklet.js" });
  const record = async () =>
    heard.start(await navigator.mediaDevices.getUserMedia({ audio: true }));
  return (
    <section>
      <button type="button" onClick={record}>
        record
      </button>
      <input
        type="file"
        aria-label="File"
        onChange={({ target }) => heard.start(target.files[0])}
      />
      <button type="button" onClick={heard.stop}>
        done
      </button>
      <Shown of={heard} names={["status", "text", "speaking", "input"]} />
      <Loudest level={heard.level} />
    </section>
  );
}

/** The loudest so far: what is loud now may be over when somebody looks. */
function Loudest({ level }) {
  const { peak } = useLive(level);
  const [most, setMost] = useState(0);
  if (peak > most) setMost(peak);
  return <output data-testid="loudest">{most.toFixed(2)}</output>;
}

function Voice() {
  const speech = useSpeech({ client, workletUrl: "/sdk/playout-worklet.js", marks: true });
  const heardMs = useLive(speech.heardMs);
  const { send } = useStreamedChat({ client, onAnswer: (answer) => speech.speak(answer) });
  const chat = (content) => client.llm.chatStream({ messages: [{ role: "user", content }] });
  return (
    <section>
      <button type="button" onClick={() => speech.speak("One two three.")}>
        speak
      </button>
      <button type="button" onClick={() => speech.speak(chat(SENTENCES))}>
        speak chat
      </button>
      <button type="button" onClick={() => send(SENTENCES)}>
        answer aloud
      </button>
      <button type="button" onClick={() => speech.stop()}>
        silence
      </button>
      <Shown of={speech} names={["state", "heard"]} />
      <output data-testid="heard-ms">{Math.round(heardMs)}</output>
    </section>
  );
}

function Shown({ of, names }) {
  return names.map((name) => (
    <output key={name} data-testid={name}>
      {String(of[name] ?? "")}
    </output>
  ));
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
