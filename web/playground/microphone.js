/**
 * The page's microphones: which there are, which was chosen last, and what to do when the browser gives none. Knows
 * no streams; whoever opens a microphone stops its tracks.
 */

const CHOICE_KEY = "plait.microphone";

const GONE =
  "The microphone is gone. All it heard is kept; plug it in again, or choose another, and record on.";

/**
 * @typedef {{ id: string, label: string }} Device
 *
 * @typedef {object} Use  what a microphone is for
 * @property {MediaTrackConstraints} audio
 * @property {string} press  the button that asks for it
 * @property {string} instead  what else a person can do; "" nothing
 */

/** For the recogniser, not for a listener at the other end: as it is, at a steady level. @type {Use} */
const LISTENING = {
  audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: true },
  press: "Record",
  instead: "transcribe a file",
};

export class MicrophoneTrouble extends Error {
  /** @param {string} code @param {string} message  with the next step */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * @param {boolean} [available] @param {{ instead: string }} [use]
 * @returns {MicrophoneTrouble | null} why this page can have none, whatever a person allows
 */
export function lasting(
  available = isSecureContext && "mediaDevices" in navigator,
  { instead } = LISTENING,
) {
  if (available) return null;
  const or = instead && `, or ${instead}: that works here too`;
  return new MicrophoneTrouble(
    "insecure_context",
    `Browsers give a page the microphone only over https or on this machine. Open it as http://127.0.0.1 or http://localhost${or}.`,
  );
}

/**
 * @param {string} id  "" the default one
 * @param {Use} use
 * @returns {Promise<MediaStream>}
 * @throws {MicrophoneTrouble}
 */
async function openMicrophone(id, use = LISTENING) {
  const trouble = lasting(undefined, use);
  if (trouble) throw trouble;
  try {
    return await ask(id, use);
  } catch (error) {
    // The one chosen is not plugged in any more: any other is better than none.
    if (id && nameOf(error) === "OverconstrainedError") return openMicrophone("", use);
    throw troubleOf(error, use);
  }
}

/** @param {string} id @param {Use} use */
function ask(id, use) {
  const audio = { ...use.audio, channelCount: 1, ...(id && { deviceId: { exact: id } }) };
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

/** What the browser threw, in words that say what to do next. @param {unknown} error @param {Use} use */
export function troubleOf(error, use = LISTENING) {
  const said = error instanceof Error ? error.message : String(error);
  const [code, message] = wordsFor(nameOf(error), said, use);
  return new MicrophoneTrouble(code, message);
}

/** @param {unknown} error */
function nameOf(error) {
  return error instanceof Error ? error.name : "";
}

/** @param {string} name @param {string} said @param {Use} use @returns {[code: string, message: string]} */
function wordsFor(name, said, { press, instead }) {
  const or = instead && `, or ${instead}`;
  if (name === "NotAllowedError" && /dismissed/i.test(said))
    return [
      "dismissed",
      `The browser's question was closed without an answer. Press ${press} again and choose Allow.`,
    ];
  if (name === "NotAllowedError" && /system/i.test(said))
    return [
      "denied_by_system",
      `The system does not let this browser use a microphone. Allow it in the system's privacy settings, then press ${press} again.`,
    ];
  if (name === "NotAllowedError" || name === "SecurityError")
    return [
      "denied",
      `This page may not use the microphone. Allow it in the browser's site settings, beside the address, then press ${press} again.`,
    ];
  if (name === "NotFoundError" || name === "OverconstrainedError")
    return ["no_device", `No microphone was found. Plug one in and press ${press} again${or}.`];
  if (name === "NotReadableError" || name === "AbortError")
    return [
      "busy",
      `The microphone could not be opened; another program may be using it. Close that, then press ${press} again.`,
    ];
  return [
    "internal",
    `The browser opened no microphone (${said}). Press ${press} to try again${or}.`,
  ];
}
