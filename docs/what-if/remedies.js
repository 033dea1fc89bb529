// What can be chosen for a side: the variants of a published experiment, or the engine's remedies.

const NONE = { id: "as-is", label: "as it is", settings: [], lead: 0, words: "" };

/** The variants of a preset that has some. */
export function variants(preset) {
  return preset.variants.map(({ name, settings }) => ({
    id: name, label: name, group: "", settings, lead: 0, words: "",
  }));
}

/** The engine's remedies for the flow of a preset, as choices. */
export function choices(preset, remedies) {
  const found = [NONE, ...remedies.filter((of) => suits(preset, of)).map((of) => choice(preset, of))];
  const ids = new Map();
  for (const of of found) {
    const times = (ids.get(of.id) ?? 0) + 1;
    ids.set(of.id, times);
    if (times > 1) of.id += `-${times}`;
  }
  return found;
}

/** Whether the host that would have to be warned before it moves is there. */
function suits(preset, remedy) {
  return !remedy.needs.includes("warning");
}

function choice(preset, remedy) {
  const settings = [];
  for (const [place, key, value] of remedy.settings) {
    if (place === "tcp") settings.push([`flows.${preset.flow}.tcp.${key}`, value]);
    else if (place === "link") settings.push([`${preset.link}.${key}`, value]);
    else if (place === "flow") settings.push([`flows.${preset.flow}.${key}`, value]);
    else for (const node of preset.places[place]) settings.push([`nodes.${node}.${key}`, value]);
  }
  const parts = remedy.settings.flatMap(([, key, value]) => describe(key, value));
  const label = remedy.name ? `${remedy.name}${remedy.settings.some(everyHole) ? ", every hole" : ""}` : parts.join(", ");
  // A number of packets follows the path, and the choice stays.
  const id = label.replace(/\d+ packets/, "packets").replaceAll(" ", "-");
  return { id, label, group: group(remedy), settings, lead: remedy.lead_s, words: words(remedy) };
}

function everyHole([, key, value]) {
  return key === "mechanisms" && value.some((of) => of.every_hole);
}

/** A setting in words, without numbers, which follow the path. */
function describe(key, value) {
  if (key === "queue") return [describeQueue(value)];
  if (key === "coding") return [`erasure coding ${value.strength}`];
  const entries = { boxes: "box", mechanisms: "mechanism" }[key];
  if (entries) {
    return value.map(({ [entries]: name, ...rest }) => ("rate" in rest ? `${name} with the hop's rate` : name));
  }
  if (value === true) return [key.replaceAll("_", " ")];
  if (typeof value === "object") return [`${key} ${Object.values(value).join(" ")}`];
  return [`${key.replaceAll("_", " ")} ${value}`];
}

function describeQueue(value) {
  if (typeof value === "string") return `queue of ${value}`;
  const [[name, settings]] = Object.entries(value);
  return `${name}${settings.ecn ? " that marks" : ""} as the queue`;
}

const has = (remedy, ...needs) => needs.every((need) => remedy.needs.includes(need));

/** Who has to change something. */
function group(remedy) {
  if (!remedy.buildable) return "Cannot be built: how much there is to be won";
  if (has(remedy, "host agent")) return "A node on the path and the host behind the hop";
  if (has(remedy, "middlebox")) {
    return has(remedy, "sender") ? "A node on the path, and one end or both" : "A node on the path";
  }
  if (has(remedy, "sender", "receiver")) return "Both ends";
  return has(remedy, "sender") ? "The sender" : "The receiver";
}

const COSTS = {
  "clear headers": "it reads TCP headers: not with IPsec",
  "split connection": "acknowledgments no longer come from the receiver",
  "both directions": "both directions must pass there",
  "hop transport": "the hop has a transport of its own without congestion control",
  ipsec: "IPsec between the hosts, over IPv6",
};

function words(remedy) {
  return remedy.needs.filter((need) => need in COSTS).map((need) => COSTS[need]).join("; ");
}

/** Fills a select with choices, by their groups; the one with this id is chosen, or else the first. */
export function fill(select, choices, id) {
  select.replaceChildren();
  const groups = new Map();
  for (const { id: value, label, group } of choices) {
    const option = new Option(label, value);
    if (!group) {
      select.append(option);
      continue;
    }
    if (!groups.has(group)) {
      const made = Object.assign(document.createElement("optgroup"), { label: group });
      groups.set(group, made);
      select.append(made);
    }
    groups.get(group).append(option);
  }
  const known = choices.some((of) => of.id === id);
  select.value = known ? id : choices[0].id;
  return select.value;
}
