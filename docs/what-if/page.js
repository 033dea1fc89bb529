// The page: a path, two remedies on it, and what comes of them.

import * as controls from "./controls.js";
import { draw } from "./chart.js";
import { Player } from "./player.js";
import * as quantities from "./quantities.js";
import * as remedies from "./remedies.js";
import { Asked } from "./workers.js";

const FRAMES = 600;
const SIDES = ["a", "b"];
const NAMES = { a: "Left", b: "Right" };
/** Milliseconds without a change before a run starts. */
const PAUSE = 120;

const $ = (id) => document.getElementById(id);
const workers = { a: new Asked(), b: new Asked() };
const player = new Player($("play"), $("moment"), $("time"));
let presets = [];
/** The preset, the values of its controls, and the ids of the choices. */
const state = { preset: null, values: {}, a: "", b: "" };
let waiting = 0;
/** Counts changes, so that an older run does not pass for the newest. */
let changes = 0;

async function start() {
  const response = await fetch("presets.json");
  presets = await response.json();
  const groups = Map.groupBy(presets, (preset) => preset.group);
  for (const [label, of] of groups) {
    const group = Object.assign(document.createElement("optgroup"), { label });
    group.append(...of.map((preset) => new Option(preset.title, preset.id)));
    $("preset").append(group);
  }
  $("preset").addEventListener("change", () => {
    choose($("preset").value, {});
    run({ play: true });
  });
  for (const side of SIDES) {
    select(side).addEventListener("change", () => {
      state[side] = select(side).value;
      run({ play: true });
    });
  }
  for (const button of document.querySelectorAll("button[data-side]")) {
    button.addEventListener("click", () => copy(button.dataset.side));
  }
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === hash()) return;
    restore();
    run({ play: false });
  });
  restore();
  await run({ play: true });
}

const select = (side) => document.querySelector(`select[name=${side}]`);

/** Takes the state from the address. */
function restore() {
  const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const known = presets.some((preset) => preset.id === said.from);
  choose(known ? said.from : presets[0].id, said);
}

function choose(id, said) {
  const preset = presets.find((of) => of.id === id);
  const read = ({ kind, value }) => {
    if (!(kind in said)) return [kind, value];
    if (typeof value === "boolean") return [kind, said[kind] === "true"];
    const number = Number(said[kind]);
    const { least, most, none } = controls.KINDS[kind];
    const takes = number === none || (number >= least && number <= most);
    return [kind, takes ? number : value];
  };
  state.preset = preset;
  state.values = Object.fromEntries(preset.controls.map(read));
  state.a = said.a ?? preset.a;
  state.b = said.b ?? preset.b;
  $("preset").value = id;
  $("about").textContent = preset.about;
  controls.build($("controls"), preset, state.values, () => {
    changed();
    clearTimeout(waiting);
    waiting = setTimeout(run, PAUSE, { play: false });
  });
}

/** From now on the page does not show what its controls say, until the run that follows is shown. */
function changed() {
  delete document.body.dataset.ready;
  return ++changes;
}

/** What differs from the preset, as the address has it. */
function hash() {
  const { preset, values, a, b } = state;
  const said = new URLSearchParams({ from: preset.id, a, b });
  for (const { kind, value } of preset.controls) {
    if (values[kind] !== value) said.set(kind, values[kind]);
  }
  return said.toString();
}

async function choicesOf(preset, values) {
  if (preset.variants) return remedies.variants(preset);
  const hop = {
    neighbour: preset.places.host[0],
    rate: `${Math.round(values.rate)} bit/s`,
    delay: `${Math.round(1e6 * values.delay)} us`,
  };
  const asked = await workers.a.ask({ want: "remedies", hop });
  return asked && remedies.choices(preset, asked.answer.remedies);
}

async function run({ play }) {
  const change = changed();
  const { preset, values } = state;
  const choices = await choicesOf(preset, values);
  if (!choices) return; // Something newer is under way.
  for (const side of SIDES) state[side] = remedies.fill(select(side), choices, state[side]);
  history.replaceState(null, "", `#${hash()}`);
  const chosen = SIDES.map((side) => choices.find((of) => of.id === state[side]));
  const lead = Math.max(...chosen.map((of) => of.lead));
  const later = lead ? [[`flows.${preset.flow}.start`, `${lead} s`]] : [];
  const path = controls.settings(preset, values, lead);
  const files = chosen.map((of) => ({
    name: preset.file, text: preset.text, settings: [...preset.settings, ...of.settings, ...path, ...later],
  }));
  chosen.forEach((of, index) => {
    document.querySelector(`#side-${SIDES[index]} .setting`).textContent = of.words && `Note: ${of.words}.`;
  });
  document.body.setAttribute("aria-busy", "true");
  const seed = values.seed ?? 1;
  const asked = await Promise.all(
    SIDES.map((side, index) => workers[side].ask({ want: "run", file: files[index], seed, frames: FRAMES })),
  );
  if (asked.includes(null)) return;
  document.body.removeAttribute("aria-busy");
  const error = asked.map((of) => of.answer.error).find(Boolean);
  $("mistake").hidden = !error;
  $("mistake").textContent = error ?? "";
  if (error) {
    $("answer").textContent = "This path cannot be run.";
    return;
  }
  const ran = asked.map((of) => of.answer.run);
  show(preset, ran, chosen);
  document.body.dataset.tookMs = Math.max(...asked.map((of) => of.took_ms)).toFixed(0);
  player.ends(runEnd(preset, ran));
  if (play) player.play({ unasked: true });
  await document_(files, seed);
  if (change === changes) document.body.dataset.ready = hash();
}

