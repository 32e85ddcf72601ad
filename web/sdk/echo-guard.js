/**
 * Tells the user from the answer's own sound in the microphone: by the audio thread's reports of how loud it is and how
 * much of that the sound explains. Remembers when sound may have been heard, and when the user talked, for as long as
 * segments may come that were said then; older is forgotten.
 * Pure: times are passed in, in seconds on the context's clock. Does not know streams or turns.
 */

/** @typedef {import("./echo-model.js").EchoReport} EchoReport */
/** @typedef {{ from: number, to: number }} Stretch */
/** @typedef {{ start: number, end: number, text: string, words?: { text: string, start: number, end: number }[] }} Heard */

/** What is played may be in the microphone for so long afterwards. */
const ECHO_SECONDS = 0.75;
/** Played more softly than this is not heard. */
const INAUDIBLE = 1e-4;
/** So many of the last so many blocks. */
const NEEDED = 5;
const LOOKED_AT = 7;
/** Reports, of 16 ms, which are kept. */
const RECENT = 32;
/** Words' times are not exact. */
const SLACK_SECONDS = 0.25;
/** Between two words the user is still talking. */
const PAUSE_SECONDS = 0.7;
/** A segment comes at most so long after it was said. */
const MEMORY_SECONDS = 120;

export class EchoGuard {
  /** @type {Stretch[]} */
  #echoes = [];
  /** @type {Stretch[]} */
  #talks = [];
  #time = 0;
  #talking = false;

  /** The newest reports. @type {EchoReport[]} */
  #recent = [];

  /** The user talks, or has just talked. */
  get talking() {
    return this.#talking;
  }

  /**
   * @param {EchoReport} report
   * @returns {boolean} the user talks now
   */
  note(report) {
    this.#recent.push(report);
    if (this.#recent.length > RECENT) this.#recent.shift();
    this.#time = report.time;
    if (report.played > INAUDIBLE) {
      extend(this.#echoes, report.time, report.time + ECHO_SECONDS, ECHO_SECONDS);
    }
    const near = this.#recent.slice(-LOOKED_AT).filter((each) => each.near).length >= NEEDED;
    if (near) extend(this.#talks, report.time, report.time, PAUSE_SECONDS);
    const lastTalk = this.#talks.at(-1);
    this.#talking = lastTalk !== undefined && report.time - lastTalk.to < PAUSE_SECONDS;
    this.#forget();
    return near;
  }

  /** Of the last half second the loudest block; before anything was heard, silence. @returns {Pick<EchoReport, "level" | "explained">} */
  get loudest() {
    const silence = { level: 0, explained: 0 };
    return this.#recent.reduce((most, each) => (each.level > most.level ? each : most), silence);
  }

  /** Whether speech that is said to have begun then is the user's, as far as is known. @param {number} at */
  users(at) {
    const echo = this.#echoes.findLast(({ to }) => to >= at);
    if (!echo) return true;
    // Who fell silent before it began to sound, or as it did, is not who talks now.
    const since = Math.max(at - SLACK_SECONDS, echo.from + LOOKED_AT * 0.016);
    return this.#talks.some(({ to }) => to > since);
  }

  /**
   * What of a segment the user said: all of it where nothing sounded, else the words from where the user talks.
   *
   * @param {Heard} segment
   * @returns {string}
   */
  usersText({ start, end, text, words }) {
    if (!this.#echoes.some(({ from, to }) => from < end && to > start)) return text;
    const parts = words?.length ? words : [{ text, start, end }];
    const kept = parts.filter((word) => this.#isUsers(word));
    if (kept.length === parts.length) return text;
    return kept.map((word) => word.text.trim()).join(" ");
  }

  /** @param {{ start: number, end: number }} word */
  #isUsers({ start, end }) {
    const middle = (start + end) / 2;
    const over = (/** @type {Stretch} */ { from, to }) => middle >= from && middle <= to;
    if (!this.#echoes.some(over)) return true;
    return this.#talks.some(
      ({ from, to }) => end >= from - SLACK_SECONDS && start <= to + SLACK_SECONDS,
    );
  }

  #forget() {
    const oldest = this.#time - MEMORY_SECONDS;
    while (this.#echoes[0] && this.#echoes[0].to < oldest) this.#echoes.shift();
    while (this.#talks[0] && this.#talks[0].to < oldest) this.#talks.shift();
  }
}

/**
 * @param {Stretch[]} stretches
 * @param {number} from
 * @param {number} to
 * @param {number} gap what is no further apart is one
 */
function extend(stretches, from, to, gap) {
  const last = stretches.at(-1);
  if (last && from <= last.to + gap) last.to = Math.max(last.to, to);
  else stretches.push({ from, to });
}
