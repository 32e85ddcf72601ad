/**
 * The public surface of the package `plait`; types.d.ts documents it.
 */

export { preparePlayback } from "./audio-context.js";
export { connect, embed, llm, models, transcribe, tts } from "./client.js";
export { collect } from "./consume.js";
export {
  CapabilityDeniedError,
  InvalidRequestError,
  PlaitError,
  ResourceNotAvailableError,
  StreamCancelledError,
  StreamError,
} from "./errors.js";
export { teeStream } from "./tee.js";
export { describeVoice } from "./voices.js";
export { wavOf } from "./wav.js";
