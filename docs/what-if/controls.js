// The sliders: what each shows, and which settings of a scenario it makes.

import * as quantities from "./quantities.js";

/** Label, range (logarithmic unless `linear`), the value of "none" if there is one, and its words. */
export const KINDS = {
  rate: { label: "Rate of the hop", least: 32e3, most: 200e6, show: quantities.rate },
  delay: { label: "Delay, one way", least: 0.001, most: 0.6, show: quantities.seconds },
  before: { label: "Delay before the hop, one way", least: 0.001, most: 0.3, show: quantities.seconds },
  loss: { label: "Packets lost", none: 0, least: 1e-4, most: 0.2, show: quantities.share },
  burst: { label: "Lost in a row, on average", least: 1, most: 20, show: (n) => `${quantities.significant(n)} packets` },
  bit: { label: "Bit error rate", none: 0, least: 1e-9, most: 1e-4, show: (v) => (v ? v.toExponential(1) : "0") },
  gap: { label: "One loss in", least: 4096, most: 1048576, show: quantities.bytes },
  outage: { label: "Outage", none: 0, least: 0.1, most: 30, show: quantities.seconds },
  queue: { label: "Queue", least: 2, most: 10000, whole: true, show: (n) => `${n} packets` },
  window: { label: "Receive window", least: 4096, most: 64e6, whole: true, show: quantities.bytes },
  size: { label: "Size of the transfer", most: 100e6, least: 1000, whole: true, show: quantities.bytes },
  duration: { label: "Duration", least: 5, most: 600, show: quantities.seconds },
  seed: { label: "Seed", least: 1, most: 1000, linear: true, whole: true, show: quantities.count },
};

const STEPS = 400;

/** The value at a position of the slider, 0 to STEPS. */
export function valueAt(kind, position) {
  const { least, most, none, linear, whole } = KINDS[kind];
  if (none !== undefined && position === 0) return none;
  const share = position / STEPS;
  const value = linear ? least + share * (most - least) : least * (most / least) ** share;
  const round = linear || (whole && value < 100) ? Math.round(value) : quantities.rounded(value);
  return Math.min(most, Math.max(least, round));
}

/** The position that is nearest to a value. */
export function positionOf(kind, value) {
  const { least, most, none, linear } = KINDS[kind];
  if (value === none) return 0;
  const share = linear ? (value - least) / (most - least) : Math.log(value / least) / Math.log(most / least);
  const first = none === undefined ? 0 : 1;
  return Math.min(STEPS, Math.max(first, Math.round(share * STEPS)));
}

const us = (s) => `${Math.round(1e6 * s)} us`;
const FORMS = {
  rate: (v) => `${Math.round(v)} bit/s`,
  delay: us,
  before: us,
  loss: (v) => v,
  bit: (v) => v,
  gap: (v) => `${Math.round(v)} B`,
  queue: (v) => `${v} packets`,
  window: (v) => `${v} B`,
  size: (v) => `${v} B`,
};

/** Random losses: gone without a trace, or damaged packets that the end of the link can report. */
function errors({ loss, burst, damaged }) {
  if (!loss) return { packet: 0 };
  return { "gilbert-elliott": { loss, burst, damage: damaged ? "corruption" : "loss" } };
}

/** One outage, at a third of the run. */
function outages(values, lead) {
  const start = lead + values.duration / 3;
  return { at: [{ start: us(start), end: us(start + values.outage) }] };
}

/**
 * The settings by which a path differs from the preset's: pairs of a key and a value. `lead` is the
 * time before the flow starts, seconds, by which the run is longer.
 */
export function settings(preset, values, lead) {
  const first = Object.fromEntries(preset.controls.map(({ kind, value }) => [kind, value]));
  const moved = (...kinds) => kinds.some((kind) => kind in first && values[kind] !== first[kind]);
  const made = [];
  for (const { kind, keys } of preset.controls) {
    let value;
    if (kind === "outage") {
      if (values.outage) value = outages(values, lead);
    } else if (kind === "loss" && "burst" in first) {
      if (moved("loss", "burst", "damaged")) value = errors(values);
    } else if (kind === "duration") {
      if (moved("duration") || lead) value = us(values.duration + lead);
    } else if (kind in FORMS && moved(kind)) {
      value = FORMS[kind](values[kind]);
    }
    if (value !== undefined) made.push(...keys.map((key) => [key, value]));
  }
  return made;
}

/** Makes a slider for each control of a preset; `changed` is called when one is moved. */
export function build(container, preset, values, changed) {
  container.replaceChildren();
  for (const { kind } of preset.controls) {
    container.append(kind === "damaged" ? checkbox(values, changed) : slider(kind, values, changed));
  }
}

function slider(kind, values, changed) {
  const { label, show } = KINDS[kind];
  const words = (value) => (value === KINDS[kind].none ? "none" : show(value));
  const id = `slider-${kind}`;
  const field = Object.assign(document.createElement("div"), { className: "slider" });
  const name = Object.assign(document.createElement("label"), { htmlFor: id, textContent: label });
  const shown = Object.assign(document.createElement("output"), { htmlFor: id, textContent: words(values[kind]) });
  const input = Object.assign(document.createElement("input"), {
    type: "range", min: 0, max: STEPS, step: 1, name: kind, id,
  });
  input.value = positionOf(kind, values[kind]);
  input.setAttribute("aria-valuetext", words(values[kind]));
  input.addEventListener("input", () => {
    values[kind] = valueAt(kind, Number(input.value));
    shown.textContent = words(values[kind]);
    input.setAttribute("aria-valuetext", words(values[kind]));
    changed();
  });
  field.append(name, shown, input);
  return field;
}

function checkbox(values, changed) {
  const field = document.createElement("label");
  field.className = "check";
  const input = Object.assign(document.createElement("input"), {
    type: "checkbox", name: "damaged", checked: values.damaged,
  });
  input.addEventListener("change", () => {
    values.damaged = input.checked;
    changed();
  });
  field.append(input, "The end of the hop sees them arrive damaged, and can report it");
  return field;
}
