/* The answer to a search. `search` gets the text of the form and the machine that the visitor has chosen, and
   returns the elements of the page. words.js reads the text; vocabulary.json has all that it needs. */
import { ask } from "./database.js";
import { counted, element } from "./elements.js";
import { linkToPackage } from "./links.js";
import { cellsOf, fieldsOf, isChosen, rows, unchecked } from "./matches.js";
import { othersOf, readable } from "./tokens.js";
import { vocabularyOf } from "./vocabulary.js";
import { read } from "./words.js";

const HASH = /^\/?([a-z2-7]{7,32})$/;
const BINARIES = `
SELECT packages.name, hash FROM specs
CROSS JOIN configurations ON configurations.id = specs.configuration_id
CROSS JOIN packages ON packages.id = configurations.package_id
WHERE hash >= ?1 AND hash < ?1 || '~' ORDER BY hash LIMIT 20`;
const DESCRIBED = `
SELECT name FROM known_packages_fts
CROSS JOIN known_packages ON known_packages.id = known_packages_fts.rowid
WHERE known_packages_fts MATCH ?1 ORDER BY dependent_count DESC, name LIMIT 30`;
const MOST_NAMED = 8;
const NO_TEXT = "Type the name of a package, or words such as “pytorch cuda zen3”.";

let vocabulary;
const loadVocabulary = async () => {
  const response = await fetch("vocabulary.json", { cache: "no-cache" });
  if (!response.ok) throw new Error(`vocabulary.json: the server answered with status ${response.status}`);
  return vocabularyOf(await response.json());
};

export const search = async (text, machine = "") => {
  if (text === "") return [element("h1", {}, "Search"), element("p", {}, NO_TEXT)];
  vocabulary ??= await loadVocabulary();
  const found = read(text, vocabulary, machine);
  if (found.page) {
    // The page of the package has the whole answer.
    location.replace(packageLink(found.page, found.tokens).href);
    return [element("h1", {}, linkToPackage(found.page))];
  }
  const isOfNames = found.packages.length > 0 || found.dropped.length === 0;
  return isOfNames ? answer(text, found, machine) : answerOfDatabase(text, found, machine);
};

/* No name is known: the text may be a hash, or words of descriptions, which are in the database. */
const answerOfDatabase = async (text, found, machine) => {
  const [, prefix] = HASH.exec(text.toLowerCase()) ?? [];
  const binaries = prefix ? (await ask(BINARIES, [prefix])).rows : [];
  if (binaries.length) {
    const links = binaries.map(([name, hash]) => element("li", {},
      element("a", { href: `#/binary/${encodeURIComponent(`${name}/${hash}`)}` }, `${name} /${hash}`)));
    const title = `Binaries whose hash begins with ${prefix}`;
    return [element("h1", { class: "asked" }, title), element("ul", {}, ...links)];
  }
  const described = await describedPackages(found.dropped);
  if (!described.length) return answer(text, found, machine);
  const packages = rows(described.map((name) => [name, ""]), found.tokens, vocabulary);
  return answer(text, { ...found, packages, dropped: [], unmatched: [] }, machine);
};

/* The packages whose descriptions have all words, those that many others need first. */
const describedPackages = async (words) => {
  const match = words.flatMap((word) => word.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => `"${word}"`).join(" ");
  if (!match || !vocabulary.hasDescriptions) return [];
  const described = (await ask(DESCRIBED, [match])).rows;
  return described.map(([name]) => name).filter((name) => vocabulary.packages.has(name));
};

const answer = (text, found, machine) => {
  const built = found.packages.filter(({ total }) => total);
  const shown = built.slice(0, vocabulary.limits.rows);
  return [
    found.tokens.length ? tokenList(text, found, machine) : "",
    element("h1", { class: "asked" }, heading(found, built, shown)),
    notes(found),
    shown.length ? packageTable(shown, found.tokens) : "",
    compiledBy(found.tokens),
    named("Also", built.slice(shown.length)),
    named("Known to Spack, without a binary here:", found.packages.filter(({ total }) => !total)),
    found.packages.length || vocabulary.hasDescriptions ? "" : noDescriptions(),
  ];
};

const noDescriptions = () => element("p", { class: "quiet" },
  "This database has the names of packages, and not their descriptions. These are on ",
  element("a", { href: "https://packages.spack.io/" }, "packages.spack.io"), ".");

