/**
 * Whether the component is still on the page. Who leaves and comes back in one go, as StrictMode does, has not left; nor
 * has who was not there yet: effects of children come before. Does not know React.
 */
export class Presence {
  #here = false;
  /** It was there, and has left: what its handlers still ask for, nobody would see, or stop. */
  gone = false;

  /** @returns {() => void} to leave */
  enter() {
    this.#here = true;
    this.gone = false;
    return () => {
      this.#here = false;
      queueMicrotask(() => {
        this.gone = !this.#here;
      });
    };
  }
}
