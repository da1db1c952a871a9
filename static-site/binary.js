/* The page of a binary: its commands, its configuration, what it needs, and other binaries of its
   configuration. */
import { commands } from "./commands.js";
import { ask } from "./database.js";
import { counted, element } from "./elements.js";
import { linkToPackage } from "./links.js";

const BUILD = `
SELECT package, version, compiler, os, platform, target, variants, stacks, release_count FROM builds
WHERE hash = ?1`;
const NAME = `
SELECT packages.name FROM specs
CROSS JOIN configurations ON configurations.id = specs.configuration_id
CROSS JOIN packages ON packages.id = configurations.package_id
WHERE specs.hash = ?1`;
const NEEDS = `
SELECT dependency_package, dependency_version, dependency_hash, types FROM dependency_edges WHERE hash = ?1
ORDER BY dependency_package, dependency_hash`;
const OTHERS = `
SELECT other.hash FROM specs AS own
CROSS JOIN specs AS other ON other.configuration_id = own.configuration_id AND other.hash <> own.hash
WHERE own.hash = ?1 AND other.release_count > 0 AND NOT other.is_gone
ORDER BY other.hash`;

/* `spec` is `NAME/HASH`, or a hash. */
export const binaryPage = async (spec) => {
  const hash = spec.slice(spec.lastIndexOf("/") + 1);
  const [[name] = []] = (await ask(NAME, [hash])).rows;
  if (!name) return [element("h1", {}, "No binary"), element("p", {}, `No binary has the hash ${hash}.`)];
  const { rows: [build] } = await ask(BUILD, [hash]);
  const { rows: needs } = await ask(NEEDS, [hash]);
  const { rows: others } = await ask(OTHERS, [hash]);
  return [
    element("h1", {}, linkToPackage(name), " ", element("span", { class: "hash" }, `/${hash}`)),
    ...await installation(name, hash),
    ...(build ? configuration(build) : []),
    ...links("What it needs", needs.map(([ofPackage, version, ofHash, types]) =>
      [`${ofPackage}@${version}`, ofPackage, ofHash, types])),
    ...links("Other binaries of this configuration", others.map(([ofHash]) => [ofHash, name, ofHash, ""])),
  ];
};

export const linkToBinary = (name, hash, text = hash.slice(0, 7)) =>
  element("a", { class: "hash", href: `#/binary/${encodeURIComponent(`${name}/${hash}`)}` }, text);

const installation = async (name, hash) => {
  const { lines, missing } = await commands(name, hash);
  if (!lines.length) return [element("p", {}, "No mirror lists this binary.")];
  const isLoaded = lines[0].startsWith("spack load ");
  const notes = missing.length
    ? [element("p", { class: "notice" }, `No mirror here has a binary of ${missing.join(", ")}: Spack builds from source.`)] : [];
  return [
    element("h2", {}, isLoaded ? "Load it" : "Install it"),
    ...notes,
    ...lines.map((line) => element("pre", {}, element("code", {}, line))),
  ];
};

const configuration = ([, version, compiler, os, platform, target, variants, stacks, releases]) => {
  const facts = { Version: version, Compiler: compiler, System: os, Platform: platform, Target: target, Variants: variants };
  const named = JSON.parse(stacks);
  if (named.length) facts.Stacks = named.join(" ");
  return [
    element("h2", {}, "Configuration"),
    element("p", { class: "quiet" }, `In ${counted(releases, "releases")}`),
    element("dl", { class: "about" }, ...Object.entries(facts).flatMap(([label, text]) =>
      [element("dt", {}, label), element("dd", {}, element("code", {}, text))])),
  ];
};

/* A folded list of binaries; nothing without any. */
const links = (title, binaries) => {
  if (!binaries.length) return [];
  const items = binaries.map(([text, name, hash, note]) =>
    element("li", {}, linkToBinary(name, hash, text), " ", element("span", { class: "quiet" }, note)));
  const summary = element("summary", {}, `${title}: ${binaries.length.toLocaleString("en")}`);
  return [element("details", {}, summary, element("ul", {}, ...items))];
};
