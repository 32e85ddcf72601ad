/** Checked by tsc, never run: the package as applications write it down, through its own exports. */

import { useChat } from "@ai-sdk/react";
import type { ChatTransport, UIMessage } from "ai";
import type { Plait } from "plait";
import { PlaitChatTransport, type PlaitMetadata } from "plait/ai";
import { connect } from "plait/chat";
import { PlaitProvider, useLive, useSpeech, useStreamedChat, useTranscription } from "plait/react";

type Told = UIMessage<PlaitMetadata>;

export const transport: ChatTransport<Told> = new PlaitChatTransport({ temperature: 0 });

export function Chat({ client }: { client: Plait }) {
  const { messages, stop, error } = useChat<Told>({
    transport: new PlaitChatTransport({ client }),
  });
  const words = messages.at(-1)?.metadata?.usage?.completionTokens;
  return (
    <button type="button" onClick={stop} title={error?.message}>
      {words}
    </button>
  );
}

/** Chat needs no more than a client of chat, from either hook. */
const small = connect();

export function SmallChat() {
  useChat<Told>({ transport: new PlaitChatTransport({ client: small }) });
  // @ts-expect-error it cannot speak
  useSpeech({ client: small });
  return useStreamedChat({ client: small }).text;
}

export function Voice({ microphone }: { microphone: MediaStream }) {
  const speech = useSpeech({ voice: "af_heart" });
  const chat = useStreamedChat({ model: "any", maxTokens: 10, onAnswer: speech.speak });
  const heard = useTranscription({ language: "en" });
  const { rms } = useLive(heard.level);
  const played: number = useLive(speech.heardMs);
  return (
    <button
      type="button"
      onClick={() => heard.start(microphone)}
      onBlur={chat.retry}
      onDrop={() => chat.cancel()}
    >
      {chat.messages.map(({ content }) => content)} {heard.text} {rms} {played}{" "}
      {chat.queue?.position}
    </button>
  );
}

export function App({ client }: { client: Plait }) {
  return (
    <PlaitProvider client={client}>
      <PlaitProvider url="https://plait.example" token={async () => "ticket"}>
        <Chat client={client} />
      </PlaitProvider>
    </PlaitProvider>
  );
}
