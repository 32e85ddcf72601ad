/**
 * The page's microphones: which there are, which was chosen last, and what to do when the browser gives none. Knows
 * no streams; whoever opens a microphone stops its tracks.
 */

const CHOICE_KEY = "plait.microphone";

const GONE =
  "The microphone is gone. All it heard is kept; plug it in again, or choose another, and record on.";

/** For the recogniser, not for a listener at the other end: as it is, at a steady level. */
const AS_IT_IS = { echoCancellation: false, noiseSuppression: false, autoGainControl: true };

/** @typedef {{ id: string, label: string }} Device */

export class MicrophoneTrouble extends Error {
  /** @param {string} code @param {string} message  with the next step */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** @returns {MicrophoneTrouble | null} why this page can have none, whatever a person allows */
export function lasting(available = isSecureContext && "mediaDevices" in navigator) {
  if (available) return null;
  return new MicrophoneTrouble(
    "insecure_context",
    "Browsers give a page the microphone only over https or on this machine. Open it as http://127.0.0.1 or http://localhost, or transcribe a file: that works here too.",
  );
}

/**
 * @param {string} id  "" the default one
 * @returns {Promise<MediaStream>}
 * @throws {MicrophoneTrouble}
 */
async function openMicrophone(id) {
  const trouble = lasting();
  if (trouble) throw trouble;
  try {
    return await ask(id);
  } catch (error) {
    // The one chosen is not plugged in any more: any other is better than none.
    if (id && nameOf(error) === "OverconstrainedError") return openMicrophone("");
    throw troubleOf(error);
  }
}

/** @param {string} id */
function ask(id) {
  const audio = { ...AS_IT_IS, channelCount: 1, ...(id && { deviceId: { exact: id } }) };
  return navigator.mediaDevices.getUserMedia({ audio });
}

/** @param {MediaStream | null} media */
function closeMicrophone(media) {
  for (const track of media?.getTracks() ?? []) track.stop();
}

/** What a test gives another of. */
export const MICROPHONE = { open: openMicrophone, close: closeMicrophone };

/**
 * A track ends by itself only when its device goes.
 * @param {MediaStream} media @param {(message: string) => void} gone  told what to say
 */
export function onceGone(media, gone) {
  for (const track of media.getAudioTracks()) {
    track.addEventListener("ended", () => gone(GONE), { once: true });
  }
}

/**
 * Names come only once one was allowed; before, there is nothing to choose.
 * @returns {Promise<Device[]>}
 */
export async function listMicrophones() {
  if (lasting()) return [];
  const all = await navigator.mediaDevices.enumerateDevices();
  return named(all.filter(({ kind }) => kind === "audioinput"));
}

/**
 * What a person can choose from. Chromium lists the default one twice, once by that name.
 * @param {{ deviceId: string, label: string }[]} inputs
 * @returns {Device[]}
 */
export function named(inputs) {
  return inputs
    .filter(
      ({ deviceId, label }) =>
        label !== "" && !["", "default", "communications"].includes(deviceId),
    )
    .map(({ deviceId, label }) => ({
      id: deviceId,
      label: label.replace(/ \([\da-f]{4}:[\da-f]{4}\)$/, ""),
    }));
}

export function rememberedMicrophone() {
  return localStorage.getItem(CHOICE_KEY) ?? "";
}

/** @param {string} id */
export function rememberMicrophone(id) {
  if (id) localStorage.setItem(CHOICE_KEY, id);
  else localStorage.removeItem(CHOICE_KEY);
}

/** What the browser threw, in words that say what to do next. @param {unknown} error */
export function troubleOf(error) {
  const said = error instanceof Error ? error.message : String(error);
  const [code, message] = wordsFor(nameOf(error), said);
  return new MicrophoneTrouble(code, message);
}

/** @param {unknown} error */
function nameOf(error) {
  return error instanceof Error ? error.name : "";
}

/** @param {string} name @param {string} said @returns {[code: string, message: string]} */
function wordsFor(name, said) {
  if (name === "NotAllowedError" && /dismissed/i.test(said))
    return [
      "dismissed",
      "The browser's question was closed without an answer. Press Record again and choose Allow.",
    ];
  if (name === "NotAllowedError" && /system/i.test(said))
    return [
      "denied_by_system",
      "The system does not let this browser use a microphone. Allow it in the system's privacy settings, then press Record again.",
    ];
  if (name === "NotAllowedError" || name === "SecurityError")
    return [
      "denied",
      "This page may not use the microphone. Allow it in the browser's site settings, beside the address, then press Record again.",
    ];
  if (name === "NotFoundError" || name === "OverconstrainedError")
    return [
      "no_device",
      "No microphone was found. Plug one in and press Record again, or transcribe a file.",
    ];
  if (name === "NotReadableError" || name === "AbortError")
    return [
      "busy",
      "The microphone could not be opened; another program may be using it. Close that, then press Record again.",
    ];
  return [
    "internal",
    `The browser opened no microphone (${said}). Press Record to try again, or transcribe a file.`,
  ];
}
