"""An environment's bytes → what it asks for. The content tells which format it has.

JSON with `concrete_specs` is a `spack.lock`, JSON with nodes what `spack find --json` prints, and
YAML with a key `spack` a `spack.yaml`. Anything else is a list of specs, one a line, as somebody
typed it or as Spack printed it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import StringIO
from typing import Any

from spack_cache_db.environments import (
    NOWHERE,
    SCOPE_FILES,
    TOP_KEYS,
    Alternative,
    Environment,
    Faults,
    Limits,
    Surroundings,
    UserSpec,
    decoded,
    legacy_notes,
    read_spec,
)
from spack_cache_db.environments.lockfile import read_lock, read_nodes
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.parser import Parser, legacy_reading, parse_query
from spack_cache_db.spack.pasted_specs import (
    PastedSpec,
    pasted_spec,
    printed_cells,
    printed_spec,
    separate_specs,
)

MAX_BYTES = 2**26
"""Bytes of an environment; a lockfile of a thousand specs has two million."""

_ListedSpec = tuple[int, PastedSpec]
"""A spec of a list behind its line, counted from 1."""

MOST_TOLD = 3
LIMITS = Limits()
_OF_A_LOCK = {"_meta", "concrete_specs"}
_MANIFEST = re.compile(
    r"^ *['\"]?(?:spack|env|specs|definitions|packages)['\"]?\s*:(?:\s|$)", re.MULTILINE
)
_COMMENT = re.compile(r"(?:^|\s)#.*")

# Several files in one text: the line before each is that of a YAML document with a name, or the one
# that `tail` and `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env)['\"]?\s*:", re.MULTILINE)

# What Spack 0.17 to 1.2 prints: headings say for what the specs below them were built, and trees
# what each of them needs.
_SECTION = re.compile(r"-- (?P<arch>.+?) / (?P<compiler>.+?) -{2,}")
_ARCH = re.compile(r"[\w.]+-[\w.]+-[\w.]+")
_COMPILER = re.compile(r"%?(?:[\w,]+=)?[\w.-]+@[\w.-]+")
_RULE = re.compile(r"-{4,}")
_INPUT = ("Input spec", "Normalized")
_TITLES = (*_INPUT, "Concretized")
_PRINTED = re.compile(r"==> |\s*-- .+ -{2,}\s*$|\s*(?:\[[-+^a-z]\]| - )\s+\S|Concretized$")
_HASH_BEFORE = re.compile(r"[a-z2-7]{7,32}(?P<gap>\s+)")
_INDENTED = 4
"""More blanks stand before the name of a dependency, in trees of `spack find`."""


def read_environment(
    data: bytes, path: str, limits: Limits = LIMITS, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return what an environment asks for.

    Args:
        data: a `spack.yaml`, a `spack.lock`, or one spec a line, with `#` for comments.
        path: what to call it in messages.
        limits: how much it may ask for.
        surroundings: what a `spack.yaml` may refer to beside itself.

    Raises:
        UnreadableEnvironment: it is none of these, or cannot be read.
    """
    faults = Faults(path)
    found = Environment()
    with faults.collected():
        if len(data) > MAX_BYTES:
            raise LineFault(0, f"has more than {MAX_BYTES:,} bytes")
        text = decoded(data)
        if files := joined_files(text, path):
            path, text = next(iter(files.items()))
            surroundings = _among(files, surroundings)
        found = _read(text, path, limits, surroundings)
    faults.raise_any()
    return found


def _among(files: Mapping[str, str], surroundings: Surroundings) -> Surroundings:
    """Return surroundings in which several files of one text include each other."""

    def open_either(path: str) -> bytes | Mapping[str, bytes] | None:
        found = opened(files, path)
        return surroundings.open(path) if found is None else found

    return replace(surroundings, open=open_either)


def user_specs(texts: Iterable[str], parse: Parser = parse_query) -> Environment:
    """Return specs given one by one, as an environment."""
    specs = tuple(_user_spec(text, 0, LIMITS, parse) for text in texts)
    return Environment(specs, tuple(legacy_notes(specs)))


