"""Texts that go deep, double, repeat or never end: as inputs of commands, and as
forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_from_bytes

from attacks.builder import Run, run, run_command
from attacks.environments import (
    doubling_environment,
    large_environment,
    multiplied_environment,
)
from attacks.odd_requests import PATHS
from attacks.outcome import Outcome, until
from attacks.target import FORM, Target
from tests.site.cache import write_pages

MOST_SECONDS = 20.0
"""Processor time that no command may take for one of these texts."""
FORM_SECONDS = 4.0
"""Processor time that no form may take; a page of the site has two seconds, and then is
killed.
"""
READING = ("HEAD", "OPTIONS", "POST")
"""Methods that some pages answer."""
REFUSED = ("PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get")
"""Methods that no page answers."""
HASH = "a" * 32
NODE = {
    "name": "p",
    "version": "1",
    "hash": HASH,
    "parameters": {},
    "arch": "linux-a-b",
}


def _nested(opening: str, closing: str, count: int) -> str:
    return opening * count + closing * count


def _doubled(first: str, following: str, count: int) -> str:
    """Return anchors, each of which refers to the one before nine times.

    Args:
        first: the value of the first anchor.
        following: the value of each other one; `{}` is the list of references.
        count: the number of anchors.
    """
    text = f"a0: &a0 {first}\n"
    for number in range(1, count):
        references = ", ".join([f"*a{number - 1}"] * 9)
        text += f"a{number}: &a{number} {following.format(references)}\n"
    return text


def _spack(specs: str, before: str = "") -> str:
    """Return an environment with these specs."""
    return f"{before}spack:\n  specs: {specs}\n"


def _repeated(spec: str) -> str:
    """Return a thousand specs: `spec` with their number, as long as a spec may be."""
    specs = []
    for number in range(1_000):
        numbered = spec.replace("#", str(number))
        specs.append(numbered[:1_990])
    return "\n".join(specs)


def _when(condition: str) -> str:
    """Return an environment with a definition that has a condition."""
    quoted = condition.replace("'", "''")
    definition = f"{{when: '{quoted}', a: [zlib]}}"
    return f"spack:\n  definitions: [{definition}]\n  specs: [$a]\n"


def _toolchains() -> str:
    """Return an environment with toolchains, each of which names the next one twice."""
    toolchains = ", ".join(
        f"t{number}: %t{number + 1} %t{number + 1}" for number in range(40)
    )
    return f"spack:\n  toolchains: {{{toolchains}}}\n  specs: [a %t0]\n"


def _lock(nodes: dict[str, object], version: str = "6") -> str:
    """Return a lockfile whose version may be invalid JSON."""
    meta = f'"_meta": {{"lockfile-version": {version}}}'
    roots = json.dumps([{"hash": HASH, "spec": "p"}])
    specs = json.dumps(nodes)
    return f'{{{meta}, "roots": {roots}, "concrete_specs": {specs}}}'


def _database(installs: str, version: str = "8") -> str:
    """Return an index with these records."""
    return f'{{"database": {{"version": "{version}", "installs": {installs}}}}}'


def _many(count: int, text: str, joint: str = ",") -> str:
    """Return a text many times, with its number in place of `#`."""
    return joint.join(text.replace("#", str(number)) for number in range(count))


DEEP = {
    "lists": _nested("[", "]", 100_000),
    "mappings": _nested("{a: ", "}", 50_000),
    "objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "blocks": "\n  " + "- " * 100_000 + "a",
    "no end": "[" * 190_000,
    "an alias of itself": "&a [*a]",
    "hexadecimal": "0x" + "f" * 190_000,
    "digits": "9" * 190_000,
    "base 60": "1" + ":59" * 60_000,
    "a float": "1" + "0" * 190_000 + ".0",
    "a tag": "!!python/object/apply:os.system [id]",
    "bytes": "!!binary " + "A" * 190_000,
}
"""Values that are hard to read."""
ONE_HASH = "{" + _many(50_000, f'"{HASH}": {{}}') + "}"
"""An object in which one key stands again and again."""
LONG_VERSION = {**NODE, "version": "1." * 100_000}
SLOW_PATTERN = 're.search("(a+)+$", "' + "a" * 2_000 + '!")'
"""A regular expression that backtracks."""
GROWING_TEXT = "platform" + '.replace("i", "iiiiiiiiii")' * 12 + ' == "x"'

LONG_ENVIRONMENTS = {
    "aliases that double": _spack("*a11", _doubled("[x]", "[{}]", 12)),
    "merged mappings that double": _spack(
        "[a]", _doubled("{a: 1}", "{{<<: [{}]}}", 12)
    ),
    "a large environment": large_environment(),
    "definitions that double": doubling_environment(),
    "requirements that multiply": multiplied_environment(),
    "toolchains that double": _toolchains(),
    "conflicts": "spack: {packages: {all: {conflict: ["
    + _many(4_000, '"@#.1 %gcc@#:"')
    + "]}}, specs: ["
    + _many(1_000, '"* @#:"')
    + "]}",
    "excludes": "spack: {specs: [{matrix: [["
    + _many(1_000, "p#")
    + "]], exclude: ["
    + _many(15_000, '"*@#:"')
    + "]}]}",
    "groups in a circle": "spack: {specs: ["
    + _many(999, "{group: g#, needs: [g1], specs: [a]}")
    + "]}",
    "a slow regular expression": _when(SLOW_PATTERN),
    "a deep condition": _when("(" * 50_000 + "True" + ")" * 50_000),
    "a condition that grows": _when(GROWING_TEXT),
}
"""Files `spack.yaml`."""
SPEC_LISTS = {
    "version lists": _repeated("hdf5@#:#.1," + _many(200, "#:#.5")),
    "many dependencies": _repeated("hdf5 " + _many(300, "^p#", " ")),
    "dependencies of any package": _repeated("* ^cmake@#: ^* ^mpi"),
    "many variants": _repeated("hdf5 " + _many(300, "+a#x", " ")),
    "many values": _repeated("* libs=" + _many(300, "v#")),
    "many targets": _repeated("hdf5 target=" + _many(120, "x86_64:zen3,m#")),
    "conditions": _repeated("* " + _many(60, "%[when='+a#'] gcc", " ")),
    "stars": _repeated("os=* platform=* target=* arch=*-*-*"),
    "doubled signs": _repeated("* ++pic ++shared api==#"),
    "beginnings of hashes": _repeated("/a"),
    "dots": _repeated("hdf5@" + "1." * 900 + "#"),
    "quotes": _repeated('hdf5 cflags="' + '\\"' * 900),
    "prompts": _repeated("$ " * 990),
}
"""Lists of specs."""
PASTED_TEXTS: dict[str, str | bytes] = {
    "headings": "-- linux-a-b / gcc@1 --\n" + "a@1 b@2\n" * 300_000,
    "blanks": " " * 3_900_000 + "hdf5",
    "a line": "a" * 3_900_000,
    "no line": "\n" * 3_900_000,
    "documents": "--- # a.yaml\npackages: {}\n" * 5_000,
    "UTF-16": _spack("[zlib]").encode("utf-16"),
    "no UTF-8": b"\xff\xfe\xe9" * 100_000,
    "NUL": "hdf5\0zlib\n" * 10_000,
    "accents": "e" + "\u0301" * 900_000,
    "right to left": "\u202ehdf5\u2066 zlib\n" * 1_000,
}
"""Other texts, and bytes that are no text."""
LOCKFILES = {
    "a lockfile: deep": f'{{"concrete_specs": {DEEP["lists"]}}}',
    "a lockfile: no number": _lock({}, "NaN"),
    "a lockfile: endless": _lock({}, "1e999"),
    "a lockfile: long version": _lock({HASH: LONG_VERSION}),
    "a lockfile: one key": f'{{"concrete_specs": {ONE_HASH}}}',
}
ENVIRONMENTS: dict[str, str | bytes] = {
    **{f"specs: {name}": _spack(text) for name, text in DEEP.items()},
    **LONG_ENVIRONMENTS,
    **SPEC_LISTS,
    **PASTED_TEXTS,
    **LOCKFILES,
}
"""Environments that a visitor pastes, and that `cover` reads."""

INPUTS: dict[str, str] = {
    **{f"{name}.spec.yaml": f"spec:\n- p: {text}\n" for name, text in DEEP.items()},
    "doubling.spec.yaml": _doubled("[x]", "[{}]", 12) + "spec: *a11\n",
    "merging.spec.yaml": _doubled("{a: 1}", "{{<<: [{}]}}", 12) + "spec: [*a11]\n",
    # Spec files and indexes.
    "deep.spec.json": f'{{"spec": {{"nodes": {DEEP["objects"]}}}}}',
    "deep.json": _database(DEEP["lists"]),
    "record.json": _database(f'{{"{HASH}": {DEEP["objects"]}}}'),
    "one hash.json": _database(ONE_HASH),
    "a version.json": _database("{}", "9" * 99_999),
    # Pages and package data.
    "deep.md": f"---\nmeta: {DEEP['lists']}\n---\n",
    "digits.md": f"---\ntitle: {DEEP['digits']}\n---\n",
    "keys.md": "---\n" + "a: b\n" * 100_000,
    "a package.json": "[" + _many(50_000, '{"name": "p", "versions": []}') + "]",
    "a deep package.json": f'[{{"name": "p", "dependencies": {DEEP["objects"]}}}]',
}
"""Inputs of `check` and `build`, by file name."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command that has read one of the texts.

    Attributes:
        title: the command and the name of the text.
        ran: the result.
        statuses: the allowed exit statuses.
    """

    title: str
    ran: Run
    statuses: tuple[int, ...]


def texts(seconds: float) -> Outcome:
    """Give each text to the commands that read such files."""
    outcome = Outcome("texts")
    slowest = 0.0
    with TemporaryDirectory(prefix="attacks-") as folder:
        for attempt in until(seconds, _attempts(Path(folder))):
            slowest = max(slowest, attempt.ran.cpu_seconds)
            faults = attempt.ran.faults(attempt.statuses, MOST_SECONDS)
            outcome.judge(attempt.title, faults)
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def _attempts(folder: Path) -> Iterator[Attempt]:
    """Yield the result of each command; two environments follow each input."""
    database = folder / "a.db"
    source = folder / "source"
    environment = folder / "environment"
    good = write_pages(folder / "pages")
    run("build", good, "-o", database)
    source.mkdir()
    environments = iter(ENVIRONMENTS.items())
    for name, text in INPUTS.items():
        # `check` and `build` read the input beside good pages.
        path = source / name
        path.write_text(text, encoding="utf-8")
        checked = run("check", source)
        yield Attempt(f"check {name}", checked, (1,))
        built = run("build", "--keep-going", source, good, "-o", database)
        yield Attempt(f"build --keep-going {name}", built, (0,))
        path.unlink()

        # `cover` reads environments.
        for title, pasted in islice(environments, 2):
            environment.write_bytes(_bytes(pasted))
            covered = run_command("cover", environment, database)
            yield Attempt(f"cover {title}", covered, (0, 1, 2))


def forms(target: Target, seconds: float) -> Outcome:
    """Send each environment as a form."""
    outcome = Outcome("forms")
    slowest = 0.0
    for name, text in until(seconds, ENVIRONMENTS.items()):
        value = quote_from_bytes(_bytes(text), safe="")
        reply = target.ask("/cover.json", "POST", f"q={value}".encode(), **FORM)
        slowest = max(slowest, reply.cpu_seconds)
        faults = target.reply_faults(reply) + reply.slowness(FORM_SECONDS)
        outcome.judge(name, faults)
    outcome.faults += target.server_faults()
    outcome.note = f"at most {slowest:.1f} s of CPU, {target.peak_megabytes():.0f} MB"
    return outcome


def methods(target: Target, seconds: float) -> Outcome:
    """Ask for each page by each method."""
    outcome = Outcome("methods")
    for path in until(seconds, PATHS):
        status_of_get = target.ask(path).status
        for method in (*READING, *REFUSED):
            body = b"q=zlib" if method == "POST" else None
            reply = target.ask(path, method, body, **FORM)
            faults = target.reply_faults(reply)
            if method == "HEAD" and reply.status != status_of_get:
                faults.append(f"a {reply.status} where GET has {status_of_get}")
            if method == "HEAD" and reply.body:
                faults.append("has a body")
            if method in REFUSED and reply.status != 405:
                faults.append(f"was answered with {reply.status}")
            outcome.judge(f"{method} {path}", faults)
    outcome.faults += target.server_faults()
    return outcome


def _bytes(text: str | bytes) -> bytes:
    """Return a text in UTF-8; bytes stay as they are."""
    if isinstance(text, bytes):
        return text
    return text.encode()
