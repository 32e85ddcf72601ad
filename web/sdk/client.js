/**
 * connect(): the object an application holds, with all methods on one Connection; and the same methods on a default
 * one, for a page that talks to its own server. Does not know the wire.
 */

/** @import { Runtime } from "./internal.d.ts" */
/** @import { ConnectOptions, Embed, EmbeddingStream, EmbedParams, Llm, ModelInfo, Plait, StreamOptions, Transcribe, Tts } from "./types.d.ts" */

import { decodeBinary, encodeBinary } from "./binary.js";
import { chatClient } from "./chat-client.js";
import { embedStream, embedTexts } from "./embed.js";
import { platform } from "./runtime.js";
import { synthesize } from "./speech.js";
import { connectionTo } from "./target.js";
import { transcribeFile, transcribeLive } from "./transcribe.js";
import { groupVoices } from "./voices.js";

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
export function connectWith(runtime, url, options) {
  const binary = { encode: encodeBinary, decode: decodeBinary };
  const connection = connectionTo(runtime, url, options, binary);
  /** @type {Pick<Plait, "tts" | "transcribe" | "embed">} */
  const media = {
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
  };
  return Object.assign(chatClient(connection), media);
}

/** @type {Plait | null} */
let defaultClient = null;

function defaultPlait() {
  defaultClient ??= connect();
  return defaultClient;
}

/** @type {Llm} */
export const llm = {
  chatStream: (request) => defaultPlait().llm.chatStream(request),
  chat: async (request) => defaultPlait().llm.chat(request),
};

/** @type {Tts} */
export const tts = {
  synthesize: (request) => defaultPlait().tts.synthesize(request),
  voices: async () => defaultPlait().tts.voices(),
};

/** @type {Transcribe} */
export const transcribe = {
  live: (request) => defaultPlait().transcribe.live(request),
  file: async (request) => defaultPlait().transcribe.file(request),
};

export const embed = embedOver(
  (request) => defaultPlait().embed.create({ ...request, stream: true }),
  async (request) => defaultPlait().embed.create({ ...request, stream: false }),
);

/** @returns {Promise<ModelInfo[]>} */
export async function models() {
  return defaultPlait().models();
}

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
