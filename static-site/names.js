/* Names of packages, systems and graphics processors, as people write them.

   It follows query/words/vocabulary.py, systems.py and packages.py. */
import { own, spelled } from "./vocabulary.js";

/* The names that a package may have in Spack, given a name in any package manager. */
export const namesElsewhere = (text, { packageNames, packageForms, packagePrefixes }) => {
  const names = new Set([spelled(text)]);
  for (const name of names) {
    const known = own(packageNames, name);
    if (known) names.add(known);
    for (const [form, replacement] of packageForms) if (form.test(name)) names.add(name.replace(form, replacement));
  }
  return [...names, ...packagePrefixes.flatMap((prefix) => [...names].map((name) => prefix + name))];
};

export const packageCalled = (text, vocabulary) => {
  const known = namesElsewhere(text, vocabulary).filter((name) => vocabulary.packages.has(name));
  return known.find((name) => vocabulary.packages.get(name).total || name === text) ?? known[0];
};

export const providersOf = (name, { providers }) => own(providers, name.toLowerCase()) ?? [];

/* The newest system of a name: `ubuntu` is `ubuntu24.04`, `redhat8.9` is `rhel8`. */
export const newestSystem = (name, { patterns, systems, systemNames, systemsOfSpack }) => {
  if (systems.includes(name)) return name;
  const match = patterns.system.exec(name.replace(patterns.notInSystems, ""));
  if (!match) return undefined;
  const system = (own(systemNames, match[1]) ?? match[1]) + match[2];
  const withoutDots = (text) => text.replaceAll(".", "");
  const isLonger = (longer, shorter) =>
    longer.startsWith(shorter) && (/\d$/.test(shorter) ? /^\.[\d.]+$/ : /^[\d.]+$/).test(longer.slice(shorter.length));
  // The systems of the vocabulary are in the order of their versions.
  const newest = systems.findLast((other) => withoutDots(other) === withoutDots(system))
    ?? systems.findLast((other) => isLonger(other, system) || isLonger(system, other));
  return newest ?? (systemsOfSpack.includes(system.replace(/[\d.]+$/, "")) ? system : undefined);
};

export const gpuCondition = (name, { patterns, gpus }) => {
  const architecture = patterns.gpuArchitecture.exec(name)?.groups;
  if (architecture?.cuda) return `cuda_arch=${architecture.cuda}`;
  if (architecture) return `amdgpu_target=${name}`;
  return own(gpus, patterns.gpu.exec(name)?.groups.name ?? "");
};

/* How a word occurs in a name, the best first: a part of it, its beginning, its end, or inside. */
const occurrence = (word, name, { shortestPart, shortestInside }) => {
  if (!name.includes(word)) return undefined;
  if (name.split("-").includes(word)) return 0;
  if (word.length < shortestPart) return undefined;
  if (`-${name}`.includes(`-${word}`)) return 1;
  if (`${name}-`.includes(`${word}-`)) return 2;
  return word.length >= shortestInside ? 3 : undefined;
};

/* The functions below return the packages that words name, each with a reason, the best first. */

const named = (name, vocabulary) => {
  const reasons = new Map();
  const called = packageCalled(name, vocabulary);
  const renamed = called === spelled(name) ? "" : `“${name}” is called ${called} in Spack`;
  if (called !== undefined) reasons.set(called, renamed);
  for (const provider of providersOf(name, vocabulary)) reasons.set(provider, `provides ${name}`);
  return reasons;
};

const withPart = (word, { packages, limits }) => {
  const found = [];
  for (const { name, total } of packages.values()) {
    const rank = occurrence(word, name, limits);
    if (rank !== undefined) found.push({ name, total, rank });
  }
  found.sort((one, other) => one.rank - other.rank || other.total - one.total || inOrder(one.name, other.name));
  return new Map(found.map(({ name }) => [name, ""]));
};

export const inOrder = (one, other) => (one < other ? -1 : Number(one > other));

