/* Reads a search in words, as the website does.

   `read("pytorch gpu zen3 gcc 13", vocabulary)` finds the package py-torch, the option +cuda, the machine zen3
   and the compiler gcc@13. It follows query/words/reader.py and word_reader.py step by step; the packages that
   words name are in names.js, and those that have such binaries in matches.js. */
import { isField, isMachine, replaces, rows, versionsOf } from "./matches.js";
import {
  findPackages, gpuCondition, inOrder, namesElsewhere, newestSystem, packageCalled, providersOf,
} from "./names.js";
import { fillersIn, nameAndVersion, numberIn, optionOf, own, plainWords, spelled, withVersion } from "./vocabulary.js";

/* The meaning of a text, on a machine that a visitor has chosen (`zen3`), if there is one:

   words        the text without words that say nothing
   tokens       the parts of the spec, the release and the stack, each with its kind, its text and its words; the
                chosen machine has none
   page         the package whose page has the whole answer; its fields are those of the tokens (`fieldsOf`)
   packages     the packages found, the best first: `{ name, reason, total, count }`, where `count` are the binaries
                that satisfy the tokens, as far as the vocabulary has them (`unchecked`)
   dropped      words without a meaning here
   fillers      words that say nothing, such as `for`
   unrecorded   what is asked for and the database does not record
   unmatched    words that match no package, although others do
   isGuess      whether no word is known, and the packages have similar names */
export const read = (text, vocabulary, chosenMachine = "") => {
  const words = plainWords(text, vocabulary);
  const machine = { kind: "target", text: `target=:${chosenMachine}`, words: [] };
  const chosen = chosenMachine ? [machine] : [];
  const empty = {
    words: words.join(" "), tokens: chosen, packages: [], dropped: [], fillers: fillersIn(text, vocabulary),
    unrecorded: [], unmatched: [], isGuess: false,
  };

  if (words.length === 0) return { ...empty, dropped: [text] };

  // The name of a package in any spelling, and the name of a virtual package.
  const name = spelled(text);
  const isListed = vocabulary.packages.get(name)?.isListed ?? false;
  const isVirtual = providersOf(empty.words, vocabulary).length > 0;
  if (isListed || (vocabulary.packages.has(name) && !isVirtual)) {
    const tokens = [{ kind: "package", text: name, words: [text.trim()] }, ...chosen];
    return { ...empty, page: isListed ? name : undefined, tokens, packages: rows([[name, ""]], tokens, vocabulary) };
  }
  if (isVirtual) return { ...empty, ...ofWords([empty.words], [empty.words], chosen, vocabulary) };
  if (words.length > vocabulary.limits.words) {
    const found = ofWords(words, words, chosen, vocabulary);
    return { ...empty, ...found, dropped: found.packages.length ? found.unmatched : words };
  }
  return readSpec(words, vocabulary, chosen, empty);
};

/* The meaning of words that are more than a name. */
const readSpec = (words, vocabulary, chosen, empty) => {
  // Read twice, because an option may come before its package: `mpi hdf5`.
  const expected = new Reader(words, vocabulary).package();
  const reader = new Reader(words, vocabulary, expected);
  // A single name of a package without a binary is not read as an option or a compiler.
  const isUnbuilt = words.length === 1 && !expected && packageCalled(words[0], vocabulary) !== undefined;
  const unread = isUnbuilt ? words : reader.readAll();
  if (!unread.length) asCompiler(reader, vocabulary);
  const ofText = reader.tokens();
  const hasOther = chosen.some((machine) => ofText.some((token) => replaces(token, machine, vocabulary)));
  const tokens = hasOther ? ofText : [...ofText, ...chosen];
  const reading = { ...empty, tokens, dropped: unread, unrecorded: reader.unrecorded };

  // Unread words, or names of options without a package, may be the names of packages.
  const rest = wordsOfNames(words, ofText);
  if (!isWhole(reader, unread, rest, ofText) && !isOfVersion(reader, unread, vocabulary)) {
    const found = ofWords(rest, nounsOf(reader, unread, rest, vocabulary), tokens, vocabulary);
    if (found.packages.length || unread.length) return { ...reading, ...withNames(reading, found, reader, vocabulary) };
  }

  // The tokens are all that the words mean.
  if (!reader.name) return { ...reading, packages: ofTokens(tokens, vocabulary) };
  const isVirtual = !vocabulary.packages.has(reader.name);
  if (isVirtual) return { ...reading, ...ofWords([reader.name], [reader.name], tokens, vocabulary) };
  const [row] = rows([[reader.name, ""]], tokens, vocabulary);
  const page = row.count > 0 && !unread.length && tokens.every(isField) ? reader.name : undefined;
  return { ...reading, page, packages: [row] };
};

