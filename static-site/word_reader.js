/* Reads one word, or a name of several words, as a part of a spec: `rhel8` is `os=rhel8`, `gcc13` is `%gcc@13`.

   It follows query/words/word_reader.py. */
import { gpuCondition, namesElsewhere, newestSystem } from "./names.js";
import { nameAndVersion, numberIn, own, withVersion } from "./vocabulary.js";

/* Reads words, one after the other, into the parts of a spec. The methods `read…` return whether a word has the
   meaning of their name, and then keep it. */
export class WordReader {
  /* `expected` is the package that the text names, if it is known; `isSingle` says whether the text is one word. */
  constructor(vocabulary, expected, isSingle) {
    this.vocabulary = vocabulary;
    this.expected = expected;
    this.isSingle = isSingle;

    // The parts of the spec, each with its sign: `@1.14`, `%gcc@13`, `^zlib`.
    this.name = "";
    this.version = "";
    this.compiler = "";
    this.dependencies = [];
    this.conditions = new Map(); // By what they are on: `os`, `target` or the name of a variant.
    this.scope = new Map(); // A release and a stack.
    this.switches = []; // The words that switched variants on.
    this.unrecorded = [];

    // What the meaning of the next word depends on.
    this.variantBefore = "";
    this.family = "";
    this.hasImpliedPlatform = false;
  }

  /* The parts of the spec by what they are on, in Spack's order for people. */
  parts() {
    const parts = [["package", this.name + this.version], ["compiler", this.compiler]];
    for (const dependency of this.dependencies) parts.push([dependency.split("@")[0], dependency]);
    return [...parts, ...this.conditions, ...this.scope].filter(([, text]) => text);
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
    const names = this.isSingle ? [name.toLowerCase()] : namesElsewhere(name, this.vocabulary);
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
