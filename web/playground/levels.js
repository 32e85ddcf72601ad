/**
 * How loud it was, from the first sample on: the loudest of each twentieth of a second, for how long there has been
 * no sound at all, and when somebody talked. Pure; draws nothing.
 */

export const LEVELS_PER_SECOND = 20;
const FIRST_CAPACITY = 1_200;
/** What a muted microphone gives: −66 dB is below any room. */
const SOUND = 0.0005;

export class Levels {
  /** 0…1, one per bin. */
  #values = new Float32Array(FIRST_CAPACITY);
  #lastSound = 0;
  /** Up to the newest. */
  seconds = 0;

  /** @param {number} peak  0…1 @param {number} atSeconds  where it ends; never earlier than the one before */
  push(peak, atSeconds) {
    const from = Math.floor(this.seconds * LEVELS_PER_SECOND);
    this.seconds = Math.max(this.seconds, atSeconds);
    const to = Math.floor(this.seconds * LEVELS_PER_SECOND);
    if (to >= this.#values.length) this.#grow(to + 1);
    for (let bin = from; bin <= to; bin += 1) {
      this.#values[bin] = Math.max(this.#values[bin] ?? 0, peak);
    }
    if (peak > SOUND) this.#lastSound = this.seconds;
  }

  /** Seconds since there was any sound. */
  get silence() {
    return this.seconds - this.#lastSound;
  }

  /** The loudest between two times. @param {number} fromSeconds @param {number} toSeconds */
  between(fromSeconds, toSeconds) {
    const from = Math.max(0, Math.floor(fromSeconds * LEVELS_PER_SECOND));
    const to = Math.max(from + 1, Math.ceil(toSeconds * LEVELS_PER_SECOND));
    let loudest = 0;
    for (let bin = from; bin < Math.min(to, this.#values.length); bin += 1) {
      loudest = Math.max(loudest, this.#values[bin] ?? 0);
    }
    return loudest;
  }

  /** @param {number} bins */
  #grow(bins) {
    const values = new Float32Array(Math.max(bins, 2 * this.#values.length));
    values.set(this.#values);
    this.#values = values;
  }
}

/** When somebody talked, as the server heard it. */
export class Talk {
  /** In order; the last one may be open. @type {{ start: number, end: number }[]} */
  spans = [];
  #open = false;

  /** @param {number} atSeconds */
  begin(atSeconds) {
    if (this.#open) return;
    this.#open = true;
    this.spans.push({ start: atSeconds, end: Number.POSITIVE_INFINITY });
  }

  /** @param {number} atSeconds */
  end(atSeconds) {
    const last = this.spans.at(-1);
    if (last && this.#open) last.end = Math.max(last.start, atSeconds);
    this.#open = false;
  }

  /** Whether there was any between two times. @param {number} fromSeconds @param {number} toSeconds */
  between(fromSeconds, toSeconds) {
    let low = 0;
    let high = this.spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.spans[middle]?.end ?? 0) <= fromSeconds) low = middle + 1;
      else high = middle;
    }
    return (this.spans[low]?.start ?? Number.POSITIVE_INFINITY) < toSeconds;
  }
}