/* The address of the search for words. */
const address = (words, machine) => {
  const ofMachine = machine ? [["host", machine]] : [];
  return `?${new URLSearchParams([["q", words.join(" ")], ...ofMachine])}`;
};

/* A link to the page of a package, with what the tokens choose. */
const packageLink = (name, tokens, fields = []) => {
  const made = linkToPackage(name);
  const choice = [...fields, ...fieldsOf(name, tokens, vocabulary)];
  if (choice.length) made.search = new URLSearchParams(choice);
  return made;
};

/* What was understood, in parts that can be removed. */
const tokenList = (text, { tokens }, machine) => {
  const items = tokens.map((token) => {
    const name = readable(token, vocabulary);
    const left = without(text, token);
    const others = othersOf(token, vocabulary).map((other) =>
      element("a", { href: address([...left, other], machine) }, other));
    // A token without words is the machine that the visitor has chosen.
    const removed = token.words.length ? address(left, machine) : address([text]);
    return element("li", { class: "token" },
      element("span", {}, vocabulary.labels[token.kind]),
      element("b", {}, name),
      ...others,
      element("a", { href: removed, "aria-label": `Remove ${name}` }, "✕"));
  });
  return element("ul", { class: "tokens", "aria-label": "What was understood" }, ...items);
};

/* The words of a text without those of a token; `hdf5+mpi` are two of them. */
const without = (text, { words }) => {
  let left = text;
  for (const word of words) left = left.replace(word, " ");
  return left.split(/\s+/).filter(Boolean);
};

const heading = ({ words, packages, tokens, dropped, isGuess }, built, shown) => {
  if (packages.length === 0 && dropped.length === 0) return `No binary${phrases(tokens)}`;
  if (packages.length === 0) return `No package is called “${words}”.`;
  if (isGuess) return `No package is called “${words}”. Perhaps:`;
  const suitable = built.filter(({ count }) => count).length;
  const all = counted(built.length, "packages");
  const have = suitable === 1 || built.length === 1 ? "has" : "have";
  return `${suitable === built.length ? all : `${suitable} of ${all}`} ${have} a binary${phrases(tokens)}`;
};

/* What an answer is limited to: ` built with gcc 13 for zen3`. */
const phrases = (tokens) => {
  const checked = tokens.filter((token) => unchecked([token], vocabulary).length === 0);
  const texts = Object.entries(vocabulary.phrases).flatMap(([label, word]) => checked
    .filter(({ kind }) => vocabulary.labels[kind] === label)
    .map((token) => ` ${word} ${readable(token, vocabulary)}`));
  return texts.join("");
};

const quoted = (words) => words.map((word) => `“${word}”`).join(" and ");

/* What was left out of the text, and why: no word is dropped without a note. */
const notes = ({ tokens, dropped, fillers, unrecorded, unmatched }) => {
  const lines = [];
  const switchOf = (condition) => vocabulary.gpuSwitches[condition.split("=")[0]];
  if (fillers.length) lines.push(`Not used: ${quoted(fillers)}`);
  for (const { text, words } of tokens) {
    if (switchOf(text) && !words.includes(text)) lines.push(`${quoted([words.join(" ")])} is ${text}`);
  }
  for (const condition of unrecorded.filter(switchOf)) {
    const variant = condition.split("=")[0];
    lines.push(`This database does not record ${variant}: +${switchOf(condition)} stands for ${condition}`);
  }
  const dependencies = unrecorded.filter((condition) => !switchOf(condition)).map((text) => text.replace("@", " "));
  if (dependencies.length) {
    lines.push(`This database does not record dependencies, so ${quoted(dependencies)} is not checked`);
  }
  const others = unchecked(tokens, vocabulary).map((token) => {
    const label = token.kind === "package" ? "the version of" : vocabulary.labels[token.kind];
    return `${label} ${readable(token, vocabulary)}`;
  });
  if (others.length) lines.push(`Not checked by this search: ${others.join(", ")}`);
  const said = dependencies.flatMap((text) => text.split(" "));
  const unknown = [...new Set([...dropped, ...unmatched])].filter((word) => !said.includes(word.toLowerCase()));
  if (unknown.length) lines.push(`Not understood, and left out: ${quoted(unknown)}`);
  if (!lines.length) return "";
  return element("p", { class: "quiet small notes" }, ...lines.map((line) => `${line}. `));
};

