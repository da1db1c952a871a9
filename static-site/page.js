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

const PACKAGE = catalogue.packages[0]?.[0] ?? "hdf5";
const EXAMPLE = `SELECT package, version, compiler, target, count(*) AS binaries
FROM builds WHERE package = '${PACKAGE}' GROUP BY 1, 2, 3, 4`;

/* The answers, by the first word of an address; each returns the elements of a page. */
const answers = {
  // `search` also gets the chosen machine; it may be empty.
  search,

  /* All binaries of a package, by configuration. */
  binaries: async (name) => {
    const { rows } = await ask(CONFIGURATIONS, [name]);
    const cells = [];
    for (const [id, version, compiler, system, target, variants, count] of rows) {
      cells.push([version, compiler, system, target, variants, binariesOf(name, id, count)]);
    }
    const columns = ["Version", "Compiler", "System", "Target", "Variants", "Binaries"];
    const heading = element("h1", {}, "Binaries of ", linkToPackage(name));
    return [heading, table(counted(rows.length, "configurations"), columns, cells)];
  },

  binary: binaryPage,

  /* A form for a statement, and its rows. */
  sql: async (sql) => {
    const shown = [element("h1", {}, "SQL"), statementForm(sql || EXAMPLE)];
    if (!sql) return shown;
    try {
      const { columns, rows, more } = await ask(sql);
      const number = rows.length.toLocaleString("en");
      const caption = more ? `The first ${number} rows` : counted(rows.length, "rows");
      shown.push(table(caption, columns, rows));
    } catch (error) {
      shown.push(notice(error));
    }
    return shown;
  },
};

/* The number of binaries of a configuration, which unfolds to links to them. */
const binariesOf = (name, configuration, count) => {
  const shown = element("details", {}, element("summary", {}, String(count)));
  const unfold = async () => {
    const { rows } = await ask(BINARIES, [configuration]);
    const items = rows.map(([hash]) => element("li", {}, linkToBinary(name, hash)));
    shown.append(element("ul", {}, ...items));
  };
  shown.addEventListener("toggle", unfold, { once: true });
  return shown;
};

/* The form of a statement; it leads to the address of the statement. */
const statementForm = (sql) => {
  const label = element("label", { for: "sql" }, "SQL statement");
  const area = element("textarea", { id: "sql", rows: 8, spellcheck: "false" }, sql);
  const button = element("button", { type: "submit" }, "Run");
  const form = element("form", {}, element("p", {}, label), area, element("p", {}, button));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#/sql/${encodeURIComponent(area.value)}`;
  });
  return form;
};

const notice = (error) => element("p", { class: "notice", role: "alert" }, error.message);

/* What the address asks for: the kind of the answer, its text and the machine. `null` is the first page. */
const questionOfAddress = () => {
  // `#/binary/zlib` has the kind `binary` and the text `zlib`.
  const [, kind, rest] = /^#\/(\w+)\/?(.*)$/s.exec(location.hash) ?? [];
  if (kind in answers) return { kind, text: decodeURIComponent(rest) };
  const fields = new URLSearchParams(location.search);
  if (!fields.has("q")) return null;
  return { kind: "search", text: fields.get("q").trim(), host: fields.get("host") ?? "" };
};

/* The search of other pages is above an answer; the first page has its own. */
const showForm = (question) => {
  const form = document.getElementById("search-again");
  form.hidden = question === null;
  if (question?.kind !== "search") return;
  form.querySelector("[name=q]").value = question.text;
  if (question.host) form.querySelector("[name=host]").value = question.host;
};

/* The elements of an answer; an error is an answer, too. */
const answer = async ({ kind, text, host = "" }) => {
  try {
    return await answers[kind](text, host);
  } catch (error) {
    return [element("h1", {}, "Error"), notice(error)];
  }
};

// Counts the pages that the visitor has opened.
let opened = 0;
const show = async () => {
  opened += 1;
  const current = opened;
  const question = questionOfAddress();
  showForm(question);
  if (question === null) {
    main.replaceChildren(...home);
    document.title = homeTitle;
    return;
  }
  main.setAttribute("aria-busy", "true");
  const shown = await answer(question);
  if (current !== opened) return; // The visitor has opened another page meanwhile.
  main.replaceChildren(...shown);
  main.removeAttribute("aria-busy");
  const heading = main.querySelector("h1")?.textContent ?? "Answer";
  document.title = `${heading} – ${catalogue.title}`;
  main.focus(); // Screen readers announce the new page.
};

addEventListener("hashchange", show);
await show();
