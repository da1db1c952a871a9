/* Reads the words of one text into a spec, and keeps which words mean which part.

   It follows query/words/reader.py. */
import { nameAndVersion, numberIn, own } from "./vocabulary.js";
import { WordReader } from "./word_reader.js";

export class TextReader {
  /* `expected` is the package that the words name, if it is known. */
  constructor(words, vocabulary, expected = "") {
    this.words = words;
    this.vocabulary = vocabulary;
    this.spec = new WordReader(vocabulary, expected, words.length === 1);
    this.wordsOf = new Map(); // The words of each part of the spec.
  }

  /* The package that the words name, also one without a binary. */
  package() {
    for (const word of this.readAll()) {
      const { name } = nameAndVersion(word, this.vocabulary);
      if (this.vocabulary.packages.has(name) && !this.spec.name) return name;
    }
    return this.spec.name;
  }

  /* Reads all words; returns those without a meaning, and numbers behind them. */
  readAll() {
    const { negations, limits } = this.vocabulary;
    const unread = [];
    let negation = "";
    let isBehindUnread = false;
    let position = 0;
    while (position < this.words.length) {
      const word = this.words[position];
      if (negations.has(word.toLowerCase())) {
        negation = word;
        position += 1;
        continue;
      }
      // What is known before the words shows what they have changed.
      const before = new Map(this.spec.parts());
      const ahead = this.words.slice(position, position + limits.joined);
      const [length, isRead] = negation ? this.spec.readNegated(ahead) : this.readNext(ahead, isBehindUnread);
      const wordsRead = this.words.slice(position, position + length);
      this.keepWords(before, negation, wordsRead);

      if (!isRead) {
        const name = wordsRead.join(" ");
        unread.push(negation ? `without ${name}` : name);
      }
      isBehindUnread = !isRead;
      negation = "";
      position += length;
    }
    return unread;
  }

  /* Reads the next words: `[how many belong together, whether they were read]`. */
  readNext(ahead, isBehindUnread) {
    // Several words may be one name: `netcdf fortran`.
    const length = this.spec.readJoined(ahead);
    if (length > 0) return [length, true];
    const [word] = ahead;
    const number = numberIn(word, this.vocabulary);
    if (isBehindUnread && number !== undefined) {
      // It is the version of the unread word.
      this.spec.addVersionOfUnrecorded(number);
      return [1, false];
    }
    return [1, this.spec.readWord(word)];
  }

  /* Remembers the words of the parts that have changed. */
  keepWords(before, negation, words) {
    for (const [key, text] of this.spec.parts()) {
      if (before.get(key) === text) continue;
      const wordsOfPart = this.wordsOf.get(key) ?? [];
      if (negation) wordsOfPart.push(negation);
      wordsOfPart.push(...words);
      this.wordsOf.set(key, wordsOfPart);
    }
  }

  /* The parts of the spec as tokens. */
  tokens() {
    return this.spec.parts().map(([key, text]) => {
      const words = this.wordsOf.get(key) ?? [];
      return { kind: kindOf(key, this.vocabulary), text, words };
    });
  }
}

/* The kind of a part; a part on anything else is on a dependency or a variant. */
const kindOf = (key, { labels }) => {
  if (key.startsWith("^")) return "dependency";
  return own(labels, key) && key !== "words" && key !== "host" ? key : "variant";
};
