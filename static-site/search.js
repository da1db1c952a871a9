/* The answer to a search. `search` gets the text of the form, and returns the elements of the page.

   The pages of packages and binaries are at `#/package/NAME` and `#/binary/NAME/HASH`. */
import { ask } from "./database.js";
import { counted, element, link, table } from "./elements.js";

const PACKAGES = `
SELECT name, newest_version, spec_count, last_seen FROM packages
WHERE instr(lower(name), lower(?1)) ORDER BY lower(name) <> lower(?1), spec_count DESC, name LIMIT 200`;

export const search = async (words) => {
  const { rows } = await ask(PACKAGES, [words]);
  if (rows.length === 0) return [element("h1", {}, "No package"), element("p", {}, `No package has “${words}” in its name.`)];
  return [
    element("h1", {}, `Packages with “${words}”`),
    table(counted(rows.length, "packages"), ["Package", "Newest version", "Binaries", "Last seen"],
      rows.map(([name, version, count, seen]) => [link("package", name), version, count, seen])),
  ];
};
