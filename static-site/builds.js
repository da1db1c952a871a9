/* The builds of a package, and which of them a server would propose.

   Python makes the data (`browser_builds.py`): the ranks by which the rule of the site compares builds,
   and the order of its steps. This module leaves out the builds that do not have what is chosen, and takes
   the first of the others. */
import { ANCESTORS, IS_MAC, MAC } from "./machines.js";
import { MOST_OPTIONS, PHRASES } from "./phrases.js";

/* The fields of an address, and those of a machine and of a system. */
const FIELDS = ["host", "version", "compiler", "os", "platform", "target", "variant"];
export const OF_MACHINE = ["host", "platform", "target"];
export const OF_SYSTEM = ["compiler", "os"];

/* Returns a phrase of the site with a text in it. */
const phrase = (name, text = "") => PHRASES[name].replace("{}", text);

/* Returns whether a build, a platform and a target, runs on a machine. */
export const runsOn = ({ platform, target }, host) => {
  const hasPlatform = IS_MAC[host] === undefined || IS_MAC[host] === (platform === MAC);
  return hasPlatform && (target === host || (ANCESTORS[host] ?? []).includes(target));
};

export class Builds {
  constructor(data) {
    const texts = data.options.texts;
    this.data = data;
    this.versions = data.versions.map(([name, days, isPast, isStable, position]) =>
      ({ name, days, isPast: Boolean(isPast), isStable: Boolean(isStable), position }));
    this.systems = data.systems.map(([os, compiler, osName, compilerName, exact]) =>
      ({ os, compiler, osName, compilerName, exact }));
    this.kinds = data.builds.map(([platform, target, family, isGeneric]) =>
      ({ platform, target, family, isGeneric: Boolean(isGeneric) }));
    this.processors = data.processors.map(([name, note, host, hostPlatform, target, platform]) =>
      ({ name, note, host, hostPlatform, target, platform }));
    this.options = data.options.pairs.map(([set, uses, odd, described]) => ({
      texts: data.options.sets[set].map((key) => texts[key]), uses, odd, described: described.map((key) => texts[key]),
    }));
    this.rows = data.rows.map(([version, system, kind, option, count, ranks, standing, order, card, hash, length, shown, size, isAlone]) => ({
      version: this.versions[version], system: this.systems[system], kind: this.kinds[kind],
      option: this.options[option], count, ranks, standing, order, card, hash, length, shown, size, isAlone: Boolean(isAlone),
    }));
    this.newest = this.versions.reduce((one, other) => (other.position > one.position ? other : one)).name;
  }

  /* The choices of an address: pairs of a field and its text, in the order in which sentences name them. */
  static choices(search) {
    const choices = [...new URLSearchParams(search)].filter(([field, text]) => FIELDS.includes(field) && text);
    return choices.sort(([one], [other]) => FIELDS.indexOf(one) - FIELDS.indexOf(other));
  }

  has(row, [field, text]) {
    switch (field) {
      case "version": return row.version.name === text;
      case "os": return row.system.os === text;
      case "compiler": return row.system.compiler === text || row.system.compiler.startsWith(`${text}@`);
      case "platform": return row.kind.platform === text;
      case "target": return row.kind.target === text || `${row.kind.family}:` === text;
      case "host": return runsOn(row.kind, text);
      default: return row.option.texts.includes(text);
    }
  }

  fitting(choices) {
    return this.rows.filter((row) => choices.every((choice) => this.has(row, choice)));
  }

  /* Why no row that passes a test has all choices: those that the nearest row lacks. */
  reason(choices, test) {
    let fewest = null;
    for (const row of this.rows.filter(test)) {
      const missed = choices.filter((choice) => !this.has(row, choice));
      if (fewest === null || missed.length < fewest.length) fewest = missed;
    }
    if (!fewest?.length) return `no ${this.data.noun}`;
    const phrases = fewest.map(([field, text]) => `${this.data.prepositions[field] ?? "with"} ${this.nameOf(field, text)}`);
    return `none ${phrases.join(" ")}`;
  }

  nameOf(field, text) {
    if (field === "os") return this.systems.find(({ os }) => os === text)?.osName ?? text;
    if (field === "compiler") return this.systems.find(({ compiler }) => compiler === text)?.compilerName ?? text;
    return text;
  }

  /* The steps of the rule, as functions that return the rank of a row; larger is better. */
  steps(rows, choices) {
    const host = choices.find(([field]) => field === "host")?.[1];
    const named = choices.filter(([field]) => field === "variant").map(([, text]) => nameOfOption(text));
    const nearest = host ? [host, ...(ANCESTORS[host] ?? [])] : [];
    const hasStable = rows.some((row) => row.version.isStable);
    return [
      ["installed", (row) => row.ranks[0]],
      ["stable", (row) => (hasStable ? row.ranks[1] : 0)],
      ["machine", (row) => row.ranks[host ? 7 : 2]],
      ["version", (row) => row.ranks[3]],
      ["options", (row) => (hasDefaults(row, named) ? 1e9 : 0) + row.option.uses],
      ["compiler", (row) => row.ranks[4]],
      ["os", (row) => row.ranks[5]],
      ["target", (row) => (host ? -nearest.indexOf(row.kind.target) : row.ranks[6])],
      ["order", (row) => -row.order],
    ];
  }

