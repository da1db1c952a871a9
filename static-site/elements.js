/* Elements of pages, and numbers in words. */

/* A number with its noun, which is given as a plural: `1 binary`, `2,000 packages`. */
export const counted = (number, plural) => {
  const text = number.toLocaleString("en");
  if (number !== 1) return `${text} ${plural}`;
  return plural === "binaries" ? `${text} binary` : `${text} ${plural.slice(0, -1)}`;
};

/* A number of bytes with three digits, as the site has it: `39.2 kB`, `212 MB`. */
export const bytesText = (bytes) => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let place = 0;
  while (value >= 999.5 && place < units.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${value.toFixed(place > 0 && value < 99.95 ? 1 : 0)} ${units[place]}`;
};

export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((each) => each ?? ""));
  return made;
};

export const table = (caption, columns, rows) => {
  const heads = columns.map((column) => element("th", { scope: "col" }, column));
  const lines = rows.map((row) => element("tr", {}, ...row.map(tableCell)));
  return element("table", { class: "rows" },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...lines));
};

const tableCell = (value) => {
  const shown = value instanceof Uint8Array ? `${value.length} bytes` : value;
  return element("td", {}, shown);
};