/* The first reason of a package counts. */
const joined = (...groups) => {
  const all = new Map();
  for (const [name, reason] of groups.flatMap((group) => [...group])) if (!all.has(name)) all.set(name, reason);
  return all;
};

export const findPackages = (words, nouns, vocabulary) => {
  const ofNoun = nouns.map((noun) => [named(noun, vocabulary), withPart(noun.toLowerCase(), vocabulary)]);
  const byName = joined(...ofNoun.map(([names]) => names), ...ofNoun.map(([, parts]) => parts));
  if (nouns.length === 1) return byName.size ? { reasons: byName } : guessed(nouns, vocabulary);
  // Packages for all words together, and then those whose names have most of them.
  const together = named(words.join("-"), vocabulary);
  const spelledNouns = nouns.map((noun) => own(vocabulary.languagePrefixes, noun.toLowerCase()) ?? noun.toLowerCase());
  const missing = ([name]) => spelledNouns.filter((noun) => !name.includes(noun)).length;
  const mostFirst = [...byName].sort((one, other) => missing(one) - missing(other));
  const reasons = joined(together, new Map(mostFirst));
  if (!reasons.size) return guessed(nouns, vocabulary);
  const unmatched = together.size ? [] : nouns.filter((_, at) => !ofNoun[at][0].size && !ofNoun[at][1].size);
  return { reasons, unmatched };
};

/* Unknown words may be misspelled: packages with similar names, if each word has one. */
const guessed = (nouns, vocabulary) => {
  const reasons = new Map();
  for (const noun of nouns.slice(0, vocabulary.limits.guessed)) {
    const near = nearNames(noun, vocabulary);
    if (!near.length) return { reasons: new Map() };
    for (const name of near) reasons.set(name, "");
  }
  return { reasons, unmatched: nouns.slice(vocabulary.limits.guessed), isGuess: reasons.size > 0 };
};

const nearNames = (text, { packages, limits }) => {
  const all = [...packages.values()];
  const ofBuilt = closeNames(text, all.filter(({ total }) => total).map(({ name }) => name), limits);
  return ofBuilt.length ? ofBuilt : closeNames(text, all.map(({ name }) => name), limits);
};

/* Names that are similar to a text, then those that contain it, then those in it. */
const closeNames = (typed, names, { near, similarity }) => {
  const text = typed.trim().toLowerCase();
  const scored = names.map((name) => [ratio(name, text), name]).filter(([score]) => score >= similarity);
  scored.sort(([one, name], [other, otherName]) => other - one || inOrder(otherName, name));
  const similar = scored.slice(0, near).map(([, name]) => name);
  // One or two letters are in too many names, and short names in too many texts.
  const shortestFirst = (one, other) => one.length - other.length;
  const longer = names.filter((name) => text.length > 2 && name.includes(text)).sort(shortestFirst);
  const shorter = names.filter((name) => name.length > 3 && text.includes(name)).sort(shortestFirst).reverse();
  return [...new Set([...similar, ...longer, ...shorter])].slice(0, near);
};

/* The similarity of two texts, as Python's `difflib` counts it: 1 for equal ones. */
const ratio = (one, other) => 2 * common(one, other) / (one.length + other.length);

/* The characters of the longest common part, and of those on both sides of it. */
const common = (one, other) => {
  let best = { length: 0, one: 0, other: 0 };
  let before = [];
  for (let at = 0; at < one.length; at += 1) {
    const lengths = [];
    for (let there = 0; there < other.length; there += 1) {
      if (one[at] !== other[there]) continue;
      const length = (before[there - 1] ?? 0) + 1;
      lengths[there] = length;
      if (length > best.length) best = { length, one: at - length + 1, other: there - length + 1 };
    }
    before = lengths;
  }
  if (!best.length) return 0;
  return best.length + common(one.slice(0, best.one), other.slice(0, best.other))
    + common(one.slice(best.one + best.length), other.slice(best.other + best.length));
};
