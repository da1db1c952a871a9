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
CROSS JOIN configurations ON configurations.package = packages.id
CROSS JOIN versions ON versions.id = configurations.version
CROSS JOIN compilers ON compilers.id = configurations.compiler
CROSS JOIN operating_systems ON operating_systems.id = configurations.os
CROSS JOIN targets ON targets.id = configurations.target
CROSS JOIN variant_sets ON variant_sets.id = configurations.variants
WHERE packages.name = ?1 AND configurations.spec_count > 0
ORDER BY versions.position DESC, compilers.compiler DESC, configurations.id`;
const BINARIES = `
SELECT hash, release_count, last_seen FROM specs WHERE configuration = ?1 AND release_count > 0 AND NOT is_gone
ORDER BY last_seen IS NOT NULL, last_seen DESC, hash`;
const RELEASES = "SELECT id, name, kind FROM releases ORDER BY position";
const LISTING = "SELECT 1 FROM listings JOIN specs ON specs.id = listings.spec WHERE release = ?1 AND hash = ?2";

const catalogue = await (await fetch("catalogue.json", { cache: "no-cache" })).json();
const example = catalogue.packages[0]?.[0] ?? "hdf5";
const EXAMPLE = `SELECT package, version, compiler, target, count(*) AS binaries\nFROM builds WHERE package = '${example}' GROUP BY 1, 2, 3, 4`;
document.getElementById("title").textContent = catalogue.title;
document.getElementById("download").href = catalogue.database;

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

/* The first release that lists a binary and whose mirror has a known address, as `find --install`. */
const commands = async (name, hash) => {
  const spec = `${name}/${hash}`;
  let first;
  for (const [id, release, kind] of (await ask(RELEASES)).rows) {
    if ((await ask(LISTING, [id, hash])).rows.length === 0) continue;
    if (kind === "installed") return [`spack load ${quoted(spec)}`];
    const url = await mirror(release, hash);
    const found = [`spack mirror add ${quoted(release)} ${quoted(url ?? catalogue.placeholder)}`, catalogue.trust, `spack install --cache-only ${quoted(spec)}`];
    if (url) return found;
    first ??= found;
  }
  return first ?? [];
};

const mirror = async (release, hash) => {
  const [row] = (await ask(catalogue.statements.mirror, { ":release": release, ":hash": hash })).rows;
  if (row && row[1]) return row[0];
  const [tarball] = (await ask(catalogue.statements.tarball, { ":release": release, ":hash": hash })).rows;
  const [prefix, path] = (tarball?.[0] ?? "").split(catalogue.tarballPath);
  return path ? prefix : row ? row[0] : catalogue.publicMirrors[release];
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
    if (rows.length === 0) return [element("h1", {}, name), element("p", {}, "This build cache has no binary of this package.")];
    return [
      element("h1", {}, name),
      table(counted(rows.length, "configurations"), ["Version", "Compiler", "OS", "Target", "Variants", "Binaries"],
        rows.map(([id, ...cells]) => [...cells.slice(0, 5), binaries(name, id, cells[5])])),
    ];
  },

  binary: async (spec) => {
    const [name, hash] = spec.split("/");
    const lines = await commands(name, hash);
    return [
      element("h1", {}, link("package", name), " ", element("span", { class: "hash" }, `/${hash}`)),
      lines.length ? element("h2", {}, "Install it") : element("p", {}, "No release lists this binary."),
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