/** When nothing happens any more: at the end, or soon after the last transfer was complete. */
function runEnd(preset, ran) {
  const ends = ran.map((of) => {
    const { t_s, payload_bytes } = of.deliveries[preset.name];
    const last = payload_bytes.at(-1);
    const done = of.flows[preset.flow].completed_s !== null;
    return done ? 1.05 * t_s[payload_bytes.indexOf(last)] : of.end_s;
  });
  return Math.max(...ends);
}

function show(preset, ran, chosen) {
  const rows = ran.map((of) => of.flows[preset.flow]);
  const end = runEnd(preset, ran);
  const windows = ran.map((of) => {
    const values = of.senders[preset.name]?.cwnd_bytes ?? [];
    return values.map((value, step) => [(of.end_s * step) / FRAMES, value]);
  });
  const delivered = ran.map((of) => {
    const { t_s, payload_bytes } = of.deliveries[preset.name];
    return [[0, 0], ...t_s.map((t, index) => [t, payload_bytes[index]])];
  });
  const top = (sides) => Math.max(1, ...sides.flat().filter(([t]) => t <= end).map(([, value]) => value ?? 0));
  const charts = SIDES.flatMap((side, index) => {
    const chart = (kind, all, steps, words) => {
      const place = document.querySelector(`#side-${side} svg.${kind}`);
      const output = document.querySelector(`#side-${side} output.${kind}`);
      const points = all[index].filter(([t]) => t <= end);
      const at = draw(place, { points, most: top(all), end, show: quantities.bytes, words, steps });
      return (t) => {
        const value = at(t);
        output.textContent = value === null ? "" : quantities.bytes(value);
      };
    };
    const of = `${NAMES[side]}, ${chosen[index].label}`;
    return [
      chart("window", windows, true, `${of}: the congestion window over time`),
      chart("delivered", delivered, false, `${of}: ${quantities.bytes(rows[index].payload_bytes)} delivered over time`),
    ];
  });
  player.shows((t) => charts.forEach((at) => at(t)));
  $("answer").innerHTML = sentence(rows);
  numbers(rows);
  for (const [index, side] of SIDES.entries()) document.body.dataset[`digest${side.toUpperCase()}`] = ran[index].digest;
}

/** Which side is better, and by how much. The words are ours alone, so that it may be markup. */
function sentence(rows) {
  const [a, b] = rows;
  const left = '<b class="a">left</b>';
  const right = '<b class="b">right</b>';
  const both = a.completed_s !== null && b.completed_s !== null;
  const [x, y] = both ? [1 / a.completed_s, 1 / b.completed_s] : [a.payload_bps, b.payload_bps];
  const words = both
    ? (row) => quantities.seconds(row.completed_s)
    : (row) => quantities.rate(row.payload_bps);
  const values = `${words(a)} on the ${left}, ${words(b)} on the ${right}`;
  const what = both ? "The transfer takes" : "The receiver gets";
  if (Math.abs(x - y) <= 0.01 * Math.max(x, y)) return `No difference: ${values}.`;
  const [better, worse, side] = x > y ? [x, y, left] : [y, x, right];
  const times = worse > 0 ? `${quantities.significant(better / worse)} times as ${both ? "fast" : "much"}` : "all";
  return `${what} ${values}: ${times} on the ${side}.`;
}

const NUMBERS = [
  ["Rate of the payload", "payload_bps", quantities.rate],
  ["Transfer complete after", "completed_s", quantities.seconds],
  ["Round-trip time, median", "rtt_median_s", quantities.seconds],
  ["Round-trip time, 95th percentile", "rtt_p95_s", quantities.seconds],
  ["Queueing delay, 95th percentile", "queue_delay_p95_s", quantities.seconds],
  ["Segments sent", "segments", quantities.count],
  ["Retransmissions", "retransmissions", quantities.count],
  ["Timeouts", "timeouts", quantities.count],
];

function numbers(rows) {
  const body = document.querySelector("#numbers tbody");
  body.replaceChildren();
  for (const [label, column, show] of NUMBERS) {
    if (rows.every((row) => row[column] === null)) continue;
    const line = body.insertRow();
    const head = Object.assign(document.createElement("th"), { scope: "row", textContent: label });
    line.append(head);
    for (const row of rows) line.insertCell().textContent = row[column] === null ? "–" : show(row[column]);
  }
}

/** The scenario files to copy. */
async function document_(files, seed) {
  $("command").textContent = `lasthop run path.toml --seed ${seed}`;
  for (const [index, side] of SIDES.entries()) {
    const asked = await workers[side].ask({ want: "document", file: files[index] });
    if (asked) $(`file-${side}`).textContent = asked.answer.document ?? asked.answer.error;
  }
}

async function copy(side) {
  try {
    await navigator.clipboard.writeText($(`file-${side}`).textContent);
    $("copied").textContent = `The ${NAMES[side].toLowerCase()} file is copied.`;
  } catch {
    $("copied").textContent = "The browser does not allow it: mark the text below.";
  }
}

start().catch((error) => {
  $("answer").textContent = "The page cannot run here.";
  $("mistake").hidden = false;
  $("mistake").textContent = String(error);
});
