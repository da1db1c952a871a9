/* The rule of the site by which it proposes one build of several, and the reason that it gives.

   The ranks that the rule compares are data of Python (`browser_builds.py`), so that this is the build that a
   server would propose. */
import { chosenOptions, chosenText, nameOfOption } from "./builds.js";
import { ANCESTORS } from "./machines.js";
import { phrase } from "./words_of_builds.js";

/* The names of the ranks of a row, in their order. `onMachine` replaces `machine` if a machine is chosen. */
const RANKS = ["installed", "stable", "machine", "version", "compiler", "os", "target", "onMachine"];

/* What a row must have to be installed as it is, in the order of its `standing`. */
const STANDINGS = ["current", "complete", "portable", "address"];

/* More than the uses of any option. */
const OF_DEFAULTS = 1e9;

/* The build that is proposed: `{ row, reason }`, or null if no row can be. */
export const proposed = (builds, choices) => {
  const rows = builds.fitting(choices).filter(({ hash }) => hash);
  if (rows.length === 0) return null;
  const steps = stepsFor(rows, choices);
  const best = rows.reduce((one, other) => (isPreferred(other, one, steps) ? other : one));
  return { row: best, reason: reasonOf(best, rows, steps, choices) };
};

/* The steps of the rule, each with the rank of a row in it; larger is better. */
const stepsFor = (rows, choices) => {
  const host = chosenText(choices, "host");
  const chosen = chosenOptions(choices).map(nameOfOption);
  const hasStable = rows.some(({ version }) => version.isStable);
  const nearestFirst = [host, ...(ANCESTORS[host] ?? [])];
  const rank = (row, name) => row.ranks[RANKS.indexOf(name)];
  return [
    { name: "installed", rankOf: (row) => rank(row, "installed") },
    { name: "stable", rankOf: (row) => (hasStable ? rank(row, "stable") : 0) },
    { name: "machine", rankOf: (row) => rank(row, host ? "onMachine" : "machine") },
    { name: "version", rankOf: (row) => rank(row, "version") },
    { name: "options", rankOf: (row) => row.option.uses + (hasDefaults(row, chosen) ? OF_DEFAULTS : 0) },
    { name: "compiler", rankOf: (row) => rank(row, "compiler") },
    { name: "os", rankOf: (row) => rank(row, "os") },
    { name: "target", rankOf: (row) => (host ? -nearestFirst.indexOf(row.kind.target) : rank(row, "target")) },
    { name: "order", rankOf: (row) => -row.order },
  ];
};

/* Whether all options of a row but the chosen ones are the default ones. */
const hasDefaults = (row, chosen) => row.option.odd.every((name) => chosen.includes(name));

/* Whether a row is better than another one in the first step in which they differ. */
const isBetter = (one, other, steps) => {
  for (const { rankOf } of steps) {
    if (rankOf(one) !== rankOf(other)) return rankOf(one) > rankOf(other);
  }
  return false;
};

/* Whether a row is proposed rather than another one: a row that can be installed as it is wins over a better one. */
const isPreferred = (one, other, steps) => {
  const standing = one.standing.join("");
  const otherStanding = other.standing.join("");
  if (standing !== otherStanding) return standing > otherStanding;
  return isBetter(one, other, steps);
};

/* Why a row is proposed: the steps that excluded another one, in words. */
const reasonOf = (best, rows, steps, choices) => {
  const decided = [...decidedByStanding(best, rows, steps), ...decidedBySteps(best, rows, steps, choices)];
  if (decided.length === 0) return phrase("only");
  let others = decided.filter(({ step }) => step !== "order");
  if (others.length === 0) return phrase("first");

  // The machine stands at the beginning: the chosen one, or any if the target is generic.
  let machine = chosenText(choices, "host") ?? "";
  const isForAny = best.kind.isGeneric && others.some(({ step }) => step === "machine");
  if (!machine && isForAny) {
    machine = phrase("any machine", best.kind.family);
    others = others.filter(({ step }) => step !== "machine");
  }
  const start = machine ? phrase("chosen for", machine) : phrase("chosen");
  const words = [...new Set(others.map(({ text }) => text))];
  return words.length > 0 ? `${start}: ${words.join(", ")}` : start;
};

/* What the best row has and better rows lack, so that these were passed over. */
const decidedByStanding = (best, rows, steps) => {
  const passedOver = rows.filter((row) => row !== best && isBetter(row, best, steps));
  const decided = [];
  STANDINGS.forEach((name, place) => {
    const isLacking = passedOver.some(({ standing }) => !standing[place]);
    if (best.standing[place] && isLacking) decided.push({ step: "standing", text: phrase(name) });
  });
  return decided;
};

/* The steps that left rows out which were equal in all steps before. */
const decidedBySteps = (best, rows, steps, choices) => {
  const decided = [];
  let equal = rows;
  for (const { name, rankOf } of steps) {
    const excluded = equal.filter((row) => rankOf(row) < rankOf(best));
    // The best row, or one like it, may stand for several binaries.
    const hasEquals = name === "order" && (!best.isAlone || equal.length > 1);
    if (excluded.length > 0 || hasEquals) decided.push({ step: name, text: textOf(name, best, excluded, choices) });
    equal = equal.filter((row) => rankOf(row) === rankOf(best));
  }
  return decided;
};

/* A step in words. */
const textOf = (step, best, excluded, choices) => {
  if (step === "stable") return phrase(best.version.isStable ? "stable" : "preferred");
  if (step === "version") {
    const isNewest = excluded.every(({ version }) => version.position < best.version.position);
    return phrase(isNewest ? "newest" : "preferred");
  }
  if (step === "options") {
    const chosen = chosenOptions(choices).map(nameOfOption);
    return phrase(hasDefaults(best, chosen) ? "default options" : "commonest options");
  }
  if (step === "compiler") return best.system.exact.replace("@", " ") || phrase("no compiler");
  if (step === "os") return phrase("system", best.system.os);
  if (step === "target") {
    return chosenText(choices, "host") ? phrase("nearest") : phrase("target", best.kind.target);
  }
  return phrase(step);
};