def _read(text: str, path: str, limits: Limits, surroundings: Surroundings) -> Environment:
    if text.lstrip().startswith(("{", "[")):
        data = _json(text)
        if nodes := _nodes(data):
            return read_nodes(nodes, limits.nodes)
        if isinstance(data, dict) and (data.keys() & _OF_A_LOCK or not data.keys() & {*TOP_KEYS}):
            return read_lock(data, limits.nodes)
        if data is not None or text.lstrip()[0] == "{":
            return _manifest(text, path, limits, surroundings)
    if _MANIFEST.search(text):
        return _manifest(text, path, limits, surroundings)
    return _list(text, limits, surroundings.parse)


def _manifest(text: str, path: str, limits: Limits, surroundings: Surroundings) -> Environment:
    # PyYAML takes longer to load than all that a list of specs needs.
    from spack_cache_db.environments.manifest import read_manifest

    return read_manifest(text, path, limits, surroundings)


def _json(text: str) -> Any:
    """Return decoded JSON, None if it is none; YAML may begin with a brace as well."""
    try:
        return json.loads(text)
    except RecursionError:
        raise LineFault(0, "is nested too deeply, expected a spack.lock") from None
    except ValueError as error:
        if '"concrete_specs"' in text:
            raise _broken(error, text) from None
        return None


def _broken(error: ValueError, text: str) -> LineFault:
    """Return what is wrong with a lockfile that is no JSON."""
    expected = "expected a whole spack.lock"
    if not isinstance(error, json.JSONDecodeError):
        # A number of thousands of digits.
        return LineFault(0, f"broken JSON: {error}, {expected}")
    # The end of a text may lie a line behind its last one.
    line = min(error.lineno, text.removesuffix("\n").count("\n") + 1)
    return LineFault(line, f"broken JSON at column {error.colno}: {error.msg}, {expected}")


def _nodes(data: Any) -> list[Any]:
    """Return the nodes that `spack find --json` or `spack spec --json` prints; none in others."""
    if isinstance(data, dict) and isinstance(data.get("spec"), dict):
        data = data["spec"].get("nodes")
    is_nodes = isinstance(data, list) and data and isinstance(data[0], dict) and "hash" in data[0]
    return data if is_nodes else []


def _list(text: str, limits: Limits, parse: Parser) -> Environment:
    """Return the specs of a list, or of what Spack printed, and notes on the rest.

    Raises:
        LineFault: they are too many.
    """
    specs: list[UserSpec] = []
    around: dict[str, None] = {}
    below = 0
    for line, found in printed_specs(text) if is_spack_output(text) else _listed(text):
        below += found.is_dependency
        around |= dict.fromkeys(filter(None, [found.left_out]))
        if found.spec and not found.is_dependency:
            several = separate_specs(found.spec) if found.left_out else [found.spec]
            specs += (_user_spec(each, line, limits, parse) for each in several)
        if len(specs) > limits.specs or below > limits.nodes:
            raise LineFault(0, f"has more than {limits.specs:,} specs")
    return Environment(tuple(specs), (*_notes(below, [*around]), *legacy_notes(specs)))


def _notes(below: int, around: list[str]) -> Iterator[str]:
    """Yield what was left aside: so many dependencies, and what stands around specs."""
    if below:
        are = "lines are dependencies" if below > 1 else "line is a dependency"
        yield f"{below:,} {are} of other specs in a tree, and skipped"
    if around:
        more = f" and {len(around) - MOST_TOLD:,} more" if len(around) > MOST_TOLD else ""
        yield f"skipped: {'; '.join(around[:MOST_TOLD])}{more}"


def _listed(text: str) -> Iterator[_ListedSpec]:
    """Yield the specs of a list that somebody typed; a line may be an item of a YAML list."""
    for number, line in enumerate(StringIO(text), start=1):
        yield number, pasted_spec(_COMMENT.sub("", line))


