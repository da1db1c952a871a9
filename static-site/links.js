/* Links to exported pages. */
import { catalogue } from "./database.js";
import { element } from "./elements.js";

/* A link to the page of a package. The export renames files whose names some systems do not have. */
export const linkToPackage = (name) => {
  const isRenamed = Object.hasOwn(catalogue.renamedFiles, name);
  const file = isRenamed ? catalogue.renamedFiles[name] : `package/${name}.html`;
  return element("a", { href: file }, name);
};
