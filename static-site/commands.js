/* The commands that install or load a binary, as `find --install` prints them. */
import { ask, catalogue } from "./database.js";

const RELEASES = "SELECT id, name, kind, is_copy FROM releases ORDER BY kind <> 'installed', position";
const LISTING = `
SELECT 1 FROM listings JOIN specs ON specs.id = listings.spec_id
WHERE release_id = ?1 AND hash = ?2`;

/* Returns the lines to type, and the packages that Spack must build; no lines if nothing lists the binary. */
export const commands = async (name, hash) => {
  const spec = quoted(`${name}/${hash}`);
  const release = await releaseOf(hash);
  if (release === null) return { lines: [], missing: [] };
  if (release.kind === "installed") return { lines: [`spack load ${spec}`], missing: [] };

  // Only a page lists the binary: its dependencies are not known.
  const members = await closureOf(hash);
  if (members.length === 0 || !isListed(members[0])) {
    const add = await addOfPage(release.name, hash);
    return { lines: [add, catalogue.trust, `spack install --cache-only ${spec}`], missing: [] };
  }

  // An index lists it: the mirrors that have it and what it needs.
  const mirrors = fewestMirrors(members.filter(isListed));
  const lines = addCommands(mirrors);
  if (mirrors.some((mirror) => mirror.isSigned)) lines.push(catalogue.trust);
  const missing = missingPackages(members);
  lines.push(missing.length > 0 ? `spack install ${spec}` : `spack install --cache-only ${spec}`);
  return { lines, missing };
};

/* Quotes a word for a shell, as Python's shlex.quote does. */
const quoted = (word) => {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'"'"'`)}'`;
};

/* The first release that lists a binary: an installation, or the newest; null if none does. Snapshots that
   `build --snapshot` made have no mirror of their own. */
const releaseOf = async (hash) => {
  const { rows } = await ask(RELEASES);
  for (const [id, name, kind, isCopy] of rows) {
    if (isCopy) continue;
    const listing = await ask(LISTING, [id, hash]);
    if (listing.rows.length > 0) return { name, kind };
  }
  return null;
};

/* What an installation of a binary needs, the binary first: packages, and the ids of the indexes that list
   them. */
const closureOf = async (hash) => {
  if (catalogue.mirrors.length === 0) return [];
  const { rows } = await ask(catalogue.statements.closure, { ":hash": hash });
  return rows.map(([, name, ids]) => ({ package: name, indexes: JSON.parse(ids) }));
};

const hasBinary = (mirror, member) => member.indexes.some((id) => mirror.ids.includes(id));

const isListed = (member) => catalogue.mirrors.some((mirror) => hasBinary(mirror, member));

const missingPackages = (members) => {
  const missing = members.filter((member) => !isListed(member));
  const names = new Set(missing.map((member) => member.package));
  return [...names].sort();
};

/* The first mirror that lists all; or else the one with most of what is left, until nothing is. The first
   member is the binary itself, whose mirror comes first. */
const fewestMirrors = (members) => {
  const chosen = [];
  let left = members;
  let offered = catalogue.mirrors.filter((mirror) => hasBinary(mirror, members[0]));
  while (left.length > 0) {
    const best = mirrorWithMost(offered, left);
    chosen.push(best);
    left = left.filter((member) => !hasBinary(best, member));
    offered = catalogue.mirrors;
  }
  return chosen;
};

/* The mirror that lists most of the members; the first one of equals. */
const mirrorWithMost = (mirrors, members) => {
  let best = null;
  let most = -1;
  for (const mirror of mirrors) {
    const count = members.filter((member) => hasBinary(mirror, member)).length;
    if (count > most) {
      best = mirror;
      most = count;
    }
  }
  return best;
};

/* A second mirror of a release gets another name. */
const addCommands = (mirrors) => {
  const releases = new Set();
  const lines = [];
  for (const mirror of mirrors) {
    lines.push(releases.has(mirror.release) ? mirror.addBeside : mirror.add);
    releases.add(mirror.release);
  }
  return lines;
};

/* A binary that only a page lists is where its tarball is, or else in the mirror of its release. */
const addOfPage = async (release, hash) => {
  const { rows } = await ask(catalogue.statements.tarball, { ":release": release, ":hash": hash });
  const tarball = rows[0]?.[0] ?? "";
  const [prefix, path] = tarball.split(catalogue.tarballPath);
  if (path) return `spack mirror add ${quoted(release)} ${quoted(prefix)}`;
  const mirror = catalogue.mirrors.find((each) => each.release === release);
  if (mirror) return mirror.add;
  return `spack mirror add ${quoted(release)} ${quoted(catalogue.publicMirrors[release])}`;
};
