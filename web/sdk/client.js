/**
 * connect(): the object an application holds. Puts methods, models and events on one Connection.
 * Does not know the wire.
 */

/** @import { Runtime } from "./internal.d.ts" */
/** @import { ConnectOptions, Embed, EmbeddingStream, EmbedParams, Llm, ModelInfo, Plait, StreamOptions, Transcribe, Tts, Welcome, WebSocketClass } from "./types.d.ts" */

import { chat, chatStream } from "./chat.js";
import { Connection } from "./connection.js";
import { embedStream, embedTexts } from "./embed.js";
import { platform } from "./runtime.js";
import { synthesize } from "./speech.js";
import { transcribeFile, transcribeLive } from "./transcribe.js";
import { groupVoices } from "./voices.js";

const PATH = "/v1/ws";
const LOCAL_URL = "ws://127.0.0.1:8760";

/**
 * @param {string | URL} [url]
 * @param {ConnectOptions} [options]
 * @returns {Plait}
 */
export function connect(url, options) {
  return connectWith(platform, url, options);
}

/**
 * @param {Runtime} runtime the clock, timers and randomness to use
 * @param {string | URL} [url]
 * @param {ConnectOptions} [options]
 * @returns {Plait}
 */
export function connectWith(runtime, url, options = {}) {
  const target = {
    url: socketUrl(url),
    token: options.token,
    WebSocket: webSocketClass(options.WebSocket),
  };
  const connection = new Connection(target, options.reconnect, runtime);
  return {
    get state() {
      return connection.state;
    },
    get welcome() {
      return connection.welcome;
    },
    llm: {
      chatStream: (request) => chatStream(connection, request),
      chat: (request) => chat(connection, request),
    },
    tts: {
      synthesize: (request) => synthesize(connection, request, runtime),
      voices: async () => groupVoices((await connection.opened()).methods.synthesize?.voices ?? []),
    },
    transcribe: {
      live: (request) => transcribeLive(connection, request, runtime),
      file: (request) => transcribeFile(connection, request, runtime),
    },
    embed: embedOver(
      (request) => embedStream(connection, request, runtime),
      (request) => embedTexts(connection, request, runtime),
    ),
    models: async () => listModels(await connection.opened()),
    on: (type, listener) => connection.on(type, listener),
    close: () => connection.close(),
  };
}

/** @type {Plait | null} */
let defaultClient = null;

function useDefault() {
  defaultClient ??= connect();
  return defaultClient;
}

/** @type {Llm} */
export const llm = {
  chatStream: (request) => useDefault().llm.chatStream(request),
  chat: async (request) => useDefault().llm.chat(request),
};

/** @type {Tts} */
export const tts = {
  synthesize: (request) => useDefault().tts.synthesize(request),
  voices: async () => useDefault().tts.voices(),
};

/** @type {Transcribe} */
export const transcribe = {
  live: (request) => useDefault().transcribe.live(request),
  file: async (request) => useDefault().transcribe.file(request),
};

export const embed = embedOver(
  (request) => useDefault().embed.create({ ...request, stream: true }),
  async (request) => useDefault().embed.create({ ...request, stream: false }),
);

/**
 * One name for both ways to read, as others have it: `stream: true` decides.
 *
 * @param {(request: EmbedParams & StreamOptions) => EmbeddingStream} streamed
 * @param {(request: EmbedParams & StreamOptions) => Promise<Float32Array[]>} whole
 * @returns {Embed}
 */
function embedOver(streamed, whole) {
  const create = (/** @type {EmbedParams & StreamOptions & { stream?: boolean }} */ request) =>
    request.stream === true ? streamed(request) : whole(request);
  return { create: /** @type {Embed["create"]} */ (create) };
}

/**
 * @param {string | URL | undefined} given
 * @returns {string}
 */
function socketUrl(given) {
  const page = globalThis.location?.href;
  const url = new URL(given ?? (page ? new URL(PATH, page) : LOCAL_URL), page);
  url.protocol = url.protocol.replace(/^http/, "ws");
  if (!/^wss?:$/.test(url.protocol)) {
    throw new TypeError(`connect() takes a ws, wss, http or https URL, not ${url.protocol}`);
  }
  if (url.username || url.password || url.searchParams.has("token")) {
    throw new TypeError(
      "no credentials in the URL, it ends up in logs: pass connect(url, { token })",
    );
  }
  if (url.pathname === "/") url.pathname = PATH;
  url.hash = "";
  return url.href;
}

/**
 * @param {WebSocketClass | undefined} given
 * @returns {WebSocketClass}
 */
function webSocketClass(given) {
  const found = given ?? globalThis.WebSocket;
  if (found) return found;
  throw new TypeError(
    "there is no WebSocket here (Node before 22): npm install ws, then connect(url, { WebSocket })",
  );
}

/**
 * @param {Welcome} welcome
 * @returns {ModelInfo[]}
 */
function listModels({ methods }) {
  return Object.entries(methods).flatMap(([method, { models }]) =>
    models.map((id) => ({ id, method })),
  );
}
