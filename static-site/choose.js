/* The chooser on the page of a package in a static export. A choice is in the address of the page, as on a
   server: `?version=1.14.6&host=zen3`. So a link to it works, and so do Back and a reload. */
import { Builds, choicesOf } from "./builds.js";
import { element } from "./elements.js";
import { machinePicks, switchOf, systemPicks, versionPicks } from "./picks.js";
import { proposed as proposedBuild } from "./rule.js";

/* Rows that a long table begins with. */
const MOST_ROWS = 25;

const place = document.getElementById("builds-data");
const chooser = document.querySelector(".picker");
const showAll = element("button", { type: "button" }, "Show all");
let builds;
let hasAllRows = false;

/* Shows what the address chooses: the values that can be picked, the build, its commands and its rows. */
const show = () => {
  const choices = choicesOf(location.search);
  const { row, reason } = buildOf(choices);
  const isAll = new URLSearchParams(location.search).get("versions") === "all";
  fill("version", versionPicks(builds, choices, row, isAll));
  fill("machine", machinePicks(builds, choices, row));
  fill("system", systemPicks(builds, choices, row));
  fillSwitches(choices, row);
  fillMatch(choices, row, reason);
  fillCard(row);
  mark(choices, row);
};

/* The build of the address: the row that it names, or else the proposed one. */
const buildOf = (choices) => {
  const hash = new URLSearchParams(location.search).get("use");
  const used = hash ? builds.rows.find(({ shown }) => shown === hash) : undefined;
  if (used) return { row: used, reason: "your choice" };
  return proposedBuild(builds, choices) ?? { row: null, reason: "" };
};

/* Shows the values of a choice, `version`, `machine` or `system`. */
const fill = (label, { picks, rest }) => {
  const values = document.getElementById(`pick-${label}`)?.parentElement.querySelector(".values");
  if (!values) return;
  const more = values.querySelector(".more");
  values.replaceChildren(...picks.map(pick));
  if (more && rest > 0) {
    more.firstChild.data = `${rest} more`;
    values.append(more);
  }
};

/* A value: a link, or the reason why no build has it with the other choices. */
const pick = ({ name, note, href, isChosen, isPast }) => {
  const text = [name, element("small", {}, note)];
  if (!href) return element("span", { class: "impossible" }, ...text);
  const attributes = { href };
  if (isChosen) {
    attributes.class = "chosen";
    attributes["aria-current"] = "true";
  } else if (isPast) {
    attributes.class = "past";
  }
  return element("a", attributes, ...text);
};

/* The switches keep their places: only what they lead to changes. */
const fillSwitches = (choices, row) => {
  for (const shown of document.querySelectorAll(".picker .switch")) {
    const name = shown.dataset.option;
    const state = switchOf(builds, choices, row, name, shown.classList.contains("on"));
    const made = switchElement(name, state, shown.title);
    made.hidden = !row || !state.isOwn;
    shown.replaceWith(made);
  }
};

const switchElement = (name, { isOn, opposite, href, reason }, title) => {
  const sign = isOn ? "+" : "~";
  const text = [element("i"), name, " ", element("code", {}, `${sign}${name}`)];
  const kind = isOn ? "switch on" : "switch";
  const attributes = { "data-option": name };
  if (title) attributes.title = title;
  if (!href) {
    const why = element("small", {}, `${opposite}: ${reason}`);
    return element("span", { class: `${kind} impossible`, ...attributes }, ...text, " ", why);
  }
  const help = element("span", { class: "visually-hidden" }, `, switch ${isOn ? "off" : "on"}`);
  return element("a", { class: kind, href, ...attributes }, ...text, help);
};

/* The build in words, with the reason and the number of others. */
const fillMatch = (choices, row, reason) => {
  const match = chooser.querySelector(".match");
  if (!row) {
    match.replaceChildren(element("strong", { class: "gone" }, noMatch()), " ", removeAll());
    return;
  }
  const words = element("strong", {}, `● ${builds.words(row, choices)}`);
  const hash = element("a", { class: "hash", href: `../index.html#/binary/${row.hash}` }, `/${row.hash.slice(0, 7)}`);
  const why = element("span", { class: "quiet" }, `(${reason})`);
  why.append(...contentOf(`template[data-from="${row.card}"]`));
  const count = builds.fitting(choices).length;
  if (count > 1) {
    const all = `all ${count.toLocaleString("en")} builds below`;
    why.append(" · ", element("a", { href: "#configurations-heading" }, all));
  }
  match.replaceChildren(words, " ", hash, " ", why);
};

const noMatch = () => `No ${builds.data.noun} matches these filters.`;

