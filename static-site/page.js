/* The first page of a static export: it answers searches, shows binaries and runs SQL, over the database
   that catalogue.json names. Without `?q=` or `#/…` in its address, it is the page as it was exported. */
import { binaryPage, linkToBinary } from "./binary.js";
import { ask, catalogue } from "./database.js";
import { counted, element, table } from "./elements.js";
import { linkToPackage } from "./links.js";
import { search } from "./search.js";

const main = document.getElementById("main");
const home = [...main.childNodes];
const homeTitle = document.title;

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

const example = catalogue.packages[0]?.[0] ?? "hdf5";
const EXAMPLE = `SELECT package, version, compiler, target, count(*) AS binaries\nFROM builds WHERE package = '${example}' GROUP BY 1, 2, 3, 4`;

const pages = {
  // `search` also gets the chosen machine; it may be empty.
  search,

  /* All binaries of a package, by configuration. */
  binaries: async (name) => {
    const { rows } = await ask(CONFIGURATIONS, [name]);
    return [
      element("h1", {}, "Binaries of ", linkToPackage(name)),
      table(counted(rows.length, "configurations"), ["Version", "Compiler", "System", "Target", "Variants", "Binaries"],
        rows.map(([id, ...cells]) => [...cells.slice(0, 5), binaries(name, id, cells[5])])),
    ];
  },

  binary: binaryPage,

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
      element("li", {}, linkToBinary(name, hash)))));
  }, { once: true });
  return shown;
};

/* The page that the address asks for: its kind, its text and the machine; none for the first page. */
const asked = () => {
  const [, kind, rest] = /^#\/(\w+)\/?(.*)$/s.exec(location.hash) ?? [];
  if (kind in pages) return { kind, text: decodeURIComponent(rest) };
  const fields = new URLSearchParams(location.search);
  if (!fields.has("q")) return null;
  return { kind: "search", text: fields.get("q").trim(), host: fields.get("host") ?? "" };
};

/* The search of other pages is above an answer; the first page has its own. */
const showForm = (page) => {
  const form = document.getElementById("search-again");
  form.hidden = page === null;
  if (page?.kind !== "search") return;
  form.querySelector("[name=q]").value = page.text;
  if (page.host) form.querySelector("[name=host]").value = page.host;
};

let turn = 0;
const show = async () => {
  turn += 1;
  const mine = turn;
  const page = asked();
  showForm(page);
  if (page === null) {
    main.replaceChildren(...home);
    document.title = homeTitle;
    return;
  }
  main.setAttribute("aria-busy", "true");
  let shown;
  try {
    shown = await pages[page.kind](page.text, page.host ?? "");
  } catch (error) {
    shown = [element("h1", {}, "Error"), element("p", { class: "notice", role: "alert" }, error.message)];
  }
  if (mine !== turn) return; // The visitor has opened another page.
  main.replaceChildren(...shown);
  main.removeAttribute("aria-busy");
  document.title = `${main.querySelector("h1")?.textContent ?? "Answer"} – ${catalogue.title}`;
  main.focus(); // Screen readers announce the new page.
};

addEventListener("hashchange", show);
await show();