/* The words that name no machine, release or stack. */
const wordsOfNames = (words, tokens) => {
  const ofPlaces = new Set(tokens.filter(isPlace).flatMap((token) => token.words));
  return words.filter((word) => !ofPlaces.has(word));
};

/* The words that may name or describe a package: the package and unread words, or else the names of options. */
const nounsOf = (reader, unread, rest, vocabulary) => {
  // A number is a version, and names nothing.
  const ofUnread = rest.filter((word) => unread.includes(word) && numberIn(word, vocabulary) === undefined);
  const nouns = reader.name ? [reader.name, ...ofUnread] : ofUnread;
  return nouns.length ? nouns : reader.switches;
};

/* Whether the tokens are all that the words mean. `rocm` alone may be an option, or name packages. */
const isWhole = (reader, unread, rest, tokens) => {
  if (unread.length) return false;
  if (reader.name) return true;
  const isOneOption = rest.length === 1 && tokens.some(({ text }) => text === `+${rest[0]}`);
  return tokens.some(isMachine) ? !isOneOption : !reader.switches.length;
};

/* Whether the words ask for a version of a package, and for no other one: `hdf5 1.14 or newer` does, and
   `gcc 13 openmpi` names two packages. */
const isOfVersion = (reader, unread, vocabulary) => Boolean(reader.name && reader.version)
  && !unread.some((word) => packageCalled(word, vocabulary) !== undefined);

/* The packages that unread words name. These words have a meaning then; and the name of a virtual package is a part
   of the reading: `lapack for neoverse`. */
const withNames = ({ tokens, dropped }, found, reader, vocabulary) => {
  const isNamed = (word) => found.packages.length > 0 && !found.unmatched.includes(word)
    && !word.includes(" ") && numberIn(word, vocabulary) === undefined;
  const virtuals = reader.name ? [] : dropped.filter((word) => providersOf(word, vocabulary).length);
  const ofVirtuals = virtuals.map((word) => ({ kind: "package", text: word, words: [word] }));
  return { ...found, tokens: [...ofVirtuals, ...tokens], dropped: dropped.filter((word) => !isNamed(word)) };
};

const kindOf = (key, { labels }) => {
  if (key.startsWith("^")) return "dependency";
  return own(labels, key) && key !== "words" && key !== "host" ? key : "variant";
};

const isPlace = (token) => token.kind === "release" || token.kind === "stack" || isMachine(token);

/* A compiler without a binary of its own in this version means the packages that it compiled: `gcc 13`. */
const asCompiler = (reader, { compilers, packages }) => {
  const { name, version } = reader;
  const others = reader.parts().filter(([key, text]) => key !== "package" && !isPlace({ kind: key, text }));
  if (!version || others.length || !compilers.includes(name)) return;
  if (versionsOf(packages.get(name), version.slice(1)).length) return;
  reader.compiler = `%${name}${version}`;
  reader.wordsOf.set("compiler", reader.wordsOf.get("package"));
  reader.name = "";
  reader.version = "";
};

/* Packages that words name: the first ones have rows, those with a suitable binary before the others. */
const ofWords = (words, nouns, tokens, vocabulary) => {
  const { reasons, unmatched = [], isGuess = false } = findPackages(words, nouns, vocabulary);
  const others = tokens.filter(({ kind }) => kind !== "variant" && kind !== "package");
  const found = rows([...reasons], others, vocabulary);
  const built = found.filter(({ total }) => total);
  const unbuilt = found.filter(({ total }) => !total);
  const shown = built.slice(0, vocabulary.limits.rows);
  const more = built.slice(vocabulary.limits.rows);
  const lacking = ({ count }) => Number(count === 0);
  shown.sort((one, other) => lacking(one) - lacking(other));
  return { packages: [...shown, ...more, ...unbuilt], unmatched, isGuess };
};

