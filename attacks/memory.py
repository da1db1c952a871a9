"""The largest forms that a visitor may send, many at the same time, and what they
hold.
"""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

from attacks.outcome import Outcome, until
from attacks.target import FORM, Reply, Target
from spack_cache_db.site.http.checks import MOST_BODY

UNIT = Path(__file__).parent.parent / "deploy" / "systemd" / "spack-cache.service"
PROCESS_MEGABYTES = 320.0
"""Memory of one process of the shipped unit, whose limit is that of eight and their
parent.
"""
AT_ONCE = 10
"""Visitors that send a form at the same time."""
SPECS_OF_LOCKFILE = 2_300
MOST_VALUE = MOST_BODY - len("q=")
"""Bytes of the value of a form's only field."""


@dataclass(frozen=True, slots=True)
class Filling:
    """A text that fills a form: a pattern, again and again.

    Attributes:
        pattern: the text; `#` is its number.
        joint: the text between two of them.
        before: the beginning of the whole text.
        after: its end.
    """

    pattern: str
    joint: str = "\n"
    before: str = ""
    after: str = ""


FILLINGS: dict[str, Filling] = {
    "specs": Filling("hdf5@#"),
    "short specs": Filling("a"),
    "specs with variants": Filling("hdf5@1.# +mpi ~cxx api=v# %gcc@# ^mpi"),
    "any package": Filling("* +a#"),
    "one line": Filling("a", ""),
    "hashes": Filling("/" + "a" * 25 + "#"),
    # Environments.
    "YAML lists": Filling("[", "", "spack: {specs: ", "]"),
    "YAML flow": Filling("a#", ",", "spack: {specs: [", "]}"),
    "YAML mappings": Filling(
        "p#: {require: '@#'}", ", ", "spack: {packages: {", "}, specs: [a]}"
    ),
    "YAML keys": Filling("k#: {}", before="spack:\n  specs: [a]\n"),
    "YAML anchors": Filling("- &a# a", before="spack:\n  specs:\n"),
    "YAML documents": Filling("---\nspack: {specs: [a#]}"),
    "a matrix": Filling(
        "a#", ",", "spack: {specs: [{matrix: [[", "], ['@1', '@2', '@3']]}]}"
    ),
    "JSON": Filling('{"name": "a#"}', ",", '{"spec": {"nodes": [', "]}}"),
    "JSON documents": Filling('{"a": #}'),
    # Texts that people paste.
    "modules": Filling("module load hdf5/1.#"),
    "prefixes": Filling("/opt/spack/linux/gcc-1/hdf5-1.#-" + "a" * 32),
    "commands": Filling("spack install hdf5@# ; spack load hdf5@#"),
    "headings": Filling("-- linux-a-b / gcc@# ----\na@1"),
    "requirements": Filling("hdf5==1.#"),
}
"""Texts that fill a form of as many bytes as the site reads. A form is made when it is
sent, because all together take seconds.
"""
FORMS: dict[str, bytes] = {
    "lines": b"q=" + b"%0A" * (MOST_VALUE // 3),
    "blanks": b"q=" + b"+" * MOST_VALUE,
    "bytes": b"q=" + b"%FF" * (MOST_VALUE // 3),
    "characters of four bytes": b"q=" + b"%F0%9F%98%80" * (MOST_VALUE // 12),
    "not encoded": b"q=" + b"\xff" * MOST_VALUE,
    "half an escape": b"q=" + b"%" * MOST_VALUE,
    "fields": b"&".join([b"q=a"] * (MOST_BODY // 4)),
    "names of fields": b"a&" * (MOST_BODY // 2),
    "one name": b"a" * MOST_BODY,
    "equal signs": b"=" * MOST_BODY,
    "commas": b"q=" + b"," * MOST_VALUE,
    "quotes": b"q=" + b"%22" * (MOST_VALUE // 3),
}
"""Forms of as many bytes, by what they contain."""
REFUSED = {
    "a byte too many": (b"a" * (MOST_BODY + 1), {}),
    "four megabytes": (b"q=" + b"a" * 4_000_000, {}),
    "another kind": (b"q=a", {"content-type": "multipart/form-data; boundary=a"}),
    "JSON as a form": (b"{}", {"content-type": "application/json"}),
    "a kind of many fields": (b"q=a", {"content-type": "text/plain" + "; a=b" * 2_000}),
}
"""Forms that the site does not read, with their headers."""
LOCKFILE = "a lockfile"


def memory(target: Target, seconds: float) -> Outcome:
    """Send each form by several visitors at the same time."""
    outcome = Outcome("memory")

    # Forms that are refused before they are read.
    for name, (body, fields) in REFUSED.items():
        reply = _posted(target, body, **fields)
        faults = target.reply_faults(reply)
        # A server may close the connection before it has read a form.
        if reply.status == 0:
            faults.remove("no answer")
        elif reply.status not in (413, 415):
            faults.append(f"was answered with {reply.status}")
        outcome.judge(name, faults)

    # Forms that are read.
    names = [*FILLINGS, *FORMS, LOCKFILE]
    random.Random(23).shuffle(names)
    most = 0.0
    for name in until(seconds, names):
        replies = _posted_at_once(target, _form(name))
        most = max(most, target.resident_megabytes())
        faults = []
        for reply in replies:
            faults += target.reply_faults(reply)
        peak = target.peak_megabytes()
        if peak > PROCESS_MEGABYTES:
            faults.append(f"a process held {peak:.0f} MB")
        outcome.judge(name, sorted(set(faults)))

    outcome.faults += target.server_faults()
    outcome.judge("the limit of the unit", _unit_faults())
    peak = target.peak_megabytes()
    outcome.note = f"a process {peak:.0f} MB, all together {most:.0f} MB"
    return outcome


def _form(name: str) -> bytes:
    """Return the form of this name."""
    if name == LOCKFILE:
        return _encoded(_lockfile())[:MOST_BODY]
    if name in FILLINGS:
        return _filled(FILLINGS[name])
    return FORMS[name]


def _filled(filling: Filling) -> bytes:
    """Return a form with as many parts as fit."""
    parts: list[str] = []
    size = len(_encoded(filling.before + filling.after))
    while True:
        part = filling.pattern.replace("#", str(len(parts)))
        size += len(_encoded(part + filling.joint)) - len("q=")
        if size > MOST_BODY:
            break
        parts.append(part)
    return _encoded(filling.before + filling.joint.join(parts) + filling.after)


def _encoded(text: str) -> bytes:
    return f"q={quote_from_bytes(text.encode(), safe='')}".encode()


def _lockfile() -> str:
    """Return a lockfile of about as many specs as fit into a form."""
    # Hashes have no digits 0, 1, 8 and 9.
    letters = str.maketrans("0189", "abcd")
    nodes = {}
    roots = []
    for number in range(SPECS_OF_LOCKFILE):
        spec_hash = f"{number:032d}".translate(letters)
        nodes[spec_hash] = {"name": f"p{number}", "version": "1", "hash": spec_hash}
        roots.append({"hash": spec_hash, "spec": "p"})
    meta = {"lockfile-version": 6}
    return json.dumps({"_meta": meta, "roots": roots, "concrete_specs": nodes})


def _posted_at_once(target: Target, body: bytes) -> list[Reply]:
    """Send one form by several visitors, and return their responses."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        started = [threads.submit(_posted, target, body) for _ in range(AT_ONCE)]
        return [future.result() for future in started]


def _posted(target: Target, body: bytes, **fields: str) -> Reply:
    headers = {**FORM, **fields}
    return target.ask("/cover.json", "POST", body, **headers)


def _unit_faults() -> list[str]:
    """Return a fault if the unit allows less than all of its processes may take."""
    unit = UNIT.read_text(encoding="utf-8")
    workers = int(re.findall(r"--workers (\d+)", unit)[0])
    limit = int(re.findall(r"^MemoryMax=(\d+)M$", unit, re.MULTILINE)[0])
    if limit < workers * PROCESS_MEGABYTES:
        return [f"{limit} MB for {workers} processes"]
    return []
