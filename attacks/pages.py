"""Pages with odd values in mostly correct form: built, verified and served."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attacks.archives import damaged
from attacks.builder import enough, run
from attacks.outcome import Outcome
from attacks.target import serving
from tests.pagetexts import meta_of, page_of, spec

PAGES = 300
"""Pages of one round: a check, a build, a verification and a walk through the site."""
MARK = "<i>fuzz</i>"
"""Markup in texts of pages, which must not occur in any page of the site."""
TEXTS = [
    *(
        MARK,
        f"'{MARK}",
        f'"{MARK}',
        f"</title>{MARK}",
        f"javascript:alert('{MARK}')",
        "",
        " ",
        "\n",
    ),
    *(
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
    ),
    *(
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
    ),
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
LINK = re.compile(r'href="(/(?:package|spec|release|stack)/[^"#?]*)')


def pages(seconds: float) -> Outcome:
    """Change pages at random with a fixed seed, and check that none is lost or does
    harm.
    """
    outcome, chosen = Outcome("pages"), random.Random(4)
    began, good = time.monotonic(), 0
    while True:
        with TemporaryDirectory(prefix="attacks-") as folder:
            good += _round(chosen, Path(folder), outcome)
        if enough(began, seconds):
            outcome.note = f"{good:,} were still pages, and nothing of them was lost"
            return outcome


def _round(chosen: random.Random, folder: Path, outcome: Outcome) -> int:
    source = folder / "pages"
    source.mkdir()
    for number in range(PAGES):
        (source / f"{number}.md").write_bytes(_page(chosen, number))
    outcome.tried += PAGES
    checked = run("check", "--json", source)
    outcome.faults += checked.faults()
    faults = json.loads(checked.output)["faults"] if checked.status in (0, 1) else []
    paths = [
        re.match(rf"{re.escape(str(source))}/(\d+\.md)", fault) for fault in faults
    ]
    if not all(paths):
        outcome.faults.append("check reported a fault without naming its page")
    for name in {path[1] for path in paths if path}:
        (source / name).unlink()
    page_count = len([*source.iterdir()])
    file = folder / "served" / "spack-cache.db"
    file.parent.mkdir()
    for name, ended in (
        ("build", run("build", source, "-o", file)),
        ("verify", run("verify", file, source)),
    ):
        faults = ended.faults()
        if ended.status:
            faults.append(
                f"failed over pages that check accepts: {ended.output[-300:]}"
            )
        outcome.faults += [f"{name}: {fault}" for fault in faults]
    if file.exists():
        outcome.faults += _walk(file)
    return page_count


def _page(chosen: random.Random, number: int) -> bytes:
    """Return a page with some values changed; every tenth has damaged bytes as well."""
    specs = [
        spec(number * 10 + index, tarball=f"https://x/{index}") for index in range(3)
    ]
    meta = meta_of(specs)
    package, release = "zlib", chosen.choice(["r", "lib/odd", MARK, "é"]) + str(number)
    where = chosen.choice(["nothing", "spec", "specs", "meta", "both"])
    if where in ("spec", "both"):
        _change(chosen, specs[0])
    if where == "specs":
        word = chosen.choice(
            ["compiler", "os", "target", "platform", "size", "tarball"]
        )
        text = chosen.choice(TEXTS)
        for record in specs:
            record[word] = text
        meta = meta_of(specs)
    if where in ("meta", "both"):
        _change(chosen, meta)
    data = page_of(package, release, json.dumps(meta), json.dumps(specs))
    return damaged(chosen, data) if chosen.random() < 0.1 else data


def _change(chosen: random.Random, record: dict[str, Any]) -> None:
    key = chosen.choice(sorted(record))
    how = chosen.choice(["value", "member", "drop", "rename"])
    if how == "drop":
        del record[key]
    elif how == "rename":
        record[key + chosen.choice(["x", "\0", " "])] = record.pop(key)
    elif how == "member" and isinstance(record[key], list):
        record[key] = [*record[key], chosen.choice(VALUES)]
    else:
        record[key] = chosen.choice(VALUES)


def _walk(file: Path) -> list[str]:
    """Request the pages that the first ones link to, and tables."""
    faults = []
    with serving(file) as target:
        for address in _addresses(target.ask("/").body.decode()):
            reply = target.ask(address)
            faults += [f"{address}: {fault}" for fault in target.betrayals(reply)]
            if (
                MARK.encode() in reply.body
                and b"text/html" in reply.headers["content-type"].encode()
            ):
                faults.append(f"{address}: text of a page is markup there")
        faults += target.standing()
    return faults


def _addresses(first: str) -> Iterator[str]:
    tables = (
        "configurations",
        "build_listings",
        "problems",
        "tarball_prefixes",
        "variants",
    )
    yield from (
        f"/spack-cache/{table}" for table in ("packages", "releases", "stacks", *tables)
    )
    yield from sorted(set(LINK.findall(first)))[:60]
    yield from ("/find?q=%25gcc", "/find?q=fuzz")
