/**
 * The state behind useStreamedChat: a conversation, and the one answer that is being written.
 * An answer enters `messages` as what has arrived of it, and stays so however it ends. Asking while an answer is being
 * written stops that one first, keeping what it had. Does not know React.
 */

/** @import { ChatClient } from "../sdk/chat-types.d.ts" */
/** @import { Cancel, ChatDelta, ChatMessage, ChatParams, Stream, StreamOptions, ToolCall } from "../sdk/types.d.ts" */
/** @import { Lease } from "./lease.js" */
/** @import { Schedule } from "./store.js" */
/** @import { StreamedChat, StreamedChatOptions } from "./index.d.ts" */

import { teeStream } from "../sdk/tee.js";
import { Presence } from "./presence.js";
import { Store } from "./store.js";
import { endedBy, watchQueue } from "./watching.js";

const NOTHING = {
  text: "",
  tokens: 0,
  queue: null,
  usage: undefined,
  error: undefined,
};

/** @extends {Presence<ChatClient, StreamedChatOptions>} */
export class ChatStore extends Presence {
  /** @type {Store<StreamedChat>} */
  #store;
  /** The answer being written. @type {Answer | null} */
  #answer = null;
  /** Of the newest question, to ask it again. @type {readonly ChatMessage[] | null} */
  #asked = null;
  /** What was there before a question that nothing came of. @type {Partial<StreamedChat> | null} */
  #undo = null;

  /**
   * @param {Lease<ChatClient>} lease
   * @param {StreamedChatOptions} [options]
   * @param {Schedule} [schedule]
   */
  constructor(lease, options = {}, schedule) {
    super(lease, options);
    /** @type {StreamedChat} */
    const initial = {
      ...NOTHING,
      messages: options.messages ?? [],
      status: "idle",
      isStreaming: false,
      send: (content) => this.#send(content),
      cancel: () => this.#cancel(),
      retry: () => this.#retry(),
      reset: (messages) => this.#reset(messages),
    };
    this.#store = new Store(initial, schedule);
    this.get = this.#store.get;
    this.subscribe = this.#store.subscribe;
  }

  /**
   * @param {Lease<ChatClient>} lease
   * @returns {() => void}
   */
  enter(lease) {
    // StrictMode leaves and enters again in one go: a question asked on entering must not stand there twice.
    if (this.#undo) {
      this.#store.set(this.#undo);
      this.#asked = null;
    }
    this.#undo = null;
    return super.enter(lease);
  }

  leave() {
    const answer = this.#answer;
    void this.#cancel();
    if (!answer || answer.arrived) return;
    this.#undo = answer.before;
    queueMicrotask(() => {
      this.#undo = null;
    });
  }

