/**
 * Which kind of source a transcription was given. Recognised by what they can do, so those of another window or
 * another copy of a class count as well.
 */

/** @import { LiveParams } from "./types.d.ts" */
/** @import { AudioInput, InputReports, Runtime } from "./internal.d.ts" */

import { CaptureInput } from "./capture.js";
import { InvalidRequestError } from "./errors.js";
import { FileInput } from "./file-input.js";
import { SampleInput } from "./sample-input.js";

/**
 * @param {LiveParams} request
 * @param {InputReports} reports
 * @param {Runtime} runtime
 * @returns {AudioInput}
 */
export function inputOf(request, reports, runtime) {
  const { source } = request;
  if (isMediaStream(source)) return new CaptureInput(source, request, reports, runtime);
  if (isFile(source)) return new FileInput(source, reports);
  return new SampleInput(request, reports);
}

/**
 * Also one of another window.
 *
 * @param {unknown} source
 * @returns {source is MediaStream}
 */
function isMediaStream(source) {
  return typeof source === "object" && source !== null && "getAudioTracks" in source;
}

/**
 * @param {unknown} source
 * @returns {source is Blob}
 */
export function isFile(source) {
  return typeof source === "object" && source !== null && "slice" in source && "size" in source;
}

/**
 * @param {unknown} file
 * @returns {Blob}
 */
export function fileOf(file) {
  if (file instanceof ArrayBuffer || ArrayBuffer.isView(file)) {
    return new Blob([/** @type {ArrayBuffer} */ (file)]);
  }
  throw new InvalidRequestError("file must be a File or Blob, or a file's bytes", {
    param: "file",
  });
}