const removeAll = () => element("a", { href: "?#builds" }, "Remove all filters");

/* The nodes of a template; none without one. */
const contentOf = (selector) => {
  const template = document.querySelector(selector);
  return template ? [...template.content.cloneNode(true).childNodes] : [];
};

/* The commands of a row. */
const fillCard = (row) => {
  const card = document.getElementById("install");
  if (row) {
    card.replaceChildren(...commandsOf(row));
    return;
  }
  const heading = element("h2", { id: "install-heading" }, "Nothing to install");
  card.replaceChildren(heading, element("p", {}, noMatch()), element("p", {}, removeAll()));
};

/* The nodes of the card of a row, with the marks filled. */
const commandsOf = (row) => {
  const [specMark, sizeMark, entryMark] = builds.data.marks;
  // The entry stands in quotation marks.
  const entry = JSON.stringify(builds.entry(row)).slice(1, -1);
  const spec = `${builds.data.package}/${row.hash.slice(0, row.length)}`;
  const filled = (text) => text
    .replaceAll(specMark, spec)
    .replaceAll(sizeMark, row.size)
    .replaceAll(entryMark, entry);

  const card = document.querySelector(`template[data-card="${row.card}"]`).content.cloneNode(true);
  const texts = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = filled(texts.currentNode.data);
  for (const button of card.querySelectorAll("[data-copy]")) {
    button.dataset.copy = filled(button.dataset.copy);
    button.hidden = false;
  }
  return [...card.childNodes];
};

/* Marks the cell of the map and the row of the table that are those of a build, and shows the rows that have what
   is chosen. */
const mark = (choices, row) => {
  markCells(row);
  const fitting = new Set(builds.fitting(choices).map(({ shown }) => shown));
  const count = showRows(fitting, row);
  showAll.textContent = `Show all ${count.toLocaleString("en")}`;
  showAll.hidden = hasAllRows || count <= MOST_ROWS;

  const results = document.getElementById("results");
  results.dataset.all ??= results.textContent;
  const chosen = `${fitting.size.toLocaleString("en")} of them have what is chosen`;
  results.textContent = choices.length > 0 ? chosen : results.dataset.all;
};

const markCells = (row) => {
  for (const cell of document.querySelectorAll("table a[class^='heat-'][href*='version=']")) {
    const fields = choicesOf(new URL(cell.href).search);
    const isOfProcessor = fields.some(([field]) => field !== "version");
    const isOwn = row && isOfProcessor && fields.every((choice) => builds.has(row, choice));
    if (isOwn) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  }
};

/* Shows the rows of the table with one of the hashes, at first the first of them; returns their number. */
const showRows = (fitting, row) => {
  let count = 0;
  for (const shown of document.querySelectorAll("#configurations tbody tr[data-hash]")) {
    const isFitting = fitting.has(shown.dataset.hash);
    const isOwn = shown.dataset.hash === row?.shown;
    const isBehind = count >= MOST_ROWS && !hasAllRows && !isOwn;
    shown.hidden = !isFitting || isBehind;
    shown.classList.toggle("chosen", isOwn);
    if (isFitting) count += 1;
  }
  return count;
};

/* A choice changes the page without loading it again. */
const open = (event) => {
  const link = event.target.closest?.("a[href]");
  const isForBrowser = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link || event.defaultPrevented || isForBrowser) return;
  const url = new URL(link.href);
  const isThisPage = url.origin + url.pathname === location.origin + location.pathname;
  if (!isThisPage || url.search === location.search) return;

  event.preventDefault();
  const group = link.closest(".pick")?.querySelector("h3").id;
  const name = link.firstChild.textContent;
  history.pushState(null, "", url);
  show();
  focusAgain(group, name);
};

/* The link that was followed is replaced: focus stays at its place. */
const focusAgain = (group, name) => {
  const links = group ? document.getElementById(group).parentElement.querySelectorAll("a") : [];
  const again = [...links].find((link) => link.firstChild.textContent === name);
  if (again) again.focus({ preventScroll: true });
  else document.getElementById("builds").scrollIntoView();
};

const openAll = () => {
  hasAllRows = true;
  showAll.hidden = true;
  const choices = choicesOf(location.search);
  mark(choices, buildOf(choices).row);
  document.getElementById("configurations-heading").scrollIntoView();
};

if (place && chooser) {
  builds = new Builds(JSON.parse(place.textContent));
  document.addEventListener("click", open);
  addEventListener("popstate", show);
  document.getElementById("configurations")?.after(showAll);
  showAll.addEventListener("click", openAll);
  if (location.search) show();
  else mark([], buildOf([]).row);
}
