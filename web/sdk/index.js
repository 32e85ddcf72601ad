/**
 * The public surface of the package `plait`; types.d.ts documents it.
 */

export { connect, llm } from "./client.js";
export {
  CapabilityDeniedError,
  InvalidRequestError,
  PlaitError,
  ResourceNotAvailableError,
  StreamCancelledError,
  StreamError,
} from "./errors.js";
