/* The commands that install or load a binary, as `find --install` prints them. */
import { ask, catalogue } from "./database.js";

const RELEASES = "SELECT id, name, kind, is_copy FROM releases ORDER BY kind <> 'installed', position";
const LISTING = "SELECT 1 FROM listings JOIN specs ON specs.id = listings.spec_id WHERE release_id = ?1 AND hash = ?2";

/* Quotes a word for a shell, as Python's shlex.quote does. */
const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;

/* The commands of `find --install`: they load an installed spec, or install from the fewest mirrors. */
export const commands = async (name, hash) => {
  const spec = quoted(`${name}/${hash}`);
  let page;
  for (const [id, release, kind, isCopy] of (await ask(RELEASES)).rows) {
    if (isCopy || (await ask(LISTING, [id, hash])).rows.length === 0) continue;
    if (kind === "installed") return { lines: [`spack load ${spec}`] };
    page = release;
    break;
  }
  if (page === undefined) return { lines: [] };
  const rows = catalogue.mirrors.length ? (await ask(catalogue.statements.closure, { ":hash": hash })).rows : [];
  const closure = rows.map(([, dependency, ids]) => ({ dependency, ids: JSON.parse(ids) }));
  const lists = (mirror, { ids }) => ids.some((id) => mirror.ids.includes(id));
  const isListed = (member) => catalogue.mirrors.some((mirror) => lists(mirror, member));
  // Only a page lists the binary: its dependencies are not known.
  if (closure.length === 0 || !isListed(closure[0])) return { lines: [await addOfPage(page, hash), catalogue.trust, `spack install --cache-only ${spec}`] };
  const mirrors = chosenMirrors(closure.filter(isListed), lists);
  const missing = [...new Set(closure.filter((member) => !isListed(member)).map(({ dependency }) => dependency))].sort();
  const trust = mirrors.some(({ isSigned }) => isSigned) ? [catalogue.trust] : [];
  const install = missing.length ? `spack install ${spec}` : `spack install --cache-only ${spec}`;
  const adds = mirrors.map((mirror, at) => (mirrors.slice(0, at).some(({ release }) => release === mirror.release) ? mirror.addBeside : mirror.add));
  return { lines: [...adds, ...trust, install], missing };
};

/* The first mirror that lists all; or else the one with most of what is left, until nothing is. The first
   member is the binary itself, whose mirror comes first. */
const chosenMirrors = (members, lists) => {
  const chosen = [];
  let left = members;
  while (left.length) {
    const count = (mirror) => left.filter((member) => lists(mirror, member)).length;
    const offered = chosen.length ? catalogue.mirrors : catalogue.mirrors.filter((mirror) => lists(mirror, members[0]));
    const best = offered.reduce((one, other) => (count(other) > count(one) ? other : one));
    chosen.push(best);
    left = left.filter((member) => !lists(best, member));
  }
  return chosen;
};

/* A binary that only a page lists is where its tarball is, or else in the mirror of its release. */
const addOfPage = async (release, hash) => {
  const [tarball] = (await ask(catalogue.statements.tarball, { ":release": release, ":hash": hash })).rows;
  const [prefix, path] = (tarball?.[0] ?? "").split(catalogue.tarballPath);
  const mirror = catalogue.mirrors.find((each) => each.release === release);
  if (!path && mirror) return mirror.add;
  return `spack mirror add ${quoted(release)} ${quoted(path ? prefix : catalogue.publicMirrors[release])}`;
};
