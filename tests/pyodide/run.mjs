/* Runs a Python program in Pyodide: node run.mjs PROGRAM MODULES FOLDER...
 * MODULES has the npm package; the program sees each folder at its own path. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [program, modules, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(modules, "pyodide", "pyodide.mjs")));
const pyodide = await loadPyodide();
for (const folder of folders) {
  pyodide.FS.mkdirTree(folder);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, folder);
}
try {
  await pyodide.runPythonAsync(readFileSync(program, "utf-8"));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
