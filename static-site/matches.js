/* The builds of packages: which of them satisfy what a search asks for.

   A token is a part of a search: `{ kind: "compiler", text: "%gcc@13", words: ["gcc", "13"] }`. */
import { optionOf, own } from "./vocabulary.js";

/* Whether a machine can have a platform: a Mac has that of macOS, and all other machines have others. */
const hasPlatform = (platform, machine, { macs, mac }) => {
  const isMac = own(macs, machine);
  return isMac === undefined || isMac === (platform === mac);
};

/* Whether binaries for a target run on another one; the list of a target begins with its family. */
const runsOn = (target, other, { targets }) => target === other || (own(targets, other)?.slice(1).includes(target) ?? false);

const targetMatches = (constraint, target, vocabulary) => constraint.split(",").some((part) => {
  const [low, high] = part.split(":");
  if (high === undefined) return low === target;
  return (!low || runsOn(low, target, vocabulary)) && (!high || runsOn(target, high, vocabulary));
});

/* Whether a version is the one that a constraint names, or in its range; undefined for other constraints. */
const versionMatches = (constraint, version) => {
  if (!/^(?:=?[\w.-]+|[\d.]*:[\d.]*)$/.test(constraint)) return undefined;
  if (constraint[0] === "=") return version === constraint.slice(1);
  const [low, high] = constraint.split(":");
  if (high === undefined) return begins(version, low);
  return (!low || compared(version, low) >= 0) && (!high || begins(version, high) || compared(version, high) <= 0);
};

const begins = (version, start) => version === start || version.startsWith(`${start}.`);

