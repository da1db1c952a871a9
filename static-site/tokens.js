/* Tokens, the parts of a search, for people. */
import { providersOf } from "./names.js";
import { optionOf, own } from "./vocabulary.js";

/* What may be meant instead of a token: the processors of `graviton`, other architectures of GPUs. */
export const othersOf = ({ kind, text, words }, vocabulary) => {
  if (kind === "target") return own(vocabulary.generations, (words.at(-1) ?? "").toLowerCase()) ?? [];
  const { name } = optionOf(text);
  if (kind !== "variant" || !own(vocabulary.gpuSwitches, name)) return [];
  const architectures = vocabulary.options.filter((option) => option.name === name).flatMap(({ values }) => values);
  return [...new Set(architectures)].sort().map((value) => `${name}=${value}`).filter((other) => other !== text);
};

/* A token for people: `gcc 13` for `%gcc@13`, `zen3` for `target=:zen3`. */
export const readable = ({ kind, text }, vocabulary) => {
  if (kind === "target") {
    const constraint = text.slice("target=".length);
    if (/^:[^:,]+$/.test(constraint)) return constraint.slice(1);
    return /^[^:,]+:$/.test(constraint) ? `any ${constraint.slice(0, -1)}` : constraint;
  }
  if (kind === "os" || kind === "platform") return text.split("=")[1];
  if (kind === "compiler" || kind === "dependency") return text.replace(/^[%^]/, "").replace("@", " ");
  const isVirtual = kind === "package" && !vocabulary.packages.has(text) && providersOf(text, vocabulary).length;
  return isVirtual ? `provides ${text}` : text;
};
