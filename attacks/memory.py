"""The largest forms that a visitor may send, many at the same time, and what they
hold.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote_from_bytes

from attacks.builder import enough
from attacks.outcome import Outcome
from attacks.target import Reply, Target
from spack_cache_db.site.http.checks import MOST_BODY

UNIT = Path(__file__).parent.parent / "deploy" / "systemd" / "spack-cache.service"
PROCESS_MEGABYTES = 320.0
"""Memory of one process of the shipped unit, whose limit is that of eight and their
parent.
"""
AT_ONCE = 10
FORM = "application/x-www-form-urlencoded"


def _field(text: str) -> bytes:
    return f"q={quote_from_bytes(text.encode(), safe='')}".encode()


def _filled(pattern: str, joint: str, before: str = "", after: str = "") -> bytes:
    """Return a form of the largest size: a pattern with a number, again and again."""
    parts = []
    size = len(_field(before + after))
    for number in range(MOST_BODY):
        part = pattern.replace("#", str(number))
        size += len(_field(part + joint)) - 2
        if size > MOST_BODY:
            break
        parts.append(part)
    return _field(before + joint.join(parts) + after)


def _lockfile() -> bytes:
    """Return a form with a lockfile of as many specs as fit."""
    nodes = {}
    for number in range(2_300):
        spec_hash = (
            f"{number:032d}".replace("0", "a").replace("1", "b").replace("8", "c")
        )
        spec_hash = spec_hash.replace("9", "d")
        nodes[spec_hash] = {"name": f"p{number}", "version": "1", "hash": spec_hash}
    document = {
        "_meta": {"lockfile-version": 6},
        "roots": [{"hash": spec_hash, "spec": "p"} for spec_hash in nodes],
        "concrete_specs": nodes,
    }
    return _field(json.dumps(document))[:MOST_BODY]


FORMS: dict[str, Callable[[], bytes]] = {
    "specs": lambda: _filled("hdf5@#", "\n"),
    "short specs": lambda: _filled("a", "\n"),
    "specs with variants": lambda: _filled(
        "hdf5@1.# +mpi ~cxx api=v# %gcc@# ^mpi", "\n"
    ),
    "any package": lambda: _filled("* +a#", "\n"),
    "one line": lambda: _filled("a", ""),
    "lines": lambda: b"q=" + b"%0A" * ((MOST_BODY - 2) // 3),
    "blanks": lambda: b"q=" + b"+" * (MOST_BODY - 2),
    "bytes": lambda: b"q=" + b"%FF" * ((MOST_BODY - 2) // 3),
    "characters of four bytes": lambda: (
        b"q=" + b"%F0%9F%98%80" * ((MOST_BODY - 2) // 12)
    ),
    "not encoded": lambda: b"q=" + b"\xff" * (MOST_BODY - 2),
    "half an escape": lambda: b"q=" + b"%" * (MOST_BODY - 2),
    "fields": lambda: b"&".join([b"q=a"] * (MOST_BODY // 4)),
    "names of fields": lambda: b"a&" * (MOST_BODY // 2),
    "one name": lambda: b"a" * MOST_BODY,
    "equal signs": lambda: b"=" * MOST_BODY,
    "commas": lambda: b"q=" + b"," * (MOST_BODY - 2),
    "quotes": lambda: b"q=" + b"%22" * ((MOST_BODY - 2) // 3),
    "hashes": lambda: _filled("/" + "a" * 25 + "#", "\n"),
    "YAML lists": lambda: _filled("[", "", "spack: {specs: ", "]"),
    "YAML flow": lambda: _filled("a#", ",", "spack: {specs: [", "]}"),
    "YAML mappings": lambda: _filled(
        "p#: {require: '@#'}", ", ", "spack: {packages: {", "}, specs: [a]}"
    ),
    "YAML keys": lambda: _filled("k#: {}", "\n", "spack:\n  specs: [a]\n"),
    "YAML anchors": lambda: _filled("- &a# a", "\n", "spack:\n  specs:\n"),
    "YAML documents": lambda: _filled("---\nspack: {specs: [a#]}", "\n"),
    "a matrix": lambda: _filled(
        "a#", ",", "spack: {specs: [{matrix: [[", "], ['@1', '@2', '@3']]}]}"
    ),
    "JSON": lambda: _filled('{"name": "a#"}', ",", '{"spec": {"nodes": [', "]}}"),
    "JSON documents": lambda: _filled('{"a": #}', "\n"),
    "a lockfile": lambda: _lockfile(),
    "modules": lambda: _filled("module load hdf5/1.#", "\n"),
    "prefixes": lambda: _filled("/opt/spack/linux/gcc-1/hdf5-1.#-" + "a" * 32, "\n"),
    "commands": lambda: _filled("spack install hdf5@# ; spack load hdf5@#", "\n"),
    "headings": lambda: _filled("-- linux-a-b / gcc@# ----\na@1", "\n"),
    "requirements": lambda: _filled("hdf5==1.#", "\n"),
}
"""Functions that make forms of as many bytes as the site reads, by what the forms
contain. To make them all takes seconds.
"""
REFUSED = {
    "a byte too many": (b"a" * (MOST_BODY + 1), {}),
    "four megabytes": (b"q=" + b"a" * 4_000_000, {}),
    "another kind": (b"q=a", {"content-type": "multipart/form-data; boundary=a"}),
    "JSON as a form": (b"{}", {"content-type": "application/json"}),
    "a kind of many fields": (b"q=a", {"content-type": "text/plain" + "; a=b" * 2_000}),
}
"""Forms that the site does not read, with their headers."""


def memory(target: Target, seconds: float) -> Outcome:
    """Send each form by several visitors at the same time."""
    outcome = Outcome("memory")
    chosen = random.Random(23)
    began = time.monotonic()
    most = 0.0
    for name, (body, fields) in REFUSED.items():
        reply = _posted(target, body, **fields)
        faults = target.betrayals(reply)
        # A server may close the connection before it has read a form.
        if reply.status not in (0, 413, 415):
            faults.append(f"was answered with {reply.status}")
        outcome.judge(name, [fault for fault in faults if fault != "no answer"])

    for name in chosen.sample(list(FORMS), len(FORMS)):
        body = FORMS[name]()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            bodies = [body] * AT_ONCE
            replies = list(pool.map(lambda body: _posted(target, body), bodies))
        most = max(most, target.resident_megabytes())
        faults = [fault for reply in replies for fault in target.betrayals(reply)]
        peak = target.peak_megabytes()
        if peak > PROCESS_MEGABYTES:
            faults.append(f"a process held {peak:.0f} MB")
        outcome.judge(name, sorted(set(faults)))
        if enough(began, seconds):
            break
    outcome.faults += target.standing()
    outcome.judge("the limit of the unit", _unit_faults())
    peak = target.peak_megabytes()
    outcome.note = f"a process {peak:.0f} MB, all together {most:.0f} MB"
    return outcome


def _posted(target: Target, body: bytes, **fields: str) -> Reply:
    headers = {"content-type": FORM, **fields}
    return target.ask("/cover.json", "POST", body, **headers)


def _unit_faults() -> list[str]:
    """Return a fault if the unit allows less than all of its processes may take."""
    unit = UNIT.read_text(encoding="utf-8")
    workers = int(re.findall(r"--workers (\d+)", unit)[0])
    limit = int(re.findall(r"^MemoryMax=(\d+)M$", unit, re.MULTILINE)[0])
    needed = workers * PROCESS_MEGABYTES
    return [] if limit >= needed else [f"{limit} MB for {workers} processes"]
