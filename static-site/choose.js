/* The chooser on the page of a package in a static export. A choice is in the address of the page, as on a
   server: `?version=1.14.6&host=zen3`. So a link to it works, and so do Back and a reload. */
import { Builds, OF_MACHINE, OF_SYSTEM, runsOn } from "./builds.js";
import { element } from "./elements.js";

const MOST = 6;
const MOST_ROWS = 25;
const KNOWN_OPTIONS = ["mpi", "cuda", "rocm", "openmp", "shared", "python"];

const place = document.getElementById("builds-data");
const builds = place && new Builds(JSON.parse(place.textContent));
const chooser = document.querySelector(".picker");

/* The address with other choices; `changes` are texts by field, null for none, and lists for variants. */
const changed = (choices, changes) => {
  const pairs = choices.filter(([field]) => !(field in changes));
  for (const [field, value] of Object.entries(changes)) {
    for (const text of [value].flat()) if (text) pairs.push([field, text]);
  }
  const query = new URLSearchParams(pairs).toString();
  return `?${query}#builds`;
};

const without = (choices, fields) => choices.filter(([field]) => !fields.includes(field));
const chosenText = (choices, field) => choices.find(([name]) => name === field)?.[1];

/* A value of a choice: a link, or the reason why no build has it with the other choices. */
const pick = ({ name, note, href, isChosen, isPast }) => {
  const text = [name, element("small", {}, note)];
  if (!href) return element("span", { class: "impossible" }, ...text);
  const kind = isChosen ? "chosen" : isPast ? "past" : "";
  return element("a", { href, ...(kind && { class: kind }), ...(isChosen && { "aria-current": "true" }) }, ...text);
};

const versionPicks = (choices, proposed) => {
  const others = without(choices, ["version"]);
  const possible = new Set(builds.fitting(others).map(({ version }) => version.name));
  const own = proposed?.version.name ?? chosenText(choices, "version");
  const isAll = new URLSearchParams(location.search).get("versions") === "all";
  const picks = [];
  const newestFirst = [...builds.versions].sort((one, other) => other.position - one.position);
  for (const { name, days, isPast } of newestFirst) {
    const isChosen = name === own;
    if (picks.length >= MOST && !isChosen && !isAll) continue;
    if (!possible.has(name)) {
      picks.push({ name, note: builds.reason(others, (row) => row.version.name === name), isChosen });
      continue;
    }
    const isPinned = name === chosenText(choices, "version");
    const note = name === builds.newest ? "newest" : days;
    picks.push({ name, note, href: changed(choices, { version: isPinned ? null : name }), isChosen, isPast });
  }
  return { picks, rest: newestFirst.length - picks.length };
};

const machinePicks = (choices, proposed) => {
  const others = without(choices, OF_MACHINE);
  const possible = builds.fitting(others);
  const host = chosenText(choices, "host");
  const picks = [];
  if (host && !builds.processors.some(({ target }) => target === host)) {
    const note = proposed ? `${proposed.kind.target} build` : "none";
    picks.push({ name: host, note, href: changed(choices, { host: null }), isChosen: true });
  }
  for (const processor of builds.processors) {
    const { name, note, target, platform } = processor;
    const runs = ({ kind }) => kind.platform === platform && (!target || runsOn(kind, target));
    const isPinned = (host ?? "") === processor.host && (chosenText(choices, "platform") ?? "") === processor.hostPlatform
      && !chosenText(choices, "target");
    const isOwn = !host && proposed && proposed.kind.platform === platform && (!target || proposed.kind.target === target);
    // The machine of the whole site has no platform.
    const isHost = host && host === processor.host && !chosenText(choices, "target") && proposed && runs(proposed);
    const isChosen = Boolean(isPinned || isOwn || isHost);
    if (!possible.some(runs)) {
      picks.push({ name, note: builds.reason(others, runs), isChosen });
      continue;
    }
    const machine = isPinned ? {} : { host: processor.host, platform: processor.hostPlatform };
    const href = changed(choices, { host: null, platform: null, target: null, ...machine });
    picks.push({ name, note: note || "only this processor", href, isChosen });
  }
  return { picks, rest: 0 };
};

