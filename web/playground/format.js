/** Numbers as people read them, and the hue of a stream. Pure. */

/** @param {number} ms */
export function formatMs(ms) {
  if (ms < 0.05) return "0 ms";
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** How long something has lasted: 42 s, 3 min, 5 h 10 min, 2 d 4 h. @param {number} seconds */
export function formatDuration(seconds) {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes < 1) return `${Math.floor(seconds)} s`;
  if (hours < 1) return `${minutes} min`;
  return hours < 24
    ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** @param {number} n */
export function formatCount(n) {
  return Math.round(n).toLocaleString("en");
}

/** Of ±1; a hair below nothing is nothing. @param {number} value */
export function formatCosine(value) {
  const text = value.toFixed(2);
  return text === "-0.00" ? "0.00" : text;
}

/** @param {number} n @param {string} one @param {string} [many] */
export function plural(n, one, many = `${one}s`) {
  return `${formatCount(n)} ${n === 1 ? one : many}`;
}

/** 1 → 1st. @param {number} n */
export function ordinal(n) {
  const tens = n % 100;
  const suffix = tens > 10 && tens < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${suffix}`;
}

/** Wall time of a frame, to the millisecond. @param {number} epochMs */
export function formatClock(epochMs) {
  const date = new Date(epochMs);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** A place in audio: 1:02, or 1:02.5; hours only where there are some. @param {number} seconds @param {0 | 1} [digits] */
export function formatTime(seconds, digits = 0) {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const whole = Math.floor(tenths / 10);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const front = hours > 0 ? `${hours}:${two(minutes)}` : String(minutes);
  return `${front}:${two(whole % 60)}${digits ? `.${tenths % 10}` : ""}`;
}

const LANGUAGES = new Intl.DisplayNames("en", { type: "language" });

/** "German" of "de"; a code that is none as it is. @param {string} code */
export function languageName(code) {
  try {
    return LANGUAGES.of(code) ?? code;
  } catch {
    return code; // RangeError: not shaped like a code
  }
}

/**
 * Stable per id, and far from its neighbours': the golden angle. Cards, wire rows and slots share it.
 * @param {number} id
 */
export function streamHue(id) {
  return Math.round((id * 137.508 + 120) % 360);
}
