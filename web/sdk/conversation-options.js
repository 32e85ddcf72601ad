/**
 * What a conversation is asked for with, and checked before it begins. Does not know streams.
 */

import { InvalidRequestError, StreamError } from "./errors.js";

export const MICROPHONE = Object.freeze({
  echoCancellation: true,
  noiseSuppression: true,
  autoGainControl: true,
  channelCount: 1,
});

const DEFAULT_END_OF_TURN_MS = 600;
/** A segment ends no later than this, so that it is final when the turn is over. */
const LONGEST_SEGMENT_SILENCE_MS = 500;

/** @param {number | undefined} endOfTurnMs */
export function checkedSilence(endOfTurnMs = DEFAULT_END_OF_TURN_MS) {
  if (endOfTurnMs >= 200 && endOfTurnMs <= 3000) return endOfTurnMs;
  throw new InvalidRequestError(`endOfTurnMs must be from 200 to 3000, not ${endOfTurnMs}`, {
    param: "endOfTurnMs",
  });
}

/** @param {number} endOfTurnMs */
export function segmentSilence(endOfTurnMs) {
  return Math.min(endOfTurnMs, LONGEST_SEGMENT_SILENCE_MS);
}

/** The microphone goes on, and nobody listens. */
export function endedByServer() {
  return new StreamError(
    "transcription_ended",
    "The server ended the transcription although the microphone goes on. Begin another conversation with these messages.",
    { retryable: true },
  );
}
