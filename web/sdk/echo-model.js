/**
 * Is there more in the microphone than the played sound explains? What the echo's path (echo-path) leaves unexplained is
 * compared with what it left lately while nobody talked. While somebody talks it learns next to nothing. At first all that
 * it has yet to learn counts as echo: better deaf for a moment than interrupted by oneself.
 * Pure: blocks and their times are passed in. Does not know speech or turns.
 */

import { BLOCK, EchoPath } from "./echo-path.js";

/** Over so many blocks, 0.75 s, what was played may still be heard: longer than the filter reaches. */
const REACH = 47;
/** Unexplained, in parts of what was played: as long as nothing is known. */
const TINY = 1e-9;
const FIRST_GAIN = 1;
/** So much has been unexplained lately, in 1.5 s of sound; the last 0.25 s of it may be somebody who begins to talk. */
const LATELY = 94;
const PENDING = 16;
/** Who talks for longer than this without being heard is nobody: the way has changed. */
const LONGEST_TALK = 125;
const MARGIN = 1.8;
/** Of the echo itself: a way that changes a little is nobody. */
const CHANGE = 0.2;
/** What is so like the echo is the echo, louder than it was. */
const LIKENESS = 0.7;
const NOISE_MARGIN = 3;
const LEAST_NOISE = 0.0005;
const INAUDIBLE = 0.001;
/** Blocks, which are more than a click. */
const FEW = 4;
/** In a pause, noise would be learned. In parts of how loud it is otherwise. */
const TELLING = 0.2;

/** How much of what is played was not explained lately, while nobody talked: the most of it. */
class Unexplained {
  #lately = new Float64Array(LATELY).fill(FIRST_GAIN);
  #pending = new Float64Array(PENDING);
  #at = 0;
  #waiting = 0;
  #talk = 0;
  most = FIRST_GAIN;

  /** What was known is no longer true. */
  forget() {
    this.#lately.fill(FIRST_GAIN);
    this.#waiting = 0;
    this.most = FIRST_GAIN;
  }

  /** @param {number} gain @param {boolean} near */
  note(gain, near) {
    this.#talk = near ? this.#talk + 1 : 0;
    if (near && this.#talk < LONGEST_TALK) {
      this.#waiting = 0;
      return;
    }
    const slot = this.#waiting % PENDING;
    if (this.#waiting >= PENDING) {
      this.#lately[this.#at] = this.#pending[slot];
      this.#at = (this.#at + 1) % LATELY;
      this.most = most(this.#lately);
    }
    this.#pending[slot] = gain;
    this.#waiting += 1;
  }
}

/** Who falls silent with the sound was perhaps the sound: of another loudspeaker, say. Then it has to be learned anew. */
class Suspicion {
  #nearSounding = 0;
  #nearSilent = 0;
  #sounding = false;

  /**
   * @param {boolean} sounding
   * @param {boolean} near
   * @returns {boolean} it begins to sound, and nobody talked on when it last fell silent although somebody seemed to talk
   */
  note(sounding, near) {
    const begins = sounding && !this.#sounding;
    const suspicious = begins && this.#nearSounding >= FEW && this.#nearSilent < FEW;
    if (begins) this.#nearSounding = this.#nearSilent = 0;
    this.#sounding = sounding;
    if (near && sounding) this.#nearSounding += 1;
    else if (near) this.#nearSilent += 1;
    return suspicious;
  }
}

/**
 * Of a block that ends at `time` on the context's clock. level: of the microphone; explained: what the sound accounts for of
 * it, with a margin; near: there is more, and it is not like the sound.
 *
 * @typedef {{ time: number, level: number, played: number, explained: number, near: boolean }} EchoReport
 */

/** Of the microphone, and of what was played meanwhile. @typedef {{ time: number, mic: Float32Array, played: Float32Array }} EchoBlock */

export class EchoModel {
  #path = new EchoPath();
  /** How loud the last blocks were. */
  #playedLevels = new Float64Array(REACH);
  #echoLevels = new Float64Array(REACH);
  #at = 0;
  #unexplained = new Unexplained();
  #suspicion = new Suspicion();
  #errorPower = 0;
  #echoPower = 0;
  #common = 0;
  #noise = LEAST_NOISE;
  #peak = 0;

  /**
   * The next block.
   *
   * @param {EchoBlock} block
   * @returns {EchoReport}
   */
  judge({ time, mic, played: sound }) {
    const path = this.#path;
    path.explain(sound, mic);
    const level = rms(mic);
    const played = rms(sound);
    const residual = rms(path.error);
    this.#playedLevels[this.#at] = played;
    this.#echoLevels[this.#at] = rms(path.echo);
    this.#at = (this.#at + 1) % REACH;
    const loudest = most(this.#playedLevels);
    const echo = most(this.#echoLevels);
    const allowance = MARGIN * Math.max(this.#unexplained.most * loudest, CHANGE * echo);
    const sounding = loudest > INAUDIBLE;
    this.#peak = Math.max(this.#peak * 0.999, loudest);
    const telling = loudest > TELLING * this.#peak;
    const like = this.#likeness() > LIKENESS;
    const near =
      residual > (sounding ? allowance : 0) + NOISE_MARGIN * this.#noise && !(sounding && like);
    if (this.#suspicion.note(sounding, near)) this.#unexplained.forget();
    if (sounding && telling) {
      path.learn(near ? 0.1 : 1);
      this.#unexplained.note(Math.max(0, residual - this.#noise) / loudest, near);
    } else if (!sounding) this.#noise = Math.max(LEAST_NOISE, Math.min(this.#noise * 1.01, level));
    return { time, level, played, explained: Math.hypot(rms(path.echo), allowance), near };
  }

  /** Of what is unexplained to the echo: 1 where it is only the echo's loudness that was wrong. */
  #likeness() {
    const { error, echo } = this.#path;
    let [e, y, c] = [0, 0, 0];
    for (let i = 0; i < BLOCK; i += 1) {
      e += error[i] * error[i];
      y += echo[i] * echo[i];
      c += error[i] * echo[i];
    }
    this.#errorPower = 0.6 * this.#errorPower + e;
    this.#echoPower = 0.6 * this.#echoPower + y;
    this.#common = 0.6 * this.#common + c;
    return Math.abs(this.#common) / (Math.sqrt(this.#errorPower * this.#echoPower) + TINY);
  }
}

/** @param {Float64Array} values */
function most(values) {
  let found = 0;
  for (let i = 0; i < values.length; i += 1) found = Math.max(found, values[i]);
  return found;
}

/** @param {Float32Array | Float64Array} samples */
function rms(samples) {
  let sum = 0;
  for (let i = 0; i < samples.length; i += 1) sum += samples[i] * samples[i];
  return Math.sqrt(sum / samples.length);
}
