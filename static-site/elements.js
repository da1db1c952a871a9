/* Elements of pages, and numbers in words. */

/* `name` is a plural. */
export const counted = (number, name) => `${number.toLocaleString("en")} ${number !== 1 ? name : name === "binaries" ? "binary" : name.slice(0, -1)}`;

export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((each) => each ?? ""));
  return made;
};

export const table = (caption, columns, rows) => element("table", { class: "rows" },
  element("caption", {}, caption),
  element("thead", {}, element("tr", {}, ...columns.map((each) => element("th", { scope: "col" }, each)))),
  element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell instanceof Uint8Array ? `${cell.length} bytes` : cell))))));

/* A link to the page of a package, whose file has the name that the export gave it (`addresses.py`). */
export const link = (kind, name) => element("a", { href: `${kind}/${fileName(name)}.html` }, name);

const fileName = (name) => name.replace(/[^a-z0-9._+-]|^[.-]|\.$/gu, (text) =>
  [...new TextEncoder().encode(text)].map((byte) => `~${byte.toString(16).padStart(2, "0")}`).join(""));
