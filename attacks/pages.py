"""Pages with odd values in mostly correct form: built, verified and served."""

from __future__ import annotations

import json
import random
import re
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attacks.archives import damaged
from attacks.builder import Run, run
from attacks.outcome import Outcome, until
from attacks.target import serving
from tests.pagetexts import meta_of, page_of, spec

PAGES = 300
"""Pages of one round: a check, a build, a verification and a walk through the site."""
MARK = "<i>fuzz</i>"
"""Markup in texts of pages, which must not occur in any page of the site."""
TEXTS = [
    MARK,
    f"'{MARK}",
    f'"{MARK}',
    f"</title>{MARK}",
    f"javascript:alert('{MARK}')",
    "",
    " ",
    "\n",
    # Long texts and odd characters.
    "a" * 5000,
    "é",
    "\U0001f600",
    "\u202e",
    "a\0b",
    "\x1b[2J",
    "../..",
    "null",
    "~",
    "-",
    "%s",
    # Parts of specs.
    "1.0",
    "+mpi",
    "x=1,2",
    "x:=1,2",
    "gcc@=13",
    "gcc@13/abc",
    "=",
    "@",
    "none",
    "root",
    "[a, b]",
]
VALUES: list[Any] = [
    *TEXTS,
    0,
    -1,
    1.5,
    2**70,
    True,
    None,
    [],
    {},
    [[]],
    ["a", "a"],
    {"a": "b"},
]
SPEC_KEYS = ("compiler", "os", "target", "platform", "size", "tarball")
TABLES = (
    "/spack-cache/packages",
    "/spack-cache/releases",
    "/spack-cache/stacks",
    "/spack-cache/configurations",
    "/spack-cache/build_listings",
    "/spack-cache/problems",
    "/spack-cache/tarball_prefixes",
    "/spack-cache/variants",
)
SEARCHES = ("/find?q=%25gcc", "/find?q=fuzz")
LINK = re.compile(r'href="(/(?:package|spec|release|stack)/[^"#?]*)')


def pages(seconds: float) -> Outcome:
    """Change pages at random with a fixed seed, and check that none is lost or does
    harm.
    """
    outcome = Outcome("pages")
    chance = random.Random(4)
    page_count = 0
    for _ in until(seconds, count()):
        with TemporaryDirectory(prefix="attacks-") as folder:
            page_count += _round(chance, Path(folder), outcome)
    outcome.note = f"{page_count:,} were still pages, and nothing of them was lost"
    return outcome


def _round(chance: random.Random, folder: Path, outcome: Outcome) -> int:
    """Check, build, verify and serve changed pages; return how many `check` accepts."""
    source = folder / "pages"
    source.mkdir()
    for number in range(PAGES):
        (source / f"{number}.md").write_bytes(_page(chance, number))
    outcome.tried += PAGES
    outcome.faults += _without_bad_pages(source)
    page_count = len(list(source.iterdir()))

    # What `check` accepts can be built, and nothing of it is lost.
    file = folder / "served" / "spack-cache.db"
    file.parent.mkdir()
    built = run("build", source, "-o", file)
    outcome.faults += _faults_after_check("build", built)
    verified = run("verify", file, source)
    outcome.faults += _faults_after_check("verify", verified)
    if file.exists():
        outcome.faults += _walk(file)
    return page_count


def _without_bad_pages(source: Path) -> list[str]:
    """Delete the pages that `check` reports, and return the faults of its report."""
    checked = run("check", "--json", source)
    faults = checked.faults()
    if checked.status not in (0, 1):
        return faults
    reported_page = re.compile(rf"{re.escape(str(source))}/(\d+\.md)")
    for reported in json.loads(checked.output)["faults"]:
        found = reported_page.match(reported)
        if found is None:
            faults.append("check reported a fault without naming its page")
        else:
            (source / found[1]).unlink(missing_ok=True)
    return faults


def _faults_after_check(command: str, ran: Run) -> list[str]:
    """Return the faults of a command whose pages `check` accepts."""
    faults = ran.faults()
    if ran.status != 0:
        end = ran.output[-300:]
        faults.append(f"failed over pages that check accepts: {end}")
    return [f"{command}: {fault}" for fault in faults]


def _page(chance: random.Random, number: int) -> bytes:
    """Return a page with some values changed; every tenth has damaged bytes as well."""
    specs = []
    for index in range(3):
        specs.append(spec(number * 10 + index, tarball=f"https://x/{index}"))
    meta = meta_of(specs)
    release = chance.choice(["r", "lib/odd", MARK, "é"]) + str(number)

    part = chance.choice(["nothing", "spec", "specs", "meta", "both"])
    if part in ("spec", "both"):
        _change(chance, specs[0])
    if part == "specs":
        # All specs and `meta` agree about an odd text.
        key = chance.choice(SPEC_KEYS)
        text = chance.choice(TEXTS)
        for record in specs:
            record[key] = text
        meta = meta_of(specs)
    if part in ("meta", "both"):
        _change(chance, meta)

    data = page_of("zlib", release, json.dumps(meta), json.dumps(specs))
    if chance.random() < 0.1:
        return damaged(chance, data)
    return data


def _change(chance: random.Random, record: dict[str, Any]) -> None:
    """Change one value or key of a record."""
    key = chance.choice(sorted(record))
    change = chance.choice(["value", "member", "drop", "rename"])
    if change == "drop":
        del record[key]
    elif change == "rename":
        new_key = key + chance.choice(["x", "\0", " "])
        record[new_key] = record.pop(key)
    elif change == "member" and isinstance(record[key], list):
        record[key] = [*record[key], chance.choice(VALUES)]
    else:
        record[key] = chance.choice(VALUES)


def _walk(file: Path) -> list[str]:
    """Request tables and the pages that the first one links to; return faults."""
    faults = []
    with serving(file) as target:
        first_page = target.ask("/").body.decode()
        links = sorted(set(LINK.findall(first_page)))
        for address in (*TABLES, *links[:60], *SEARCHES):
            reply = target.ask(address)
            for fault in target.reply_faults(reply):
                faults.append(f"{address}: {fault}")
            is_html = "text/html" in reply.headers.get("content-type", "")
            if is_html and MARK.encode() in reply.body:
                faults.append(f"{address}: text of a page is markup there")
        faults += target.server_faults()
    return faults
