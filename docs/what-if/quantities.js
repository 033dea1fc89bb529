// Numbers as people read them, and as scenario files have them.

function scaled(value, units, step) {
  let at = 0;
  while (at + 1 < units.length && value >= step) {
    value /= step;
    at += 1;
  }
  return `${significant(value)} ${units[at]}`;
}

/** Three digits, without zeros behind the point. */
export function significant(value) {
  if (value >= 1000) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

export const rate = (bps) => scaled(bps, ["b/s", "kb/s", "Mb/s", "Gb/s"], 1000);
export const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB"], 1000);
export const seconds = (s) => (s < 1 ? `${significant(1000 * s)} ms` : `${significant(s)} s`);
export const share = (value) => (value < 0.001 && value > 0 ? value.toExponential(1) : `${significant(100 * value)} %`);
export const count = (value) => String(value);

/** A value rounded to two digits, as sliders have it. */
export const rounded = (value) => Number(value.toPrecision(2));
