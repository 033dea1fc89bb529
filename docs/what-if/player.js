// The moment that the charts show: played, or moved by hand.

/** Seconds in which a whole run is played. */
const LASTS = 8;

export class Player {
  #button;
  #moment;
  #time;
  #end = 1;
  #show = () => {};
  #frame = 0;

  constructor(button, moment, time) {
    [this.#button, this.#moment, this.#time] = [button, moment, time];
    button.addEventListener("click", () => (this.#frame ? this.#pause() : this.play({})));
    moment.addEventListener("input", () => {
      this.#pause();
      this.#at(Number(moment.value) / 1000);
    });
  }

  /** What shows a moment, given seconds. */
  shows(show) {
    this.#show = show;
  }

  /** The end of the run, at which it stands then. */
  ends(end) {
    this.#pause();
    this.#end = end;
    this.#at(1);
  }

  /** Plays from the moment on, or from the beginning; unasked only if the user has nothing against it. */
  play({ unasked = false }) {
    if (unasked && matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    let share = Number(this.#moment.value) / 1000;
    if (share >= 1) share = 0;
    let before = performance.now();
    const step = (now) => {
      share = Math.min(1, share + (now - before) / 1000 / LASTS);
      before = now;
      this.#at(share);
      if (share < 1) this.#frame = requestAnimationFrame(step);
      else this.#pause();
    };
    this.#button.textContent = "Pause";
    this.#frame = requestAnimationFrame(step);
  }

  #pause() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#button.textContent = "Play";
  }

  #at(share) {
    this.#moment.value = Math.round(1000 * share);
    const t = share * this.#end;
    const words = `${t.toPrecision(3)} s`;
    this.#time.textContent = words;
    this.#moment.setAttribute("aria-valuetext", words);
    this.#show(t);
  }
}
