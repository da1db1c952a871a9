/* The vocabulary of a search, and how a text is split into words.

   vocabulary.json has all names, lists and patterns; the export writes it (site/static/vocabulary.py). */

/* The vocabulary of vocabulary.json, ready for `read`. */
export const vocabularyOf = (data) => {
  const patterns = {};
  for (const [name, pattern] of Object.entries(data.patterns)) {
    patterns[name] = Array.isArray(pattern[0])
      ? pattern.map(([source, flags]) => new RegExp(source, flags))
      : new RegExp(pattern[0], pattern[1]);
  }
  const toolchains = data.toolchains.map(([compiler, os, platform, target, processor]) =>
    ({ compiler, os, platform, target, processor }));
  const options = data.options.map(optionOf);
  const optionSets = data.optionSets.map((positions) => positions.map((position) => options[position]));
  const packages = new Map(data.packages.map((row) => [row[0], packageOf(row, toolchains, optionSets)]));
  const packageForms = data.packageForms.map(([source, text]) => [new RegExp(source), text]);
  const words = { fillers: new Set(data.fillers), negations: new Set(data.negations) };
  return { ...data, ...words, patterns, packages, packageForms, options };
};

/* A package with its versions and builds: each build is a toolchain, some options, and a number of binaries. */
const packageOf = ([name, numbers = null, versions = []], toolchains, optionSets) => {
  const found = { name, versions, isListed: numbers !== null, builds: [], total: 0 };
  for (let at = 0; at < (numbers ?? []).length; at += 3) {
    const [toolchain, options, count] = numbers.slice(at, at + 3);
    found.builds.push({ toolchain: toolchains[toolchain], options: optionSets[options], count });
    found.total += count;
  }
  return found;
};

/* An option of a spec: the name of its variant, and its values, which are `+` or `~` for a switch. */
export const optionOf = (text) => {
  const isSwitch = /^[+~]/.test(text);
  if (isSwitch) return { name: text.replace(/^[+~]+/, ""), values: [text[0]], isSwitch };
  const [name, ...values] = text.split(/:?={1,2}/);
  return { name, values: values.join("=").split(","), isSwitch };
};

/* An entry of a table of the vocabulary. */
export const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);

/* A name in its usual spelling: `py-torch` for `Py_Torch`. */
export const spelled = (text) => text.trim().toLowerCase().replaceAll("_", "-");

/* The words of a text, without commands and fillers such as `with`; a text of fillers alone keeps them. */
export const plainWords = (text, vocabulary) => {
  const { patterns, fillers } = vocabulary;
  // `hdf5 >= 1.12` is one word, and `tensorflow-gpu` are two.
  const plain = text.trim().replace(patterns.comparison, "$1").replace(patterns.otherCommand, "")
    .replace(patterns.withGpu, "$1 gpu");
  // The values of an option may have commas: `libs=shared,static`.
  const words = plain.split(/\s+/).flatMap((word) => (word.includes("=") ? [word] : word.split(patterns.separators)))
    .filter(Boolean).flatMap((word) => specParts(word, vocabulary));
  const meaningful = words.filter((word) => !fillers.has(word.toLowerCase()));
  return meaningful.length ? meaningful : words;
};

const SPEC_PARTS = /[+~][\w-]+|[@%^][^+~%^@\s]+(?:@[^+~%^@\s]+)?/g;

/* The parts of a spec without blanks: `hdf5@1.14+mpi` are `hdf5@1.14` and `+mpi`, and `hdf5@=1.14` are `hdf5` and
   `@=1.14`. Other words stay whole. */
const specParts = (word, { packages }) => {
  const [head, name] = /^([\w.-]*)(?:@\d[\w.:]*(?=[+~%^]|$))?/.exec(word);
  const tail = word.slice(head.length);
  const isSpec = tail !== "" && (name === "" || packages.has(spelled(name))) && tail.replace(SPEC_PARTS, "") === "";
  return isSpec ? [head, ...tail.match(SPEC_PARTS)].filter(Boolean) : [word];
};

export const fillersIn = (text, { patterns, fillers }) => {
  const words = text.split(patterns.separators).filter(Boolean);
  const found = words.filter((word) => fillers.has(word.toLowerCase()));
  return found.length === words.length ? [] : [...new Set(found)];
};

export const numberIn = (word, { patterns }) => patterns.number.exec(word.toLowerCase())?.[1];

/* `gcc-13` has the name `gcc` and the version `13`, `hdf5>=1.12` the range `1.12:`. */
export const nameAndVersion = (word, { patterns, limits }) => {
  const lower = word.toLowerCase();
  for (const pattern of patterns.namesAndVersions) {
    const match = pattern.exec(lower);
    if (match) return { name: match[1], version: (own(limits.ranges, match[2]) ?? "{}").replace("{}", match[3]) };
  }
  return { name: lower, version: "" };
};

export const withVersion = (name, version) => (version ? `${name}@${version}` : name);