def _user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    found = read_spec(text, line, limits.length, parse)
    if found.query is None:
        return UserSpec(text, line, error=found.error)
    legacy = legacy_reading(found.query)
    return UserSpec(
        text, line, (Alternative(found.query),), legacy=(Alternative(legacy),) if legacy else ()
    )


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by their names, the environment first; none if it is one file.

    Args:
        text: the text.
        name: the path of the text; that of a file before the first line with a name.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    found = {name: text[: headings[0].start()]} if text[: headings[0].start()].strip() else {}
    ends = [each.start() for each in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        found[posixpath.normpath(path)] = text[heading.end() : end]
    first = next((each for each in found if _ENVIRONMENT.search(found[each])), next(iter(found)))
    return {first: found.pop(first), **found}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or the file of that name.

    Who drops files gives their names alone: these stand for a file in any folder.

    Args:
        files: the text of each file by its path, the environment first.
        path: the path that an environment asks for.
    """
    if path in files:
        return files[path].encode()
    inside = {
        posixpath.basename(name): text.encode()
        for name, text in files.items()
        if posixpath.dirname(name) == path and posixpath.basename(name) in SCOPE_FILES
    }
    if inside:
        return inside
    name, home = posixpath.basename(path), posixpath.dirname(next(iter(files)))
    named = [each for each in files if posixpath.basename(each) == name]
    beside = [each for each in named if posixpath.dirname(each) == home] or named
    return files[beside[0]].encode() if len(beside) == 1 else None


def is_spack_output(text: str) -> bool:
    """Return whether one of the first lines of a text is one that only Spack prints."""
    return any(_PRINTED.match(line) for line in text[:20_000].splitlines())


def printed_specs(text: str) -> Iterator[_ListedSpec]:
    """Yield the specs of an output, with those that stand below others in a tree.

    What is between `Input spec` and `Concretized` is left out: the same follows, concretized.
    """
    around, is_input, are_cells, margin = "", False, False, 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.expandtabs().rstrip()
        words = line.strip()
        if section := _SECTION.fullmatch(words):
            around, are_cells, margin = _built_for(section), True, -1
        elif words.startswith("==>"):
            around, is_input, are_cells = "", False, "root specs" in words
        elif words in _TITLES:
            is_input, are_cells = words in _INPUT, False
        elif words and not is_input and not _RULE.fullmatch(words):
            margin = _blanks(line) if margin < 0 else margin
            specs = _cells(line, around, margin) if are_cells else _line(line)
            yield from ((number, each) for each in specs if each.spec)


def _built_for(section: re.Match[str]) -> str:
    """Return what a heading says of the specs below it, as a spec."""
    arch, compiler = section["arch"], section["compiler"]
    found = [f"arch={arch}"] if _ARCH.fullmatch(arch) else []
    if _COMPILER.fullmatch(compiler):
        found.append(f"%{compiler.removeprefix('%')}")
    return " ".join(found)


def _blanks(line: str) -> int:
    """Return how many blanks stand before the name of a spec, behind its hash if it has one."""
    hashed = _HASH_BEFORE.match(line)
    return len(hashed["gap"]) - 1 if hashed else len(line) - len(line.lstrip())


def _cells(line: str, around: str, margin: int) -> Iterator[PastedSpec]:
    """Yield the specs of a line below a heading of `spack find`: several, or one of a tree."""
    if _blanks(line) - margin >= _INDENTED:
        yield PastedSpec(line.split()[-1], is_dependency=True, is_printed=True)
        return
    for dag_hash, spec in printed_cells(line):
        yield printed_spec(spec, dag_hash, around)


def _line(line: str) -> Iterator[PastedSpec]:
    """Yield the spec of a line of a tree; commands that were typed ask for what follows."""
    found = pasted_spec(line)
    if found.left_out:
        return
    is_below = line.lstrip() != line and line.lstrip().startswith("^")
    yield (
        found if found.is_printed else printed_spec(found.spec.lstrip("^"), is_dependency=is_below)
    )