const systemPicks = (choices, proposed) => {
  const others = without(choices, OF_SYSTEM);
  const possible = new Set(builds.fitting(others).map(({ system }) => system));
  const counts = new Map(builds.systems.map((system) => [system, 0]));
  for (const { system, count } of builds.rows) counts.set(system, counts.get(system) + count);
  const picks = [];
  const mostFirst = [...builds.systems].sort((one, other) => counts.get(other) - counts.get(one));
  for (const system of mostFirst) {
    const { os, compiler, osName, compilerName } = system;
    const isPinned = os === chosenText(choices, "os") && compiler === chosenText(choices, "compiler");
    const isChosen = proposed ? proposed.system === system : isPinned;
    if (picks.length >= MOST && !isChosen) continue;
    if (!possible.has(system)) {
      const reason = builds.reason(others, (row) => row.system === system);
      picks.push({ name: osName, note: `${compilerName}, ${reason}`, isChosen });
      continue;
    }
    const pair = isPinned ? { os: null, compiler: null } : { os, compiler };
    picks.push({ name: osName, note: compilerName, href: changed(choices, pair), isChosen });
  }
  return { picks, rest: mostFirst.length - picks.length };
};

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

/* The switches keep their places: only what they lead to changes. */
const fillSwitches = (choices, proposed) => {
  for (const shown of document.querySelectorAll(".picker .switch")) {
    const name = shown.dataset.option;
    const [on, off] = [`+${name}`, `~${name}`];
    const isOn = proposed?.option.texts.includes(on) ?? shown.classList.contains("on");
    const isOwn = !proposed || isOn || proposed.option.texts.includes(off);
    const opposite = isOn ? off : on;
    const others = choices.filter(([field, text]) => field !== "variant" || (text !== on && text !== off));
    const has = (row) => row.option.texts.includes(opposite);
    const isPossible = builds.fitting(others).some(has);
    const kind = isOn ? "switch on" : "switch";
    const title = shown.title ? { title: shown.title } : {};
    const text = [element("i"), name, " ", element("code", {}, isOn ? on : off)];
    const data = { "data-option": name, ...title };
    let made;
    if (isPossible) {
      const kept = others.filter(([field]) => field === "variant").map(([, variant]) => variant);
      made = element("a", { class: kind, href: changed(choices, { variant: [...kept, opposite] }), ...data },
        ...text, element("span", { class: "visually-hidden" }, `, switch ${isOn ? "off" : "on"}`));
    } else {
      made = element("span", { class: `${kind} impossible`, ...data }, ...text,
        " ", element("small", {}, `${opposite}: ${builds.reason(others, has)}`));
    }
    made.hidden = !proposed || !isOwn;
    shown.replaceWith(made);
  }
};

/* The nodes of a template; none without one. */
const contentOf = (selector) => [...document.querySelector(selector)?.content.cloneNode(true).childNodes ?? []];

/* The commands of a row: its card, with the marks filled. */
const fillCard = (row) => {
  const [specMark, sizeMark, entryMark] = builds.data.marks;
  const marks = [
    [specMark, `${builds.data.package}/${row.hash.slice(0, row.length)}`], [sizeMark, row.size],
    [entryMark, JSON.stringify(builds.entry(row)).slice(1, -1)],
  ];
  const filled = (text) => marks.reduce((now, [mark, value]) => now.replaceAll(mark, value), text);
  const card = document.querySelector(`template[data-card="${row.card}"]`).content.cloneNode(true);
  const texts = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = filled(texts.currentNode.data);
  for (const button of card.querySelectorAll("[data-copy]")) {
    button.dataset.copy = filled(button.dataset.copy);
    button.hidden = false;
  }
  return [...card.childNodes];
};

const noMatch = () => `No ${builds.data.noun} matches these filters.`;

const removeAll = () => element("a", { href: "?#builds" }, "Remove all filters");

