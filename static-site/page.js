/* Searches packages, shows binaries and runs SQL over the database that catalogue.json names. */
const main = document.getElementById("main");
const stop = document.getElementById("stop");

// Before anything is fetched: `show` opens a search that was submitted meanwhile.
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `#/search/${encodeURIComponent(document.getElementById("q").value.trim())}`;
});

const PACKAGES = `
SELECT name, newest_version, spec_count, last_seen FROM packages
WHERE instr(lower(name), lower(?1)) ORDER BY lower(name) <> lower(?1), spec_count DESC, name LIMIT 200`;
const CONFIGURATIONS = `
SELECT configurations.id, versions.name, compilers.compiler, operating_systems.name, targets.name,
  variant_sets.text, configurations.spec_count
FROM packages
CROSS JOIN configurations ON configurations.package_id = packages.id
CROSS JOIN versions ON versions.id = configurations.version_id
CROSS JOIN compilers ON compilers.id = configurations.compiler_id
CROSS JOIN operating_systems ON operating_systems.id = configurations.os_id
CROSS JOIN targets ON targets.id = configurations.target_id
CROSS JOIN variant_sets ON variant_sets.id = configurations.variant_set_id
WHERE packages.name = ?1 AND configurations.spec_count > 0
ORDER BY versions.position DESC, compilers.compiler DESC, configurations.id`;
const BINARIES = `
SELECT hash, release_count, last_seen FROM specs WHERE configuration_id = ?1 AND release_count > 0 AND NOT is_gone
ORDER BY last_seen IS NOT NULL, last_seen DESC, hash`;
// Only snapshots that `build --snapshot` made list binaries that the mirror has lost.
const GONE = `
SELECT count(*), max(specs.last_seen)
FROM packages
CROSS JOIN configurations ON configurations.package_id = packages.id
CROSS JOIN specs ON specs.configuration_id = configurations.id
WHERE packages.name = ?1 AND specs.is_gone AND EXISTS (SELECT 1 FROM releases WHERE is_copy)`;
const RELEASES = "SELECT id, name, kind, is_copy FROM releases ORDER BY kind <> 'installed', position";
const LISTING = "SELECT 1 FROM listings JOIN specs ON specs.id = listings.spec_id WHERE release_id = ?1 AND hash = ?2";

const catalogue = await (await fetch("catalogue.json", { cache: "no-cache" })).json();
const example = catalogue.packages[0]?.[0] ?? "hdf5";
const EXAMPLE = `SELECT package, version, compiler, target, count(*) AS binaries\nFROM builds WHERE package = '${example}' GROUP BY 1, 2, 3, 4`;
document.getElementById("title").textContent = catalogue.title;
document.getElementById("download").href = catalogue.database;
if (catalogue.tables) {
  document.getElementById("tables").hidden = false;
  document.getElementById("tables-link").href = catalogue.tables;
}

let worker;
let asked = 0;
const waiting = new Map();

const start = () => {
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => {
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    stop.hidden = waiting.size === 0;
    if (data.error) { reject(new Error(data.error)); return; }
    document.getElementById("read").textContent =
      `(${megabytes(catalogue.size)}; ${megabytes(data.bytes)} of it read, in ${data.requests} requests)`;
    resolve(data);
  };
};

/* `values` is a list for ?1, ?2, or an object for :name. */
const ask = (sql, bind) => new Promise((resolve, reject) => {
  asked += 1;
  waiting.set(asked, { resolve, reject });
  stop.hidden = false;
  const url = new URL(catalogue.database, location.href).href;
  worker.postMessage({ id: asked, url, size: catalogue.size, sql, bind });
});

stop.addEventListener("click", () => {
  worker.terminate();
  for (const { reject } of waiting.values()) reject(new Error("stopped"));
  waiting.clear();
  stop.hidden = true;
  start();
});

/* `name` is a plural. */
const counted = (number, name) => `${number.toLocaleString("en")} ${number !== 1 ? name : name === "binaries" ? "binary" : name.slice(0, -1)}`;

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((each) => each ?? ""));
  return made;
};

const table = (caption, columns, rows) => element("table", { class: "rows" },
  element("caption", {}, caption),
  element("thead", {}, element("tr", {}, ...columns.map((each) => element("th", { scope: "col" }, each)))),
  element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell instanceof Uint8Array ? `${cell.length} bytes` : cell))))));

/* Quotes a word for a shell, as Python's shlex.quote does. */
const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;

const link = (kind, name) => element("a", { href: `#/${kind}/${encodeURIComponent(name)}` }, name);

