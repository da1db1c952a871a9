"""Texts that go deep, double, repeat or never end: as inputs of commands, and as
forms.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_from_bytes

from attacks.builder import Run, enough, run, run_command
from attacks.neighbours import (
    doubling_environment,
    large_environment,
    multiplied_environment,
)
from attacks.outcome import Outcome
from attacks.requests import PATHS
from attacks.target import Target
from tests.site.cache import write_pages

MOST_SECONDS = 20.0
"""Processor time that no command may take for one of these texts."""
FORM_SECONDS = 4.0
"""Processor time that no form may take; a page of the site has two seconds, and then is
killed.
"""
METHODS = (
    "HEAD",
    "OPTIONS",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "PROPFIND",
    "get",
)
FORM = {"content-type": "application/x-www-form-urlencoded"}
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


def _doubled(first: str, next_one: str, count: int) -> str:
    """Return anchors, each of which refers to the one before nine times."""
    anchors = (
        f"a{number}: &a{number} {next_one.format(', '.join([f'*a{number - 1}'] * 9))}\n"
        for number in range(1, count)
    )
    return f"a0: &a0 {first}\n" + "".join(anchors)


def _spack(specs: str, before: str = "") -> str:
    return f"{before}spack:\n  specs: {specs}\n"


def _repeated(spec: str) -> str:
    """Return a thousand specs: `spec` with their number, as long as a spec may be."""
    return "\n".join(
        f"{spec.replace('#', str(number))}"[:1_990] for number in range(1_000)
    )


def _when(condition: str) -> str:
    quoted = condition.replace("'", "''")
    return _spack("[$a]", "").replace(
        "spack:\n", f"spack:\n  definitions: [{{when: '{quoted}', a: [zlib]}}]\n"
    )


def _lock(nodes: dict[str, object], version: str = "6") -> str:
    text = json.dumps({"roots": [{"hash": HASH, "spec": "p"}], "concrete_specs": nodes})
    return f'{{"_meta": {{"lockfile-version": {version}}}, {text[1:]}'


def _database(installs: str, version: str = "8") -> str:
    return f'{{"database": {{"version": "{version}", "installs": {installs}}}}}'


def _many(count: int, text: str, joint: str = ",") -> str:
    return joint.join(text.replace("#", str(number)) for number in range(count))


DEEP = {
    "lists": _nested("[", "]", 100_000),
    "mappings": _nested("{a: ", "}", 50_000),
    "objects": _nested('{"a":', "}", 100_000).replace(":}", ":1}", 1),
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

ENVIRONMENTS: dict[str, str | bytes] = {
    **{f"specs: {name}": _spack(text) for name, text in DEEP.items()},
    "aliases that double": _spack("*a11", _doubled("[x]", "[{}]", 12)),
    "merged mappings that double": _spack(
        "[a]", _doubled("{a: 1}", "{{<<: [{}]}}", 12)
    ),
    "a large environment": large_environment(),
    "definitions that double": doubling_environment(),
    "requirements that multiply": multiplied_environment(),
    "toolchains that double": _spack("[a %t0]").replace(
        "spack:\n",
        f"spack:\n  toolchains: {{{', '.join(f't{n}: %t{n + 1} %t{n + 1}' for n in range(40))}}}\n",
    ),
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
    "a slow regular expression": _when('re.search("(a+)+$", "' + "a" * 2_000 + '!")'),
    "a deep condition": _when(f"{'(' * 50_000}True{')' * 50_000}"),
    "a condition that grows": _when(
        "platform" + '.replace("i", "iiiiiiiiii")' * 12 + ' == "x"'
    ),
    "version lists": _repeated(f"hdf5@#:#.1,{_many(200, '#:#.5')}"),
    "many dependencies": _repeated("hdf5 " + _many(300, "^p#", " ")),
    "dependencies of any package": _repeated("* ^cmake@#: ^* ^mpi"),
    "many variants": _repeated("hdf5 " + _many(300, "+a#x", " ")),
    "many values": _repeated(f"* libs={_many(300, 'v#')}"),
    "many targets": _repeated(f"hdf5 target={_many(120, 'x86_64:zen3,m#')}"),
    "conditions": _repeated("* " + _many(60, "%[when='+a#'] gcc", " ")),
    "stars": _repeated("os=* platform=* target=* arch=*-*-*"),
    "doubled signs": _repeated("* ++pic ++shared api==#"),
    "beginnings of hashes": _repeated("/a"),
    "dots": _repeated("hdf5@" + "1." * 900 + "#"),
    "quotes": _repeated('hdf5 cflags="' + '\\"' * 900),
    "prompts": _repeated("$ " * 990),
    "headings": "-- linux-a-b / gcc@1 --\n" + "a@1 b@2\n" * 300_000,
    "blanks": " " * 3_900_000 + "hdf5",
    "a line": "a" * 3_900_000,
    "no line": "\n" * 3_900_000,
    "documents": "--- # a.yaml\npackages: {}\n" * 5_000,
    "a lockfile: deep": f'{{"concrete_specs": {DEEP["lists"]}}}',
    "a lockfile: no number": _lock({}, "NaN"),
    "a lockfile: endless": _lock({}, "1e999"),
    "a lockfile: long version": _lock({HASH: {**NODE, "version": "1." * 100_000}}),
    "a lockfile: one key": '{"concrete_specs": {'
    + _many(50_000, f'"{HASH}": {{}}')
    + "}}",
    "UTF-16": _spack("[zlib]").encode("utf-16"),
    "no UTF-8": b"\xff\xfe\xe9" * 100_000,
    "NUL": "hdf5\0zlib\n" * 10_000,
    "accents": "e" + "\u0301" * 900_000,
    "right to left": "\u202ehdf5\u2066 zlib\n" * 1_000,
}
"""Environments that a visitor pastes, and that `cover` reads."""

INPUTS: dict[str, str] = {
    **{f"{name}.spec.yaml": f"spec:\n- p: {text}\n" for name, text in DEEP.items()},
    "doubling.spec.yaml": _doubled("[x]", "[{}]", 12) + "spec: *a11\n",
    "merging.spec.yaml": _doubled("{a: 1}", "{{<<: [{}]}}", 12) + "spec: [*a11]\n",
    "deep.spec.json": f'{{"spec": {{"nodes": {DEEP["objects"]}}}}}',
    "deep.json": _database(DEEP["lists"]),
    "record.json": _database(f'{{"{HASH}": {DEEP["objects"]}}}'),
    "one hash.json": _database("{" + _many(50_000, f'"{HASH}": {{}}') + "}"),
    "a version.json": _database("{}", "9" * 99_999),
    "deep.md": f"---\nmeta: {DEEP['lists']}\n---\n",
    "digits.md": f"---\ntitle: {DEEP['digits']}\n---\n",
    "keys.md": "---\n" + "a: b\n" * 100_000,
    "a package.json": "[" + _many(50_000, '{"name": "p", "versions": []}') + "]",
    "a deep package.json": f'[{{"name": "p", "dependencies": {DEEP["objects"]}}}]',
}
"""Inputs of `check` and `build`, by file name."""


def texts(seconds: float) -> Outcome:
    """Give each text to the commands that read such files."""
    outcome, began, slowest = Outcome("texts"), time.monotonic(), 0.0
    with TemporaryDirectory(prefix="attacks-") as folder:
        for name, ran, statuses in _runs(Path(folder)):
            slowest = max(slowest, ran.cpu_seconds)
            outcome.judge(name, ran.faults(statuses, MOST_SECONDS))
            if enough(began, seconds):
                break
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def _runs(folder: Path) -> Iterator[tuple[str, Run, tuple[int, ...]]]:
    """Yield the result of each command, and its allowed statuses."""
    database, source, environment = (
        folder / "a.db",
        folder / "source",
        folder / "environment",
    )
    good = write_pages(folder / "pages")
    run("build", good, "-o", database)
    source.mkdir()
    pasted = iter(ENVIRONMENTS.items())
    for name, text in INPUTS.items():
        path = source / name
        path.write_text(text, encoding="utf-8")
        yield f"check {name}", run("check", source), (1,)
        built = run("build", "--keep-going", source, good, "-o", database)
        yield f"build --keep-going {name}", built, (0,)
        path.unlink()
        for title, pasted_text in islice(pasted, 2):
            environment.write_bytes(_bytes(pasted_text))
            yield (
                f"cover {title}",
                run_command("cover", environment, database),
                (0, 1, 2),
            )


def forms(target: Target, seconds: float) -> Outcome:
    """Send each environment as a form."""
    outcome, began, slowest = Outcome("forms"), time.monotonic(), 0.0
    for name, text in ENVIRONMENTS.items():
        body = f"q={quote_from_bytes(_bytes(text), safe='')}".encode()
        reply = target.ask("/cover.json", "POST", body, **FORM)
        slowest = max(slowest, reply.cpu_seconds)
        faults = target.betrayals(reply)
        if reply.cpu_seconds > FORM_SECONDS:
            faults.append(f"{reply.cpu_seconds:.1f} s of CPU")
        outcome.judge(name, faults)
        if enough(began, seconds):
            break
    outcome.faults += target.standing()
    outcome.note = f"at most {slowest:.1f} s of CPU, {target.peak_megabytes():.0f} MB"
    return outcome


def methods(target: Target, seconds: float) -> Outcome:
    """Ask for each page by each method."""
    outcome, began = Outcome("methods"), time.monotonic()
    for path in PATHS:
        expected = target.ask(path)
        for method in METHODS:
            reply = target.ask(
                path, method, b"q=zlib" if method == "POST" else None, **FORM
            )
            faults = target.betrayals(reply)
            if method == "HEAD" and (reply.status, reply.body) != (
                expected.status,
                b"",
            ):
                faults.append(f"a {reply.status} where GET has {expected.status}")
            if method in METHODS[3:] and reply.status != 405:
                faults.append(f"was answered with {reply.status}")
            outcome.judge(f"{method} {path}", faults)
        if enough(began, seconds):
            break
    outcome.faults += target.standing()
    return outcome


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