const fillMatch = (choices, proposed, reason) => {
  const match = chooser.querySelector(".match");
  if (!proposed) {
    match.replaceChildren(element("strong", { class: "gone" }, noMatch()), " ", removeAll());
    return;
  }
  const count = builds.fitting(choices).length;
  match.replaceChildren(
    element("strong", {}, `● ${builds.words(proposed, choices)}`), " ",
    element("a", { class: "hash", href: `../index.html#/binary/${proposed.hash}` }, `/${proposed.hash.slice(0, 7)}`), " ",
    element("span", { class: "quiet" }, `(${reason})`, ...contentOf(`template[data-from="${proposed.card}"]`),
      ...(count > 1 ? [" · ", element("a", { href: "#configurations-heading" }, `all ${count.toLocaleString("en")} builds below`)] : [])),
  );
};

/* The cells of the map, and the rows of the table that have what is chosen. */
const mark = (choices, proposed) => {
  for (const cell of document.querySelectorAll("table a[href*='version=']")) {
    const fields = Builds.choices(new URL(cell.href).search);
    const isOwn = proposed && fields.some(([field]) => field !== "version") && fields.every((choice) => builds.has(proposed, choice));
    if (cell.className.startsWith("heat-")) cell.toggleAttribute("aria-current", Boolean(isOwn));
    if (isOwn && cell.hasAttribute("aria-current")) cell.setAttribute("aria-current", "true");
  }
  const fitting = new Set(builds.fitting(choices).map(({ shown }) => shown));
  let count = 0;
  for (const row of document.querySelectorAll("#configurations tbody tr[data-hash]")) {
    const isFitting = fitting.has(row.dataset.hash);
    const isOwn = row.dataset.hash === proposed?.shown;
    row.hidden = !isFitting || (count >= MOST_ROWS && !hasAllRows && !isOwn);
    row.classList.toggle("chosen", isOwn);
    if (isFitting) count += 1;
  }
  showAll.textContent = `Show all ${count.toLocaleString("en")}`;
  showAll.hidden = hasAllRows || count <= MOST_ROWS;
  const results = document.getElementById("results");
  results.dataset.all ??= results.textContent;
  results.textContent = choices.length ? `${fitting.size.toLocaleString("en")} of them have what is chosen` : results.dataset.all;
};

/* A long table begins with some rows, as on a server. */
let hasAllRows = false;
const showAll = element("button", { type: "button" }, "Show all");

/* The row that a reader chose in the table. */
const used = () => {
  const hash = new URLSearchParams(location.search).get("use");
  return hash ? builds.rows.find(({ shown }) => shown === hash) : undefined;
};

/* The build of the address: the row that it names, or else the proposed one. */
const buildOf = (choices) => {
  const row = used();
  return row ? { row, reason: "your choice" } : builds.proposed(choices) ?? { row: null };
};

const show = () => {
  const choices = Builds.choices(location.search);
  const { row: proposed, reason } = buildOf(choices);
  fill("version", versionPicks(choices, proposed));
  fill("machine", machinePicks(choices, proposed));
  fill("system", systemPicks(choices, proposed));
  fillSwitches(choices, proposed);
  fillMatch(choices, proposed, reason);
  const card = document.getElementById("install");
  if (proposed) card.replaceChildren(...fillCard(proposed));
  else {
    const heading = element("h2", { id: "install-heading" }, "Nothing to install");
    card.replaceChildren(heading, element("p", {}, noMatch()), element("p", {}, removeAll()));
  }
  mark(choices, proposed);
};

/* A choice changes the page without loading it again. */
const open = (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  if (url.origin + url.pathname !== location.origin + location.pathname || url.search === location.search) return;
  event.preventDefault();
  const label = link.closest(".pick")?.querySelector("h3").id;
  const name = link.firstChild.textContent;
  history.pushState(null, "", url);
  show();
  // The link is replaced: focus stays at its place.
  const again = label && [...document.getElementById(label).parentElement.querySelectorAll("a")].find((each) => each.firstChild.textContent === name);
  if (again) again.focus({ preventScroll: true });
  else document.getElementById("builds").scrollIntoView();
};

if (builds && chooser) {
  document.addEventListener("click", open);
  addEventListener("popstate", show);
  document.getElementById("configurations")?.after(showAll);
  showAll.addEventListener("click", () => {
    hasAllRows = true;
    showAll.hidden = true;
    const choices = Builds.choices(location.search);
    mark(choices, buildOf(choices).row);
    document.getElementById("configurations-heading").scrollIntoView();
  });
  if (location.search) show();
  else mark([], buildOf([]).row);
}