  /** @param {string | ChatMessage | readonly ChatMessage[]} content */
  #send(content) {
    void this.#cancel();
    const said = typeof content === "string" ? { role: "user", content } : content;
    this.#ask(this.#store.get().messages.concat(said));
  }

  #retry() {
    const asked = this.#asked;
    if (!asked) return;
    void this.#cancel();
    this.#ask(asked);
  }

  /** @param {unknown} [messages] */
  #reset(messages) {
    void this.#cancel();
    this.#asked = null;
    const kept = Array.isArray(messages) ? messages : (this.options.messages ?? []);
    this.#store.set({ ...NOTHING, messages: kept, status: "idle" });
  }

  /** @returns {Promise<Cancel | null>} */
  async #cancel() {
    const answer = this.#answer;
    if (!answer) return null;
    const stopped = answer.stop(); // the frame first, then the looks of it
    this.#end(answer, { status: "cancelled" });
    const proof = await stopped;
    const { usage } = proof ?? {};
    // Unless something else was asked meanwhile.
    if (usage && this.#asked === answer.asked && !this.#answer) this.#store.set({ usage });
    return proof;
  }

  /** @param {readonly ChatMessage[]} messages */
  #ask(messages) {
    if (this.gone) return;
    const answer = new Answer(messages, this.#store.get());
    this.#asked = messages;
    this.#answer = answer;
    const { messages: _, client: __, onAnswer, ...params } = this.options;
    const moved = () => this.#store.later(answer.read);
    try {
      answer.open(this.lease.client(), { ...params, messages: [...messages] }, moved);
      if (onAnswer) onAnswer(answer.branch());
    } catch (reason) {
      void answer.stop();
      this.#end(answer, endedBy(reason, null));
      return;
    }
    this.#store.set({ ...NOTHING, messages, status: "queued", isStreaming: true });
    void this.#follow(answer, params.signal);
  }

  /**
   * @param {Answer} answer
   * @param {AbortSignal | null | undefined} signal
   */
  async #follow(answer, signal) {
    try {
      for await (const delta of /** @type {Stream<ChatDelta>} */ (answer.source)) {
        if (answer !== this.#answer) return;
        const first = !answer.arrived;
        answer.take(delta);
        if (first) this.#store.set(answer.read());
        else this.#store.later(answer.read);
      }
      this.#end(answer, { status: "completed" });
    } catch (reason) {
      this.#end(answer, endedBy(reason, signal));
    }
  }

  /**
   * Once: what ends later than that is over already.
   *
   * @param {Answer} answer
   * @param {Partial<StreamedChat>} how
   */
  #end(answer, how) {
    if (answer !== this.#answer) return;
    this.#answer = null;
    answer.unwatch();
    this.#store.set({ ...answer.read(), ...how, queue: null, isStreaming: false });
  }
}

/** What has arrived of one answer. */
class Answer {
  /** @type {readonly ChatMessage[]} */
  asked;
  /** What to go back to when nothing comes of it. @type {Partial<StreamedChat>} */
  before;
  /** @type {Stream<ChatDelta> | null} */
  stream = null;
  /** What is read of it: itself, or a branch. @type {Stream<ChatDelta> | null} */
  source = null;
  arrived = false;
  #text = "";
  #items = 0;
  /** @type {ToolCall[]} */
  #calls = [];
  /** @type {StreamedChat["usage"]} */
  #usage = undefined;
  unwatch = () => {};

  /**
   * @param {readonly ChatMessage[]} asked
   * @param {Partial<StreamedChat>} before
   */
  constructor(asked, before) {
    this.asked = asked;
    this.before = before;
  }

  /**
   * @param {ChatClient} client
   * @param {ChatParams & StreamOptions} request
   * @param {() => void} moved
   */
  open(client, request, moved) {
    const stream = client.llm.chatStream(request);
    this.stream = stream;
    this.source = stream;
    this.unwatch = watchQueue(client, stream, moved);
  }

  /** For another reader. @returns {Stream<ChatDelta>} */
  branch() {
    const [own, other] = teeStream(/** @type {Stream<ChatDelta>} */ (this.stream));
    this.source = own;
    return other;
  }

  /** @param {ChatDelta} delta */
  take(delta) {
    this.arrived = true;
    this.#text += delta.content;
    this.#usage = delta.usage;
    if (!delta.done) this.#items += 1;
    for (const { complete, id = "", function: called } of delta.toolCalls ?? []) {
      const { name = "", arguments: text = "" } = called;
      if (complete) this.#calls.push({ id, type: "function", function: { name, arguments: text } });
    }
  }

  /** @returns {Partial<StreamedChat>} */
  read = () => ({
    text: this.#text,
    tokens: this.#usage?.completionTokens ?? this.#items,
    usage: this.#usage,
    messages: this.#messages(),
    queue: this.stream?.queue ?? null,
    status: this.stream?.state === "pending" ? "queued" : "streaming",
  });

  async stop() {
    return this.stream ? this.stream.cancel() : null;
  }

  #messages() {
    const content = this.#text || null;
    if (content === null && this.#calls.length === 0) return this.asked;
    /** @type {ChatMessage} */
    const message = { role: "assistant", content };
    if (this.#calls.length > 0) message.tool_calls = [...this.#calls];
    return [...this.asked, message];
  }
}
