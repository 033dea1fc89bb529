// A line over time in an SVG, with a clip that shows it up to a moment.

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 480;
const HEIGHT = 200;
const LEFT = 62;
const RIGHT = 20;
const TOP = 12;
const BOTTOM = 34;
let clips = 0;

function node(name, attributes = {}, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A number of the form 1, 2 or 5 times a power of ten, at least this. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value * (1 - 1e-9));
}

/** Ticks from 0 to at least `most`, four to five of them. */
function ticks(most) {
  const step = round((most || 1) / 5);
  const found = [];
  for (let at = 0; at < (most || 1) + step * 0.999; at += step) found.push(at);
  return found;
}

/**
 * Draws `points`, pairs of seconds and a value or null, into the figure's `svg`. `most` is the top
 * of the axis and `end` its right end; `show` writes values. Returns what moves the playhead.
 */
export function draw(svg, { points, most, end, show, words, steps }) {
  const tops = ticks(most);
  const top = tops.at(-1);
  const x = (t) => LEFT + (t / end) * (WIDTH - LEFT - RIGHT);
  const y = (v) => HEIGHT - BOTTOM - (v / top) * (HEIGHT - TOP - BOTTOM);
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  const clip = `clip-${(clips += 1)}`;
  const shown = node("rect", { x: LEFT - 2, y: 0, width: WIDTH, height: HEIGHT });
  const clipping = node("clipPath", { id: clip });
  clipping.append(shown);
  const parts = [node("title", {}, words), clipping];
  for (const value of tops) {
    parts.push(
      node("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      node("text", { class: "tick", x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, value ? show(value) : "0"),
    );
  }
  for (const time of ticks(end).filter((at) => at <= end * 1.001)) {
    parts.push(node("text", { class: "tick", x: x(time), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, Number(time.toPrecision(3))));
  }
  parts.push(node("text", { class: "tick", x: WIDTH - RIGHT, y: HEIGHT - 3, "text-anchor": "end" }, "seconds"));
  const line = node("path", { class: "line", d: path(points, x, y, steps), "clip-path": `url(#${clip})` });
  const dot = node("circle", { class: "dot", r: 4 });
  svg.replaceChildren(...parts, line, dot);
  const at = (t) => {
    shown.setAttribute("width", Math.max(0, x(Math.min(t, end)) - LEFT + 2));
    const value = latest(points, t, steps);
    dot.setAttribute("visibility", value === null ? "hidden" : "visible");
    if (value !== null) {
      dot.setAttribute("cx", x(Math.min(t, end)));
      dot.setAttribute("cy", y(value));
    }
    return value;
  };
  at(end);
  return at;
}

/** A path through points that are there: in steps, or straight from one to the next. */
function path(points, x, y, steps) {
  let d = "";
  let before = null;
  for (const [t, value] of points) {
    if (value !== null) {
      const place = `${x(t).toFixed(1)} ${y(value).toFixed(1)}`;
      if (before === null) d += `M${place}`;
      else d += steps ? `H${x(t).toFixed(1)}V${y(value).toFixed(1)}` : `L${place}`;
    }
    before = value;
  }
  return d;
}

/** The value at a time: the last one, or between two. */
function latest(points, t, steps) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= t) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return null;
  const [from, value] = points[low - 1];
  const next = points[low];
  if (steps || value === null || !next || next[1] === null) return value;
  return value + ((t - from) / (next[0] - from)) * (next[1] - value);
}
