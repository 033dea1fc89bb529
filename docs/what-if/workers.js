// Workers, and what is asked of them. A new question to a worker that is busy replaces the old one.

export class Asked {
  #worker = null;
  #asked = null;
  #count = 0;

  constructor() {
    this.#start();
  }

  #start() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", ({ data }) => {
      if (data.id !== this.#asked?.id) return;
      const { resolve } = this.#asked;
      this.#asked = null;
      // A trap leaves the module in no state to go on.
      if (data.answer.error?.startsWith("internal error")) this.#restart();
      resolve(data);
    });
  }

  #restart() {
    this.#worker.terminate();
    this.#start();
  }

  /** The answer to a request and how long it took; null if another was asked before it was there. */
  ask(request) {
    if (this.#asked) {
      this.#asked.resolve(null);
      this.#asked = null;
      this.#restart();
    }
    return new Promise((resolve) => {
      this.#asked = { id: ++this.#count, resolve };
      this.#worker.postMessage({ id: this.#count, request });
    });
  }
}