/* All packages with a binary that satisfies the tokens, those with most of them first. */
const ofTokens = (tokens, vocabulary) => {
  const names = [...vocabulary.packages.keys()].map((name) => [name, ""]);
  const found = rows(names, tokens, vocabulary).filter(({ count }) => count > 0);
  return found.sort((one, other) => other.count - one.count || inOrder(one.name, other.name));
};

/* Reads the words of one text, one after the other, into the parts of a spec. The methods `read…` return whether
   a word has the meaning of their name, and then keep it. */
class Reader {
  constructor(words, vocabulary, expected = "") {
    Object.assign(this, { words, vocabulary, expected });
    this.name = "";
    this.version = "";
    this.compiler = "";
    this.dependencies = [];
    this.conditions = new Map(); // By what they are on: `os`, `target` or the name of a variant.
    this.scope = new Map();
    this.switches = [];
    this.unrecorded = [];
    this.wordsOf = new Map();
    this.variantBefore = "";
    this.family = "";
    this.hasImpliedPlatform = false;
  }

  /* The package that the words name, also one without a binary. */
  package() {
    for (const word of this.readAll()) {
      const { name } = nameAndVersion(word, this.vocabulary);
      if (this.vocabulary.packages.has(name) && !this.name) return name;
    }
    return this.name;
  }

  /* Returns the words without a meaning, and numbers behind them. */
  readAll() {
    const { negations, limits } = this.vocabulary;
    const unread = [];
    let negation = "";
    let isBehindUnread = false;
    for (let position = 0; position < this.words.length;) {
      const word = this.words[position];
      if (negations.has(word.toLowerCase())) {
        negation = word;
        position += 1;
        continue;
      }
      const before = new Map(this.parts());
      // Several words may be one name: `netcdf fortran`.
      const ahead = this.words.slice(position, position + limits.joined);
      let length = negation ? 0 : this.readJoined(ahead);
      let isRead = length > 0;
      if (negation) {
        [length, isRead] = this.readNegated(ahead);
      } else if (!isRead && isBehindUnread && numberIn(word, this.vocabulary) !== undefined) {
        this.addVersionOfUnrecorded(numberIn(word, this.vocabulary));
      } else if (!isRead) {
        isRead = this.readWord(word);
      }
      const read = this.words.slice(position, position + Math.max(length, 1));
      for (const [key, text] of this.parts()) {
        if (before.get(key) === text) continue;
        this.wordsOf.set(key, [...(this.wordsOf.get(key) ?? []), ...(negation ? [negation] : []), ...read]);
      }
      if (!isRead) unread.push(negation ? `without ${read.join(" ")}` : read.join(" "));
      isBehindUnread = !isRead;
      negation = "";
      position += read.length;
    }
    return unread;
  }

  /* The parts of the spec by what they are on, in Spack's order for people. */
  parts() {
    const parts = [["package", this.name + this.version], ["compiler", this.compiler]];
    for (const dependency of this.dependencies) parts.push([dependency.split("@")[0], dependency]);
    return [...parts, ...this.conditions, ...this.scope].filter(([, text]) => text);
  }

  /* The parts as tokens. */
  tokens() {
    return this.parts().map(([key, text]) => {
      const words = this.wordsOf.get(key) ?? [];
      return { kind: kindOf(key, this.vocabulary), text, words };
    });
  }

  addVersionOfUnrecorded(version) {
    const last = this.unrecorded.length - 1;
    if (last >= 0 && !this.unrecorded[last].includes("@")) this.unrecorded[last] += `@${version}`;
  }

  readJoined(words) {
    for (let length = words.length; length > 1; length -= 1) {
      for (const joint of this.vocabulary.limits.joints) {
        if (this.readName(words.slice(0, length).join(joint))) return length;
      }
    }
    return 0;
  }

  /* A package cannot be left out of a spec: its name stays unread, as a whole. */
  readNegated(words) {
    for (let length = words.length; length > 0; length -= 1) {
      for (const joint of this.vocabulary.limits.joints) {
        const name = words.slice(0, length).join(joint);
        if (this.readVariant(name, "~")) return [length, true];
        if (this.vocabulary.packages.get(name)?.isListed) return [length, false];
      }
    }
    return [1, false];
  }

  readName(name) {
    const lower = name.toLowerCase();
    return this.readScope(name) || this.readSystem(lower) || this.readGpu(lower) || this.readPackage(name, "");
  }

