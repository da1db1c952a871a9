/* The builds of a package, and which of them have what a reader chooses.

   Python makes the data (`browser_builds.py`). A choice is a pair of a field and its text, such as
   `["version", "1.14.6"]`. `rule.js` takes one of the builds that have all choices. */
import { ANCESTORS, IS_MAC, MAC } from "./machines.js";
import { MOST_OPTIONS, phrase } from "./words_of_builds.js";

/* The fields of an address, in the order in which sentences name them; those of a machine and of a system. */
const FIELDS = ["host", "version", "compiler", "os", "platform", "target", "variant"];
export const OF_MACHINE = ["host", "platform", "target"];
export const OF_SYSTEM = ["compiler", "os"];

/* What stands in the lists of the data, in their order. */
const VERSION = ["name", "days", "isPast", "isStable", "position"];
const SYSTEM = ["os", "compiler", "osName", "compilerName", "exact"];
const KIND = ["platform", "target", "family", "isGeneric"];
const PROCESSOR = ["name", "note", "host", "hostPlatform", "target", "platform"];
const OPTION = ["set", "uses", "odd", "described"];
const ROW = [
  "version", "system", "kind", "option", "count", "ranks",
  // Only of a row that can be proposed.
  "standing", "order", "card", "hash", "length", "shown", "size", "isAlone",
];

/* The lists of the data as records. */
const records = (fields, lists) => lists.map((values) => {
  const made = {};
  fields.forEach((field, at) => { made[field] = values[at]; });
  return made;
});

/* Whether a build, a platform and a target, runs on a machine. */
export const runsOn = ({ platform, target }, host) => {
  const isMac = IS_MAC[host];
  const hasPlatform = isMac === undefined || isMac === (platform === MAC);
  const ancestors = ANCESTORS[host] ?? [];
  return hasPlatform && (target === host || ancestors.includes(target));
};

/* The choices of the query string of an address. */
export const choicesOf = (search) => {
  const choices = [...new URLSearchParams(search)].filter(([field, text]) => FIELDS.includes(field) && text);
  return choices.sort(([one], [other]) => FIELDS.indexOf(one) - FIELDS.indexOf(other));
};

/* The text of a choice; undefined if there is none on this field. */
export const chosenText = (choices, field) => choices.find(([name]) => name === field)?.[1];

/* The texts of the chosen options, such as `+mpi`. */
export const chosenOptions = (choices) => {
  const ofVariants = choices.filter(([field]) => field === "variant");
  return ofVariants.map(([, text]) => text);
};

/* The name of an option: `mpi` of `+mpi`, and `api` of `api=default`. */
export const nameOfOption = (text) => text.replace(/^[+~]+/, "").split(/:?=/)[0];

/* Whether a row has each choice, by the field of the choice. */
const TESTS = {
  version: ({ version }, text) => version.name === text,
  os: ({ system }, text) => system.os === text,
  compiler: ({ system }, text) => system.compiler === text || system.compiler.startsWith(`${text}@`),
  platform: ({ kind }, text) => kind.platform === text,
  target: ({ kind }, text) => kind.target === text || `${kind.family}:` === text,
  host: ({ kind }, text) => runsOn(kind, text),
  variant: ({ option }, text) => option.texts.includes(text),
};

export class Builds {
  constructor(data) {
    this.data = data;
    this.versions = records(VERSION, data.versions);
    this.systems = records(SYSTEM, data.systems);
    this.processors = records(PROCESSOR, data.processors);
    const kinds = records(KIND, data.builds);

    // Options are numbers of texts.
    const textsOf = (numbers) => numbers.map((number) => data.options.texts[number]);
    const options = records(OPTION, data.options.pairs);
    for (const option of options) {
      option.texts = textsOf(data.options.sets[option.set]);
      option.described = textsOf(option.described);
    }

    // Rows have the numbers of the other records.
    this.rows = records(ROW, data.rows);
    for (const row of this.rows) {
      row.version = this.versions[row.version];
      row.system = this.systems[row.system];
      row.kind = kinds[row.kind];
      row.option = options[row.option];
    }
  }

  /* The versions, the newest first. */
  get newestFirst() {
    return [...this.versions].sort((one, other) => other.position - one.position);
  }

  has(row, [field, text]) {
    return TESTS[field](row, text);
  }

  /* The rows that have all choices. */
  fitting(choices) {
    return this.rows.filter((row) => choices.every((choice) => this.has(row, choice)));
  }

  /* Why no row that passes a test has all choices: those that the nearest row lacks. */
  reason(choices, test) {
    const lacked = this.rows.filter(test).map((row) => choices.filter((choice) => !this.has(row, choice)));
    if (lacked.length === 0) return `no ${this.data.noun}`;
    const fewest = lacked.reduce((one, other) => (other.length < one.length ? other : one));
    const phrases = fewest.map(([field, text]) => {
      const preposition = this.data.prepositions[field] ?? "with";
      return `${preposition} ${this.nameOf(field, text)}`;
    });
    return `none ${phrases.join(" ")}`;
  }

  /* The text of a choice for people. */
  nameOf(field, text) {
    if (field === "os") return this.systems.find(({ os }) => os === text)?.osName ?? text;
    if (field === "compiler") return this.systems.find(({ compiler }) => compiler === text)?.compilerName ?? text;
    return text;
  }

  /* A row in a few words, such as `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04, x86_64_v3`. */
  words(row, choices) {
    const options = this.optionsInWords(row, choices);
    const name = [`${this.data.package}@${row.version.name}`, ...options.slice(0, MOST_OPTIONS)];
    const more = options.length - MOST_OPTIONS;
    if (more > 0) name.push(phrase("more options", more));
    const words = [name.join(" ")];
    if (row.system.exact) words.push(row.system.exact.replace("@", " "));
    words.push(row.system.os, row.kind.target);
    return words.join(", ");
  }

  /* The options that describe a row: the chosen ones, and those that tell it from others. */
  optionsInWords(row, choices) {
    const chosen = chosenOptions(choices);
    const named = row.option.texts.filter((text) => !this.data.unnamed.includes(nameOfOption(text)));
    if (this.data.options.hasDefaults) {
      return named.filter((text) => chosen.includes(text) || row.option.described.includes(text));
    }
    // Without package data, these are the options by which builds of the version differ.
    const ofVersion = this.fitting(choices).filter(({ version }) => version === row.version);
    const isCommon = (text) => ofVersion.every(({ option }) => option.texts.includes(text));
    return named.filter((text) => chosen.includes(text) || !isCommon(text));
  }

  /* A row as the spec of a spack.yaml. */
  entry(row) {
    const { version, option, kind, system } = row;
    const exactVersion = version.name.includes("=") ? version.name : `=${version.name}`;
    const parts = [
      `${this.data.package}@${exactVersion}`,
      ...option.texts,
      `platform=${kind.platform}`,
      `os=${system.os}`,
      `target=${kind.target}`,
    ];
    if (system.exact) parts.push(`%${system.exact.replace("@", "@=")}`);
    return parts.join(" ");
  }
}
