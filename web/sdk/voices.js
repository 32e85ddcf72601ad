/**
 * What a voice's name says: `af_heart` is an American English female voice called Heart. Pure.
 */

/** @import { Voice, VoiceGroup } from "./types.d.ts" */

/** By the first letter, in the order they are shown. */
const LANGUAGES = new Map([
  ["a", { language: "en-us", label: "American English" }],
  ["b", { language: "en-gb", label: "British English" }],
  ["e", { language: "es", label: "Spanish" }],
  ["f", { language: "fr", label: "French" }],
  ["h", { language: "hi", label: "Hindi" }],
  ["i", { language: "it", label: "Italian" }],
  ["p", { language: "pt-br", label: "Brazilian Portuguese" }],
  ["j", { language: "ja", label: "Japanese" }],
  ["z", { language: "zh", label: "Mandarin Chinese" }],
]);
const OTHER = { language: "", label: "Other" };
const GENDERS = new Map([
  ["f", /** @type {const} */ ("female")],
  ["m", /** @type {const} */ ("male")],
]);

/**
 * @param {string} id
 * @returns {Voice}
 */
export function describeVoice(id) {
  const [, letter = "", gender = "", name = id] = /^([a-z])([fm])_(.+)$/.exec(id) ?? [];
  const { language, label } = LANGUAGES.get(letter) ?? OTHER;
  const words = name.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return { id, name: words.join(" "), gender: GENDERS.get(gender) ?? null, language, label };
}

/**
 * @param {string[]} ids as `welcome.methods.synthesize.voices` has them
 * @returns {VoiceGroup[]} one per language that has a voice; the order of voices is kept
 */
export function groupVoices(ids) {
  const voices = ids.map(describeVoice);
  return [...LANGUAGES.values(), OTHER].flatMap(({ language, label }) => {
    const own = voices.filter((voice) => voice.language === language);
    return own.length > 0 ? [{ language, label, voices: own }] : [];
  });
}