/* More than 0 if the first version is the newer one; NaN if a version has other parts than numbers. */
const compared = (one, other) => {
  const numbers = [one, other].map((version) => version.split(".").map(Number));
  const length = Math.max(numbers[0].length, numbers[1].length);
  for (let at = 0; at < length; at += 1) {
    // A version with more parts is newer: 1.12.1 than 1.12.
    const difference = (numbers[0][at] ?? -1) - (numbers[1][at] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
};

/* The versions of a package that a constraint such as `1.14` or `1.12:` allows; all for one that is not read here. */
export const versionsOf = ({ versions }, constraint) =>
  versions.filter((version) => versionMatches(constraint, version) !== false);

const compilerMatches = (constraint, compiler) => {
  const [name, version] = constraint.slice(1).split("@");
  const [ofBinary, versionOfBinary = ""] = compiler.split("@");
  return name === ofBinary && (version === undefined || versionMatches(version, versionOfBinary) === true);
};

/* `aarch64:` in `target=aarch64:`. */
const constraintOf = (text) => text.slice("target=".length);

/* `zen3` in `target=:zen3`, which is a machine; undefined for other targets. */
const machineOf = (text) => /^target=:([\w.-]+)$/.exec(text)?.[1];

const hasOption = (text, options) => {
  const { name, values } = optionOf(text);
  return options.some((option) => option.name === name && values.every((value) => option.values.includes(value)));
};

/* Whether a build satisfies a token, by the kind of the token. The version of a build is not in the vocabulary, nor
   are its dependencies, releases and stacks. */
const tests = {
  compiler: (text, { toolchain }) => compilerMatches(text, toolchain.compiler),
  os: (text, { toolchain }) => text === `os=${toolchain.os}`,
  platform: (text, { toolchain }) => text === `platform=${toolchain.platform}`,
  target: (text, { toolchain }, vocabulary) => targetMatches(constraintOf(text), toolchain.target, vocabulary)
    && (!machineOf(text) || hasPlatform(toolchain.platform, machineOf(text), vocabulary)),
  variant: (text, { options }) => hasOption(text, options),
};

/* The builds of a package that satisfy the tokens. */
export const buildsOf = (found, tokens, vocabulary) => {
  const tested = tokens.filter(({ kind }) => kind in tests);
  return found.builds.filter((build) => tested.every(({ kind, text }) => tests[kind](text, build, vocabulary)));
};

/* The packages of an answer, each with the number of binaries that satisfy the tokens; 0 if it has no such version. */
export const rows = (names, tokens, vocabulary) => names.map(([name, reason]) => {
  const found = vocabulary.packages.get(name);
  const asked = versionAsked(name, tokens);
  const hasVersion = asked === "" || versionsOf(found, asked).length > 0;
  const count = buildsOf(found, tokens, vocabulary).reduce((sum, build) => sum + build.count, 0);
  return { name, reason, total: found.total, count: hasVersion ? count : 0 };
});

/* The version that the tokens ask of a package, or "". */
const versionAsked = (name, tokens) => {
  const asked = tokens.find(({ kind, text }) => kind === "package" && text.startsWith(`${name}@`));
  return asked === undefined ? "" : asked.text.slice(name.length + 1);
};

/* Whether a token is a target that replaces the chosen machine, another token: one that runs on it narrows the
   answer. */
export const replaces = ({ kind, text }, machine, vocabulary) => kind === "target"
  && !runsOn(constraintOf(text), machineOf(machine.text), vocabulary);

/* Whether a token is a machine on which binaries should run. */
export const isMachine = ({ kind, text }) => kind === "target" && machineOf(text) !== undefined;

/* Whether the page of a package has a choice for a token as it is: no range of versions, and no dependency. */
export const isField = (token) => {
  const { kind, text } = token;
  if (kind === "package") return !text.includes("@");
  return kind === "os" || kind === "platform" || isMachine(token) || (kind === "variant" && /^[+~]/.test(text));
};

/* The fields of a package's page that choose what the tokens ask for, as pairs of a name and a value. A choice is
   one value: of several compilers or versions, it is the newest that the package has. */
export const fieldsOf = (name, tokens, vocabulary) => {
  const found = vocabulary.packages.get(name);
  const builds = buildsOf(found, tokens, vocabulary);
  const fields = [];
  const asked = versionAsked(name, tokens);
  const versions = asked === "" ? [] : versionsOf(found, asked);
  if (versions.length) fields.push(["version", versions.at(-1)]);
  for (const token of tokens) {
    const { kind, text } = token;
    if (isMachine(token)) fields.push(["host", machineOf(text)]);
    else if (kind === "target") fields.push(...single("target", builds));
    else if (kind === "os" || kind === "platform") fields.push([kind, text.split("=")[1]]);
    else if (kind === "variant") fields.push(["variant", text]);
    else if (kind === "compiler") fields.push(...newestCompiler(builds));
  }
  return fields;
};

const single = (field, builds) => {
  const values = [...new Set(builds.map(({ toolchain }) => toolchain[field]))];
  return values.length === 1 ? [[field, values[0]]] : [];
};

const newestCompiler = (builds) => {
  const compilers = [...new Set(builds.map(({ toolchain }) => toolchain.compiler))];
  const version = (compiler) => compiler.split("@")[1] ?? "";
  compilers.sort((one, other) => compared(version(one), version(other)) || 0);
  return compilers.length ? [["compiler", compilers.at(-1)]] : [];
};

/* The tokens that the vocabulary cannot check; the page of a package can, or a binary's page. */
export const unchecked = (tokens, vocabulary) => tokens.filter((token) => (
  ["dependency", "release", "stack"].includes(token.kind) || isOfSomeVersions(token, vocabulary)));

/* Whether a token asks for a version of a package that has others too: its count is that of all versions. */
const isOfSomeVersions = ({ kind, text }, vocabulary) => {
  if (kind !== "package" || !text.includes("@")) return false;
  const [name, constraint] = text.split("@");
  const found = vocabulary.packages.get(name);
  // A virtual package has no versions here.
  if (found === undefined) return true;
  // Without such a version, the count is 0.
  return found.versions.length > 1 && versionsOf(found, constraint).length > 0;
};

/* The number of binaries for each processor, apart from the machine that is asked for. */
export const cellsOf = (name, tokens, vocabulary) => {
  const others = tokens.filter(({ kind }) => kind !== "target" && kind !== "package");
  const counts = vocabulary.processors.map(() => 0);
  const builds = buildsOf(vocabulary.packages.get(name), others, vocabulary);
  for (const { toolchain, count } of builds) counts[toolchain.processor] += count;
  return counts;
};

/* Whether the binaries of a column, for a target on a platform, are asked for. That of macOS has all of its targets:
   it is for Macs. The column of all other binaries has no platform. */
export const isChosen = (target, platform, tokens, vocabulary) => tokens.some((token) => {
  const machine = isMachine(token) ? machineOf(token.text) : "";
  if (!platform || token.kind !== "target") return false;
  if (platform === vocabulary.mac) return own(vocabulary.macs, machine) === true;
  return targetMatches(constraintOf(token.text), target, vocabulary) && hasPlatform(platform, machine, vocabulary);
});
