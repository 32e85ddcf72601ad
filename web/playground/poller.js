/**
 * Reads one page of the server's own figures: once a second while this page is visible, and when asked to, never two
 * requests at once. Without a connection, or without the right to read it, it does not try: the connection's state
 * tells the reader what is wrong. Does not know what the figures mean.
 */

export const PERIOD_MS = 1000;
const TIMEOUT_MS = 5000;

export class Poller {
  #store;
  #token;
  #page;
  #inFlight = false;
  #again = false;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => string | undefined} token
   * @param {object} page
   * @param {string} page.path
   * @param {string} page.right  the capability it needs
   * @param {(text: string, at: number) => void} page.take  at: performance.now() when it was asked for
   * @param {(status: number) => void} [page.refused]
   */
  constructor(store, token, page) {
    this.#store = store;
    this.#token = token;
    this.#page = page;
  }

  start() {
    setInterval(() => this.#tick(), PERIOD_MS);
    document.addEventListener("visibilitychange", () => this.#tick());
    this.#store.subscribe(["connection"], () => this.#tick());
  }

  #tick() {
    const reachable = this.#store.state.connection.state === "open";
    if (reachable && document.visibilityState === "visible") this.readSoon();
  }

  /** Now, or once more right after the reading under way, which may have been too early. */
  readSoon() {
    if (!mayRead(this.#store.state.rights, this.#page.right)) return;
    if (this.#inFlight) this.#again = true;
    else void this.#read();
  }

  async #read() {
    this.#inFlight = true;
    const at = performance.now();
    try {
      const token = this.#token();
      const response = await fetch(this.#page.path, {
        cache: "no-store",
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.ok) this.#page.take(await response.text(), at);
      else this.#page.refused?.(response.status);
    } catch {
      // Server away or slow: the next tick tries again.
    }
    this.#inFlight = false;
    if (!this.#again) return;
    this.#again = false;
    void this.#read();
  }
}

/** @param {string[] | null} rights  null: not known yet @param {string} right */
export function mayRead(rights, right) {
  return rights?.includes(right) ?? false;
}

/**
 * Adds a reading to a history; those that come in a burst replace each other, as charts want one per period.
 * @template {{ at: number }} R
 * @param {R[]} history @param {R} reading @param {number} seconds  how far back it goes
 */
export function keepReading(history, reading, seconds) {
  const last = history.at(-1);
  if (last && reading.at - last.at < PERIOD_MS / 2) history[history.length - 1] = reading;
  else history.push(reading);
  const oldest = reading.at - seconds * 1000;
  while (history[0] && history[0].at < oldest) history.shift();
}
