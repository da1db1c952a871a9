/* The values that a reader can pick on the page of a package: versions, machines, systems and options.

   A pick is `{ name, note, href, isChosen, isPast }`. Without `href`, no build has the value with the other
   choices, and the note says why. */
import { OF_MACHINE, OF_SYSTEM, chosenOptions, chosenText, runsOn } from "./builds.js";

/* Versions and systems that are shown at first. */
const MOST = 6;

/* The address with other choices; `changes` are texts by field, null for none, and lists for variants. */
const changed = (choices, changes) => {
  const pairs = choices.filter(([field]) => !(field in changes));
  for (const [field, value] of Object.entries(changes)) {
    for (const text of [value].flat()) {
      if (text) pairs.push([field, text]);
    }
  }
  return `?${new URLSearchParams(pairs)}#builds`;
};

const without = (choices, fields) => choices.filter(([field]) => !fields.includes(field));

/* The versions, the newest first, and how many are left out: `{ picks, rest }`. */
export const versionPicks = (builds, choices, proposed, isAll) => {
  const others = without(choices, ["version"]);
  const possible = new Set(builds.fitting(others).map(({ version }) => version.name));
  const pinned = chosenText(choices, "version");
  const own = proposed?.version.name ?? pinned;
  const { newestFirst } = builds;
  const picks = [];
  for (const { name, days, isPast } of newestFirst) {
    const isChosen = name === own;
    if (picks.length >= MOST && !isChosen && !isAll) continue;
    if (!possible.has(name)) {
      const reason = builds.reason(others, ({ version }) => version.name === name);
      picks.push({ name, note: reason, isChosen });
      continue;
    }
    const note = name === builds.data.newest ? "newest" : days;
    const href = changed(choices, { version: name === pinned ? null : name });
    picks.push({ name, note, href, isChosen, isPast });
  }
  return { picks, rest: newestFirst.length - picks.length };
};

/* The machines: the chosen one, if it has no place of its own, and then all processors. */
export const machinePicks = (builds, choices, proposed) => {
  const others = without(choices, OF_MACHINE);
  const possible = builds.fitting(others);
  const picks = [];
  const host = chosenText(choices, "host");
  if (host && !builds.processors.some(({ target }) => target === host)) {
    const note = proposed ? `${proposed.kind.target} build` : "none";
    picks.push({ name: host, note, href: changed(choices, { host: null }), isChosen: true });
  }
  for (const processor of builds.processors) {
    const { name, note } = processor;
    const isPinned = isPinnedProcessor(processor, choices);
    const isChosen = isPinned || isOfProposed(processor, choices, proposed);
    const runs = (row) => runsOnProcessor(row, processor);
    if (!possible.some(runs)) {
      picks.push({ name, note: builds.reason(others, runs), isChosen });
      continue;
    }
    const machine = isPinned ? {} : { host: processor.host, platform: processor.hostPlatform };
    const href = changed(choices, { host: null, platform: null, target: null, ...machine });
    picks.push({ name, note: note || "only this processor", href, isChosen });
  }
  return { picks, rest: 0 };
};

/* Whether a row runs on a processor; that of macOS has no target. */
const runsOnProcessor = ({ kind }, { platform, target }) =>
  kind.platform === platform && (!target || runsOn(kind, target));

/* Whether the choices are those of a processor. */
const isPinnedProcessor = (processor, choices) => {
  const host = chosenText(choices, "host") ?? "";
  const platform = chosenText(choices, "platform") ?? "";
  const isSame = host === processor.host && platform === processor.hostPlatform;
  return isSame && !chosenText(choices, "target");
};

/* Whether the proposed build is that of a processor, though the choices do not name it. */
const isOfProposed = (processor, choices, proposed) => {
  if (!proposed) return false;
  const host = chosenText(choices, "host");
  // The machine of the whole site has no platform.
  if (host) return host === processor.host && !chosenText(choices, "target") && runsOnProcessor(proposed, processor);
  const { platform, target } = processor;
  return proposed.kind.platform === platform && (!target || proposed.kind.target === target);
};

/* The systems, those with the most binaries first. */
export const systemPicks = (builds, choices, proposed) => {
  const others = without(choices, OF_SYSTEM);
  const possible = new Set(builds.fitting(others).map(({ system }) => system));
  const mostFirst = systemsByCount(builds);
  const picks = [];
  for (const system of mostFirst) {
    const { os, compiler, osName, compilerName } = system;
    const isPinned = os === chosenText(choices, "os") && compiler === chosenText(choices, "compiler");
    const isChosen = proposed ? proposed.system === system : isPinned;
    if (picks.length >= MOST && !isChosen) continue;
    if (!possible.has(system)) {
      const reason = builds.reason(others, (row) => row.system === system);
      picks.push({ name: osName, note: `${compilerName}, ${reason}`, isChosen });
      continue;
    }
    const pair = isPinned ? { os: null, compiler: null } : { os, compiler };
    picks.push({ name: osName, note: compilerName, href: changed(choices, pair), isChosen });
  }
  return { picks, rest: mostFirst.length - picks.length };
};

const systemsByCount = ({ systems, rows }) => {
  const counts = new Map(systems.map((system) => [system, 0]));
  for (const { system, count } of rows) counts.set(system, counts.get(system) + count);
  return [...systems].sort((one, other) => counts.get(other) - counts.get(one));
};

/* The state of the switch of an option: `{ isOn, isOwn, opposite, href, reason }`.

   `isOwn` says whether the proposed build has the option at all; `opposite` is what the switch leads to.
   Without `href`, no build has that, and `reason` says why. */
export const switchOf = (builds, choices, proposed, name, wasOn) => {
  const on = `+${name}`;
  const off = `~${name}`;
  const isOn = proposed?.option.texts.includes(on) ?? wasOn;
  const isOwn = !proposed || isOn || proposed.option.texts.includes(off);
  const opposite = isOn ? off : on;
  const others = choices.filter(([field, text]) => field !== "variant" || (text !== on && text !== off));
  const hasOpposite = ({ option }) => option.texts.includes(opposite);
  if (!builds.fitting(others).some(hasOpposite)) {
    return { isOn, isOwn, opposite, reason: builds.reason(others, hasOpposite) };
  }
  const href = changed(choices, { variant: [...chosenOptions(others), opposite] });
  return { isOn, isOwn, opposite, href };
};
