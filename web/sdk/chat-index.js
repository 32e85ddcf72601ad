/**
 * The entry `plait/chat`: chat and nothing else, small enough for any page. chat-types.d.ts documents it.
 */

export { connect } from "./chat-client.js";
export { collect } from "./consume.js";
export {
  CapabilityDeniedError,
  InvalidRequestError,
  PlaitError,
  ResourceNotAvailableError,
  StreamCancelledError,
  StreamError,
} from "./errors.js";