  /* Reads a word by the first meaning that it has. */
  readWord(word) {
    const { patterns, packages, variantNames } = this.vocabulary;
    const variantBefore = this.variantBefore;
    this.variantBefore = "";
    const { name, version } = nameAndVersion(word, this.vocabulary);
    const isPackage = version !== "" && packages.get(name)?.total > 0;
    if (patterns.syntax.test(word) && !isPackage) return this.readSyntax(word);
    return this.readName(word)
      || this.readPackage(name, version)
      || this.readCompiler(name, version)
      || this.readNumber(word, variantBefore)
      || this.readSwitch(word, word)
      || this.readDependency(name, version)
      || this.readSwitch(word, own(variantNames, name) ?? "")
      || this.readVirtual(name);
  }

  readSyntax(word) {
    if (word[0] === "@") this.version = word;
    else if (word[0] === "%") this.compiler = word;
    else if (word[0] === "^") this.dependencies.push(word);
    else {
      // The name is `mpi` in `+mpi`, and `libs` in `libs:=static`. A hash is not read here.
      const name = word.replace(/^[+~]+/, "").split("=")[0].replace(/:$/, "");
      return name !== "" && !name.startsWith("/") && this.add(name, word);
    }
    return true;
  }

  add(name, condition) {
    if (!this.conditions.has(name)) this.conditions.set(name, condition);
    return this.conditions.get(name) === condition;
  }

  readScope(word) {
    for (const [kind, names] of [["release", this.vocabulary.releases], ["stack", this.vocabulary.stacks]]) {
      const name = names.find((other) => other.toLowerCase() === word.toLowerCase());
      if (name === undefined) continue;
      if (!this.scope.has(kind)) this.scope.set(kind, name);
      return this.scope.get(kind) === name;
    }
    return false;
  }

  /* An operating system, a platform, a target, or all three (`linux-rhel8-zen3`). */
  readSystem(name) {
    const { platforms, platformNames } = this.vocabulary;
    const parts = name.split("-");
    if (parts.length === 3 && platforms.includes(parts[0])) return this.readArchitecture(parts);
    const system = newestSystem(name, this.vocabulary);
    if (system !== undefined) return this.add("os", `os=${system}`);
    const platform = own(platformNames, name) ?? name;
    if (own(platformNames, name) || platforms.includes(name)) return this.add("platform", `platform=${platform}`);
    return this.readTarget(name);
  }

  readArchitecture(parts) {
    const before = [new Map(this.conditions), this.family];
    if (parts.every((part) => this.readSystem(part))) return true;
    [this.conditions, this.family] = before;
    return false;
  }

  readTarget(name) {
    const { targets, targetNames, unknownTargets } = this.vocabulary;
    if (unknownTargets.includes(name)) return this.add("target", `target=${name}`);
    const called = own(targetNames, name) ?? name;
    const target = own(targets, called) ? called : called.replaceAll("-", "_");
    const [family] = own(targets, target) ?? [];
    if (family === undefined) return false;
    // A target is more exact than its family, which may be before or behind it.
    const isFamily = target === family;
    if (isFamily && this.family === family) return true;
    const ofFamily = `target=${family}:`;
    if (this.conditions.get("target") === ofFamily) {
      this.conditions.delete("target");
      if (this.hasImpliedPlatform) this.conditions.delete("platform");
    }
    this.family = family;
    const isRead = this.add("target", isFamily ? ofFamily : `target=:${target}`);
    if (isRead && this.vocabulary.processorsOfLinux.includes(name)) this.addPlatformOfLinux();
    return isRead;
  }

  /* The platform of a family of processors that no Mac has: `graviton`. */
  addPlatformOfLinux() {
    const { platforms, linux, mac } = this.vocabulary;
    if (![linux, mac].every((platform) => platforms.includes(platform)) || this.conditions.has("platform")) return;
    this.conditions.set("platform", `platform=${linux}`);
    this.hasImpliedPlatform = true;
  }

  /* A graphics processor is the variant of architectures, or the switch for GPUs if none is recorded. */
  readGpu(name) {
    const condition = gpuCondition(name, this.vocabulary);
    if (condition === undefined) return false;
    const [variant] = condition.split("=");
    if (this.optionsOf().some((option) => option.name === variant)) return this.add(variant, condition);
    if (!this.readVariant(this.vocabulary.gpuSwitches[variant], "+")) return false;
    this.unrecorded.push(condition);
    return true;
  }

