/* Comfort only: every page works without this file. */
(() => {
  "use strict";

  const announce = (text) => {
    const place = document.getElementById("announce");
    if (place) place.textContent = text;
  };

  const copyByHand = (text) => {
    // The clipboard interface is missing on plain http, where many sites inside a lab run.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("copy refused"));
  };

  const copy = (text) =>
    navigator.clipboard ? navigator.clipboard.writeText(text).catch(() => copyByHand(text)) : copyByHand(text);

  const setUpCopyButtons = () => {
    for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
    // Other scripts may add buttons later.
    document.addEventListener("click", async (event) => {
      const button = event.target.closest("button.copy");
      if (!button) return;
      button.dataset.label ??= button.textContent;
      const result = await copy(button.dataset.copy).then(() => "Copied", () => "Failed");
      button.textContent = result;
      button.focus();
      announce(result);
      setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
    });
  };

  // The machine of this reader stays in the browser: no request carries it but as `host=`.
  // Only a choice of the reader stores it, and not the address of a link.
  const MACHINE = "spack-machine";

  const addressFor = (machine) => {
    const address = new URL(location.href);
    address.searchParams.delete("page");
    if (machine) address.searchParams.set("host", machine);
    else address.searchParams.delete("host");
    return address;
  };

  const setUpMachine = () => {
    const choices = document.querySelectorAll("form[role=search] select[name=host], form.choose select[name=host]");
    for (const select of choices) {
      select.addEventListener("change", () => {
        if (select.value) localStorage.setItem(MACHINE, select.value);
        else localStorage.removeItem(MACHINE);
        if ("takesMachine" in select.form.dataset) location.assign(addressFor(select.value));
      });
    }
    // An empty choice is no part of an address.
    for (const form of document.querySelectorAll("form[role=search]")) {
      form.addEventListener("formdata", ({ formData }) => {
        if (!formData.get("host")) formData.delete("host");
      });
    }
    const machine = localStorage.getItem(MACHINE);
    if (!machine || new URL(location.href).searchParams.has("host")) return;
    for (const select of document.querySelectorAll("form[role=search] select[name=host]")) select.value = machine;
    const address = addressFor(machine);
    const offer = document.querySelector("[data-for-machine]");
    if (!offer) return;
    offer.append(Object.assign(document.createElement("a"), { href: address, textContent: `Show for my ${machine}` }));
  };

  // A choice of a machine or of a filter shows its page at once.
  const setUpChoice = () => {
    for (const field of document.querySelectorAll("form.choose :is(select, input[type=checkbox])")) {
      field.form.querySelector("button").hidden = true;
      field.addEventListener("change", () => field.form.requestSubmit());
    }
  };

  const showTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const folded = target && target.closest("details");
    if (folded) folded.open = true;
  };

  const setUpSuggestions = () => {
    for (const list of document.querySelectorAll("datalist[data-source]")) {
      const input = list.closest("form").querySelector("input[list]");
      let waiting = 0;
      let asked = "";
      const suggest = async () => {
        const text = input.value.trim();
        // A name that was chosen is complete, and a spec of several words is none.
        const isKnown = [...list.options].some((each) => each.value === text);
        if (text.length < 2 || text === asked || isKnown || /[\s@%+~=]/.test(text)) return;
        asked = text;
        const answer = await fetch(`${list.dataset.source}?q=${encodeURIComponent(text)}`).catch(() => null);
        if (!answer || !answer.ok || text !== asked) return;
        const options = (await answer.json()).map(
          ({ name, kind, summary }) => new Option(summary ? `${kind}: ${summary}` : kind, name));
        list.replaceChildren(...options);
      };
      input.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(suggest, 200);
      });
    }
  };

  const setUpDrop = () => {
    for (const area of document.querySelectorAll("form.cover textarea")) {
      area.addEventListener("dragover", (event) => {
        if (event.dataTransfer.types.includes("Files")) event.preventDefault();
      });
      area.addEventListener("drop", async (event) => {
        const files = [...event.dataTransfer.files];
        if (!files.length) return;
        event.preventDefault();
        const texts = await Promise.all(files.map((file) => file.text()));
        const named = (text, place) => `--- # ${files[place].name.replace(/\s/g, "_")}\n${text}\n`;
        area.value = texts.length === 1 ? texts[0] : texts.map(named).join("");
      });
    }
  };

  const setUpSlash = () => {
    const search = document.querySelector("input[type=search][name=q]");
    // Datasette 1.0 has a use of its own for this key on its pages.
    if (!search || document.querySelector("navigation-search")) return;
    const hint = document.querySelector(".site-search kbd");
    if (hint) hint.hidden = false;
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.focus();
      search.select();
    });
  };

  setUpDrop();
  setUpSlash();
  setUpSuggestions();
  setUpCopyButtons();
  setUpChoice();
  setUpMachine();
  showTarget();
})();
