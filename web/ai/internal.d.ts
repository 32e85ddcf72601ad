/** Of the AI SDK's shapes what this adapter reads and writes; the same in its versions 5, 6 and 7. */

export interface Message {
  role: "system" | "user" | "assistant";
  parts: readonly MessagePart[];
}

/** `type`: text, step-start, file, tool-NAME, dynamic-tool, or one that is passed over. */
export interface MessagePart {
  type: string;
  text?: string;
  mediaType?: string;
  toolName?: string;
  toolCallId?: string;
  state?: string;
  input?: unknown;
  output?: unknown;
  preliminary?: boolean;
  errorText?: string;
  approval?: { reason?: string };
}

type Call = { toolCallId: string; toolName: string };

export type Chunk =
  | { type: "start" | "start-step" | "finish-step" }
  | { type: "text-start" | "text-end"; id: string }
  | { type: "text-delta"; id: string; delta: string }
  | ({ type: "tool-input-start" } & Call)
  | {
      type: "tool-input-delta";
      toolCallId: string;
      inputTextDelta: string;
    }
  | ({ type: "tool-input-available"; input: unknown } & Call)
  | ({
      type: "tool-input-error";
      input: unknown;
      errorText: string;
    } & Call)
  | {
      type: "finish";
      finishReason?: "stop" | "length" | "tool-calls" | "other";
      messageMetadata?: unknown;
    };
