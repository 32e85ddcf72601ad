/**
 * The public surface of `plait/ai`; index.d.ts documents it.
 */

export { PlaitChatTransport } from "./transport.js";
