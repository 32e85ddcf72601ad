/**
 * Where to connect, and with which WebSocket class: a Connection from what callers of connect() give.
 */

/** @import { BinaryCodec, Runtime } from "./internal.d.ts" */
/** @import { ConnectOptions, WebSocketClass } from "./types.d.ts" */

import { Connection } from "./connection.js";

const PATH = "/v1/ws";
const LOCAL_URL = "ws://127.0.0.1:8760";

/**
 * @param {Runtime} runtime the clock, timers and randomness to use
 * @param {string | URL} [url]
 * @param {ConnectOptions} [options]
 * @param {BinaryCodec} [binary]
 */
export function connectionTo(runtime, url, options = {}, binary) {
  const target = {
    url: socketUrl(url),
    token: options.token,
    WebSocket: webSocketClass(options.WebSocket),
    binary,
  };
  return new Connection(target, options.reconnect, runtime);
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
