/* Phrases about builds, which Python wrote (`phrases.js`). */
import { PHRASES } from "./phrases.js";

export { MOST_OPTIONS } from "./phrases.js";

/* A phrase of the site with a text in it. */
export const phrase = (name, text = "") => PHRASES[name].replace("{}", text);