  /* The proposed row, and why it is proposed; null if none can be. */
  proposed(choices) {
    const rows = this.fitting(choices).filter(({ hash }) => hash);
    if (!rows.length) return null;
    const steps = this.steps(rows, choices);
    const better = (one, other) => {
      const [, rank] = steps.find(([, rankOf]) => rankOf(one) !== rankOf(other)) ?? [null, () => 0];
      return rank(one) > rank(other);
    };
    const standing = (row) => row.standing.join("");
    const best = rows.reduce((one, other) => {
      if (standing(one) !== standing(other)) return standing(one) > standing(other) ? one : other;
      return better(other, one) ? other : one;
    });
    return { row: best, reason: reasonOf(best, rows, steps, better, choices) };
  }

  /* The build in a few words, such as `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04, x86_64_v3`. */
  words(row, choices) {
    const pinned = choices.filter(([field]) => field === "variant").map(([, text]) => text);
    const ofVersion = this.fitting(choices).filter(({ version }) => version === row.version);
    // Without package data, the options by which builds of the version differ describe it.
    const differs = (text) => (this.data.options.hasDefaults
      ? row.option.described.includes(text) : !ofVersion.every(({ option }) => option.texts.includes(text)));
    const options = row.option.texts.filter((text) => !this.data.unnamed.includes(nameOfOption(text))
      && (pinned.includes(text) || differs(text)));
    let name = [`${this.data.package}@${row.version.name}`, ...options.slice(0, MOST_OPTIONS)].join(" ");
    if (options.length > MOST_OPTIONS) name += ` ${phrase("more options", options.length - MOST_OPTIONS)}`;
    const compiler = row.system.exact.replace("@", " ");
    return [name, ...(compiler ? [compiler] : []), row.system.os, row.kind.target].join(", ");
  }

  /* The row as the spec of a spack.yaml. */
  entry(row) {
    const version = row.version.name.includes("=") ? row.version.name : `=${row.version.name}`;
    const compiler = row.system.exact ? [`%${row.system.exact.replace("@", "@=")}`] : [];
    return [`${this.data.package}@${version}`, ...row.option.texts, `platform=${row.kind.platform}`,
      `os=${row.system.os}`, `target=${row.kind.target}`, ...compiler].join(" ");
  }
}

/* The name of an option: `mpi` of `+mpi`, and `api` of `api=default`. */
export const nameOfOption = (text) => text.replace(/^[+~]+/, "").split(/:?=/)[0];

const hasDefaults = (row, named) => row.option.odd.every((name) => named.includes(name));

/* Why a row is proposed: the steps that excluded another one. */
const reasonOf = (best, rows, steps, better, choices) => {
  const host = choices.find(([field]) => field === "host")?.[1];
  const decided = [];
  const passedOver = rows.filter((row) => row !== best && better(row, best));
  ["current", "complete", "portable", "address"].forEach((name, place) => {
    if (best.standing[place] && passedOver.some((row) => !row.standing[place])) decided.push(["standing", phrase(name)]);
  });
  let equal = rows;
  for (const [step, rank] of steps) {
    const excluded = equal.filter((row) => rank(row) < rank(best));
    const hasEquals = step === "order" && (!best.isAlone || equal.length > 1);
    if (excluded.length || hasEquals) decided.push([step, phraseOf(step, best, excluded, choices)]);
    equal = equal.filter((row) => rank(row) === rank(best));
  }
  if (!decided.length) return phrase("only");
  let phrases = decided.filter(([step]) => step !== "order");
  if (!phrases.length) return phrase("first");
  let machine = host ?? "";
  if (!host && best.kind.isGeneric && phrases.some(([step]) => step === "machine")) {
    machine = phrase("any machine", best.kind.family);
    phrases = phrases.filter(([step]) => step !== "machine");
  }
  const chosen = machine ? phrase("chosen for", machine) : phrase("chosen");
  const text = [...new Set(phrases.map(([, words]) => words))].join(", ");
  return text ? `${chosen}: ${text}` : chosen;
};

const phraseOf = (step, best, excluded, choices) => {
  const named = choices.filter(([field]) => field === "variant").map(([, text]) => nameOfOption(text));
  const host = choices.some(([field]) => field === "host");
  switch (step) {
    case "stable": return phrase(best.version.isStable ? "stable" : "preferred");
    case "version": {
      const isNewest = excluded.every((row) => row.version.position < best.version.position);
      return phrase(isNewest ? "newest" : "preferred");
    }
    case "options": return phrase(hasDefaults(best, named) ? "default options" : "commonest options");
    case "compiler": return best.system.exact.replace("@", " ") || phrase("no compiler");
    case "os": return phrase("system", best.system.os);
    case "target": return host ? phrase("nearest") : phrase("target", best.kind.target);
    default: return phrase(step);
  }
};