  /* The options of the package, or of any package. */
  optionsOf() {
    if (!this.expected) return this.vocabulary.options;
    return (this.vocabulary.packages.get(this.expected)?.builds ?? []).flatMap(({ options }) => options);
  }

  readPackage(name, version) {
    if (this.name) return false;
    // A single word may be a part of many names: only its own is read.
    const names = this.words.length === 1 ? [name.toLowerCase()] : namesElsewhere(name, this.vocabulary);
    const isListed = (other) => this.vocabulary.packages.get(other)?.isListed;
    const found = names.find((other) => (this.expected ? other === this.expected : isListed(other)));
    if (found === undefined) return false;
    this.name = found;
    if (version) this.version = `@${version}`;
    return true;
  }

  readCompiler(name, version) {
    if (this.compiler) return false;
    const { compilers, legacyCompilers, compilerNames } = this.vocabulary;
    // `intel` is `intel-oneapi-compilers`.
    const longer = compilers.filter((other) => other.startsWith(`${name}-`));
    const names = [name, own(legacyCompilers, name), own(compilerNames, name), ...longer];
    const found = names.find((other) => compilers.includes(other));
    if (found === undefined) return false;
    this.compiler = withVersion(`%${found}`, version);
    return true;
  }

  /* A number is the version of what stands before it. */
  readNumber(word, variant) {
    const version = numberIn(word, this.vocabulary);
    const last = this.dependencies.length - 1;
    if (version === undefined) return false;
    // `kokkos cuda 12.4` is `kokkos +cuda ^cuda@12.4`.
    if (variant) return this.readDependency(variant, version);
    if (this.compiler && !this.compiler.includes("@")) this.compiler += `@${version}`;
    else if (last >= 0 && !this.dependencies[last].includes("@")) this.dependencies[last] += `@${version}`;
    else if (this.name && !this.version) this.version = `@${version}`;
    else return false;
    return true;
  }

  readSwitch(word, variant) {
    const isVariant = this.readVariant(variant, "+");
    if (isVariant) this.switches.push(word);
    return isVariant;
  }

  readVariant(word, sign) {
    const options = this.optionsOf();
    for (const name of new Set([word, word.toLowerCase()])) {
      if (!options.some((option) => option.isSwitch && option.name === name)) continue;
      this.variantBefore = name;
      return this.add(name, `${sign}${name}`);
    }
    return false;
  }

  readDependency(name, version) {
    if (!this.name || !this.vocabulary.packages.get(name)?.isListed) return false;
    if (!this.vocabulary.hasDependencies) {
      this.unrecorded.push(withVersion(name, version));
      return false;
    }
    this.dependencies.push(withVersion(`^${name}`, version));
    return true;
  }

  readVirtual(name) {
    if (this.expected || this.name || !this.vocabulary.virtuals.includes(name)) return false;
    this.name = name;
    return true;
  }
}

/* What may be meant instead of a token: the processors of `graviton`, other architectures of GPUs. */
export const othersOf = ({ kind, text, words }, vocabulary) => {
  if (kind === "target") return own(vocabulary.generations, (words.at(-1) ?? "").toLowerCase()) ?? [];
  const { name } = optionOf(text);
  if (kind !== "variant" || !own(vocabulary.gpuSwitches, name)) return [];
  const architectures = vocabulary.options.filter((option) => option.name === name).flatMap(({ values }) => values);
  return [...new Set(architectures)].sort().map((value) => `${name}=${value}`).filter((other) => other !== text);
};

/* A token for people: `gcc 13` for `%gcc@13`, `zen3` for `target=:zen3`. */
export const readable = ({ kind, text }, vocabulary) => {
  if (kind === "target") {
    const constraint = text.slice("target=".length);
    if (/^:[^:,]+$/.test(constraint)) return constraint.slice(1);
    return /^[^:,]+:$/.test(constraint) ? `any ${constraint.slice(0, -1)}` : constraint;
  }
  if (kind === "os" || kind === "platform") return text.split("=")[1];
  if (kind === "compiler" || kind === "dependency") return text.replace(/^[%^]/, "").replace("@", " ");
  const isVirtual = kind === "package" && !vocabulary.packages.has(text) && providersOf(text, vocabulary).length;
  return isVirtual ? `provides ${text}` : text;
};