/* The commands of `find --install`: they load an installed spec, or install from the fewest mirrors. */
const commands = async (name, hash) => {
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

const pages = {
  "": async () => [
    element("h1", {}, catalogue.title),
    element("p", {}, ["binaries", "packages", "releases"].map((name) => counted(catalogue.totals[name], name)).join(" · ")),
    element("p", {}, "Search for a package, for example ", link("package", example), ", and copy the commands that install a binary. You can also query the database with ",
      element("a", { href: "#/sql" }, "SQL"), "."),
    table("Packages with the most binaries", ["Package", "Newest version", "Binaries"],
      catalogue.packages.map(([name, version, count]) => [link("package", name), version, count.toLocaleString("en")])),
  ],

  search: async (words) => {
    const { rows } = await ask(PACKAGES, [words]);
    if (rows.length === 0) return [element("h1", {}, "No package"), element("p", {}, `No package has “${words}” in its name.`)];
    return [
      element("h1", {}, `Packages with “${words}”`),
      table(counted(rows.length, "packages"), ["Package", "Newest version", "Binaries", "Last seen"],
        rows.map(([name, version, count, seen]) => [link("package", name), version, count, seen])),
    ];
  },

  package: async (name) => {
    const { rows } = await ask(CONFIGURATIONS, [name]);
    const [[gone, day]] = (await ask(GONE, [name])).rows;
    if (rows.length === 0) {
      const lost = gone ? ` The mirror has lost ${counted(gone, "binaries")}, last listed ${day}.` : "";
      return [element("h1", {}, name), element("p", {}, `This build cache has no binary of this package.${lost}`)];
    }
    return [
      element("h1", {}, name),
      gone ? element("p", {}, `${gone.toLocaleString("en")} more that the mirror has lost, last listed ${day}.`) : "",
      table(counted(rows.length, "configurations"), ["Version", "Compiler", "OS", "Target", "Variants", "Binaries"],
        rows.map(([id, ...cells]) => [...cells.slice(0, 5), binaries(name, id, cells[5])])),
    ];
  },

  binary: async (spec) => {
    const [name, hash] = spec.split("/");
    const { lines, missing = [] } = await commands(name, hash);
    return [
      element("h1", {}, link("package", name), " ", element("span", { class: "hash" }, `/${hash}`)),
      lines.length ? element("h2", {}, "Install it") : element("p", {}, "No mirror lists this binary."),
      missing.length ? element("p", { class: "notice" }, `No mirror here has a binary of ${missing.join(", ")}: Spack builds from source.`) : "",
      ...lines.map((line) => element("pre", {}, element("code", {}, line))),
    ];
  },

  sql: async (sql) => {
    const area = element("textarea", { id: "sql", rows: 8, spellcheck: "false" }, sql || EXAMPLE);
    const form = element("form", {}, element("p", {}, element("label", { for: "sql" }, "SQL statement")), area,
      element("p", {}, element("button", { type: "submit" }, "Run")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      location.hash = `#/sql/${encodeURIComponent(area.value)}`;
    });
    const shown = [element("h1", {}, "SQL"), form];
    if (!sql) return shown;
    try {
      const { columns, rows, more } = await ask(sql);
      shown.push(table(more ? `The first ${rows.length.toLocaleString("en")} rows` : counted(rows.length, "rows"), columns, rows));
    } catch (error) {
      shown.push(element("p", { class: "notice", role: "alert" }, error.message));
    }
    return shown;
  },
};

const binaries = (name, configuration, count) => {
  const shown = element("details", {}, element("summary", {}, String(count)));
  shown.addEventListener("toggle", async () => {
    const { rows } = await ask(BINARIES, [configuration]);
    shown.append(element("ul", {}, ...rows.map(([hash]) =>
      element("li", {}, element("a", { class: "hash", href: `#/binary/${encodeURIComponent(`${name}/${hash}`)}` }, hash.slice(0, 7))))));
  }, { once: true });
  return shown;
};

let turn = 0;
const show = async () => {
  turn += 1;
  const mine = turn;
  const [, kind, rest] = /^#\/(\w*)\/?(.*)$/s.exec(location.hash) ?? [null, "", ""];
  main.setAttribute("aria-busy", "true");
  let shown;
  try {
    shown = await (pages[kind] ?? pages[""])(decodeURIComponent(rest));
  } catch (error) {
    shown = [element("h1", {}, "Error"), element("p", { class: "notice", role: "alert" }, error.message)];
  }
  if (mine !== turn) return; // The visitor has opened another page.
  main.replaceChildren(...shown);
  main.removeAttribute("aria-busy");
  const title = main.querySelector("h1")?.textContent;
  document.title = !title || title === catalogue.title ? catalogue.title : `${title} – ${catalogue.title}`;
  if (mine > 1) main.focus(); // Screen readers announce the new page.
};

addEventListener("hashchange", show);
start();
await show();