/* The packages, each with its binaries by processor. */
const packageTable = (shown, tokens) => {
  const cells = new Map(shown.map(({ name }) => [name, cellsOf(name, tokens, vocabulary)]));
  const top = Math.max(...[...cells.values()].flat());
  // The last column is that of all other processors.
  const last = vocabulary.processors.length - 1;
  const hasOthers = [...cells.values()].some((counts) => counts[last] > 0);
  const columns = vocabulary.processors
    .map(([name, short, target, platform], at) => (
      { name, short, target, platform, at, kind: kindOf(target, platform, tokens) }))
    .filter(({ at }) => at !== last || hasOthers);
  const bodyRows = shown.map((row) => element("tr", { class: row.count ? "package" : "package lacking" },
    element("th", { scope: "row" }, ...about(row, tokens)),
    ...columns.map((column) => cell(row.name, column, cells.get(row.name)[column.at], top, tokens)),
    element("td", { class: "act" }, chooser(row, tokens))));
  const headings = columns.map(({ name, kind }) =>
    element("th", { scope: "col", class: kind }, element("span", { class: "name" }, name)));
  return element("table", { class: "processors" },
    element("caption", { class: "visually-hidden" }, "Packages, and their binaries by processor"),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "Package"),
      ...headings,
      element("th", { scope: "col" }, element("span", { class: "visually-hidden" }, "Build")))),
    element("tbody", {}, ...bodyRows));
};

const kindOf = (target, platform, tokens) => (
  isChosen(target, platform, tokens, vocabulary) ? "heat chosen" : "heat");

const about = ({ name, reason, count, total }, tokens) => {
  const parts = [packageLink(name, tokens)];
  if (reason) parts.push(element("p", {}, element("span", { class: "pill reason" }, reason)));
  if (!count) {
    const all = element("span", { class: "quiet" }, ` · ${counted(total, "binaries")} in all`);
    parts.push(element("p", { class: "gone" }, `no binary${phrases(tokens)}`, all));
  }
  return parts;
};

/* The number of binaries for a processor, with the page of the package for it. */
const cell = (name, { name: column, short, target, platform, kind }, count, top, tokens) => {
  const attributes = { class: kind, "data-label": short };
  if (!count) return element("td", attributes, element("span", { class: "none" }, "none"));
  const others = tokens.filter((token) => token.kind !== "target");
  const fields = target ? [["target", target]] : [];
  // A target alone is not enough if the database has several platforms; all other binaries have no choice.
  if (platform && (!target || vocabulary.platforms.length > 1)) fields.push(["platform", platform]);
  const made = packageLink(name, others, fields);
  made.textContent = count.toLocaleString("en");
  made.className = `heat-${heatOf(count, top)}`;
  made.setAttribute("aria-label", `${counted(count, "binaries")}: ${name}, ${column}`);
  return element("td", attributes, made);
};

/* The colour of a count: the darkest above a half of the greatest one, the next above a quarter, and so on. */
const heatOf = (count, top) => 4 - [2, 4, 8].filter((share) => count * share <= top).length;

/* The page of the package chooses the build, and has the commands that install it. */
const chooser = ({ name }, tokens) => {
  const made = packageLink(name, tokens);
  made.textContent = "Choose";
  made.className = "button";
  made.setAttribute("aria-label", `Choose a build of ${name}`);
  return made;
};

/* A package that is a compiler also stands for what it compiled. */
const compiledBy = (tokens) => {
  const isCompiler = ({ kind, text }) => kind === "package" && vocabulary.compilers.includes(text.split("@")[0]);
  const compiler = tokens.find(isCompiler)?.text;
  if (compiler === undefined) return "";
  const words = `Packages built with ${compiler.replace("@", " ")}`;
  return element("p", {}, element("a", { href: address([`%${compiler}`]) }, words));
};

const named = (words, packages) => {
  if (!packages.length) return "";
  // A package that no release lists has no page here.
  const shown = ({ name }) => (vocabulary.packages.get(name).isListed ? linkToPackage(name) : name);
  const links = packages.slice(0, MOST_NAMED).flatMap((found, at) => [at ? ", " : " ", shown(found)]);
  const more = packages.length - MOST_NAMED;
  const rest = more > 0 ? ` and ${more.toLocaleString("en")} more` : "";
  return element("p", { class: "quiet" }, words, ...links, rest, ".");
};
