/* Searches packages, shows binaries and runs SQL over the database that catalogue.json names. */
import { commands } from "./commands.js";
import { ask, catalogue } from "./database.js";
import { counted, element, link, table } from "./elements.js";
import { search } from "./search.js";

const main = document.getElementById("main");

// Before anything is fetched: `show` opens a search that was submitted meanwhile.
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `#/search/${encodeURIComponent(document.getElementById("q").value.trim())}`;
});

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

const example = catalogue.packages[0]?.[0] ?? "hdf5";
const EXAMPLE = `SELECT package, version, compiler, target, count(*) AS binaries\nFROM builds WHERE package = '${example}' GROUP BY 1, 2, 3, 4`;
document.getElementById("title").textContent = catalogue.title;
document.getElementById("download").href = catalogue.database;
if (catalogue.tables) {
  document.getElementById("tables").hidden = false;
  document.getElementById("tables-link").href = catalogue.tables;
}

const pages = {
  "": async () => [
    element("h1", {}, catalogue.title),
    element("p", {}, ["binaries", "packages", "releases"].map((name) => counted(catalogue.totals[name], name)).join(" · ")),
    element("p", {}, "Search for a package, for example ", link("package", example), ", and copy the commands that install a binary. You can also query the database with ",
      element("a", { href: "#/sql" }, "SQL"), "."),
    table("Packages with the most binaries", ["Package", "Newest version", "Binaries"],
      catalogue.packages.map(([name, version, count]) => [link("package", name), version, count.toLocaleString("en")])),
  ],

  search,

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
await show();
