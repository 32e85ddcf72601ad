/**
 * What every client has: its connection, models and chat. All there is in `plait/chat`; client.js adds the rest.
 */

/** @import { Connection } from "./connection.js" */
/** @import { ConnectOptions, ModelInfo, Welcome } from "./types.d.ts" */
/** @import { ChatClient } from "./chat-types.d.ts" */

import { chat, chatStream } from "./chat.js";
import { platform } from "./runtime.js";
import { connectionTo } from "./target.js";

/**
 * @param {string | URL} [url]
 * @param {ConnectOptions} [options]
 * @returns {ChatClient}
 */
export function connect(url, options) {
  return chatClient(connectionTo(platform, url, options));
}

/**
 * @param {Connection} connection
 * @returns {ChatClient}
 */
export function chatClient(connection) {
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
    models: async () => listModels(await connection.opened()),
    on: (type, listener) => connection.on(type, listener),
    close: () => connection.close(),
  };
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
