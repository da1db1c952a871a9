/* Reads a search in words, as the website does.

   `read("pytorch gpu zen3 gcc 13", vocabulary)` finds the package py-torch, the option +cuda, the machine zen3
   and the compiler gcc@13. The words are read by reader.js and word_reader.js; the packages that words name are in
   names.js, and those that have such binaries in matches.js. */
import { isField, isMachine, replaces, rows, versionsOf } from "./matches.js";
import { findPackages, inOrder, packageCalled, providersOf } from "./names.js";
import { TextReader } from "./reader.js";
import { fillersIn, numberIn, plainWords, spelled } from "./vocabulary.js";

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
  const expected = new TextReader(words, vocabulary).package();
  const reader = new TextReader(words, vocabulary, expected);
  const { spec } = reader;
  // A single name of a package without a binary is not read as an option or a compiler.
  const isUnbuilt = words.length === 1 && !expected && packageCalled(words[0], vocabulary) !== undefined;
  const unread = isUnbuilt ? words : reader.readAll();
  if (!unread.length) asCompiler(reader, vocabulary);
  const ofText = reader.tokens();
  const hasOther = chosen.some((machine) => ofText.some((token) => replaces(token, machine, vocabulary)));
  const tokens = hasOther ? ofText : [...ofText, ...chosen];
  const reading = { ...empty, tokens, dropped: unread, unrecorded: spec.unrecorded };

  // Unread words, or names of options without a package, may be the names of packages.
  const rest = wordsOfNames(words, ofText);
  if (!isWhole(spec, unread, rest, ofText) && !isOfVersion(spec, unread, vocabulary)) {
    const found = ofWords(rest, nounsOf(spec, unread, rest, vocabulary), tokens, vocabulary);
    if (found.packages.length || unread.length) return { ...reading, ...withNames(reading, found, spec, vocabulary) };
  }

  // The tokens are all that the words mean.
  if (!spec.name) return { ...reading, packages: ofTokens(tokens, vocabulary) };
  const isVirtual = !vocabulary.packages.has(spec.name);
  if (isVirtual) return { ...reading, ...ofWords([spec.name], [spec.name], tokens, vocabulary) };
  const [row] = rows([[spec.name, ""]], tokens, vocabulary);
  const page = row.count > 0 && !unread.length && tokens.every(isField) ? spec.name : undefined;
  return { ...reading, page, packages: [row] };
};

/* The words that name no machine, release or stack. */
const wordsOfNames = (words, tokens) => {
  const ofPlaces = new Set(tokens.filter(isPlace).flatMap((token) => token.words));
  return words.filter((word) => !ofPlaces.has(word));
};

/* The words that may name or describe a package: the package and unread words, or else the names of options. */
const nounsOf = (spec, unread, rest, vocabulary) => {
  // A number is a version, and names nothing.
  const ofUnread = rest.filter((word) => unread.includes(word) && numberIn(word, vocabulary) === undefined);
  const nouns = spec.name ? [spec.name, ...ofUnread] : ofUnread;
  return nouns.length ? nouns : spec.switches;
};

/* Whether the tokens are all that the words mean. `rocm` alone may be an option, or name packages. */
const isWhole = (spec, unread, rest, tokens) => {
  if (unread.length) return false;
  if (spec.name) return true;
  const isOneOption = rest.length === 1 && tokens.some(({ text }) => text === `+${rest[0]}`);
  return tokens.some(isMachine) ? !isOneOption : !spec.switches.length;
};

/* Whether the words ask for a version of a package, and for no other one: `hdf5 1.14 or newer` does, and
   `gcc 13 openmpi` names two packages. */
const isOfVersion = (spec, unread, vocabulary) => Boolean(spec.name && spec.version)
  && !unread.some((word) => packageCalled(word, vocabulary) !== undefined);

/* The packages that unread words name. These words have a meaning then; and the name of a virtual package is a part
   of the reading: `lapack for neoverse`. */
const withNames = ({ tokens, dropped }, found, spec, vocabulary) => {
  const isNamed = (word) => found.packages.length > 0 && !found.unmatched.includes(word)
    && !word.includes(" ") && numberIn(word, vocabulary) === undefined;
  const virtuals = spec.name ? [] : dropped.filter((word) => providersOf(word, vocabulary).length);
  const ofVirtuals = virtuals.map((word) => ({ kind: "package", text: word, words: [word] }));
  return { ...found, tokens: [...ofVirtuals, ...tokens], dropped: dropped.filter((word) => !isNamed(word)) };
};

const isPlace = (token) => token.kind === "release" || token.kind === "stack" || isMachine(token);

/* A compiler without a binary of its own in this version means the packages that it compiled: `gcc 13`. */
const asCompiler = ({ spec, wordsOf }, { compilers, packages }) => {
  const { name, version } = spec;
  const others = spec.parts().filter(([key, text]) => key !== "package" && !isPlace({ kind: key, text }));
  if (!version || others.length || !compilers.includes(name)) return;
  if (versionsOf(packages.get(name), version.slice(1)).length) return;
  spec.compiler = `%${name}${version}`;
  wordsOf.set("compiler", wordsOf.get("package"));
  spec.name = "";
  spec.version = "";
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
