/** Animation frames that come when told. */
export class Frames {
  #waiting = new Set();

  schedule = (callback) => {
    const entry = { callback };
    this.#waiting.add(entry);
    return () => void this.#waiting.delete(entry);
  };

  get pending() {
    return this.#waiting.size;
  }

  next() {
    for (const entry of [...this.#waiting]) {
      if (this.#waiting.delete(entry)) entry.callback();
    }
  }
}
