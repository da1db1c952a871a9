"""Reads an environment in any format, which is recognized by its content.

JSON with `concrete_specs` is a `spack.lock`, JSON with nodes is output of `spack find --json`, and
YAML with a key `spack` is a `spack.yaml`. Other text is a list of specs, or the output of a
terminal. A line of it is a spec if it parses, and if it names a known package, has a sign of a spec
such as `@` or `%`, or was printed by Spack with a state or a hash. A note counts all other lines.
If every line is written as a spec, the text is a list, and unknown names count as well.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from typing import Any

from spack_cache_db.environments import (
    NOWHERE,
    SCOPE_FILES,
    TOP_KEYS,
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
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser, legacy_reading, parse_legacy_query, parse_query
from spack_cache_db.spack.pasted_specs import (
    PastedSpec,
    has_options,
    is_visible,
    pasted_line,
    plain,
)

MAX_BYTES = 2**26
"""Maximum size of an environment; a lockfile of a thousand specs has two million bytes."""

LIMITS = Limits()
LONGEST_LINE = 10_000
"""Maximum length of a line that is searched for specs."""

_OF_A_MANIFEST = (*TOP_KEYS, "specs", "definitions", "packages")
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_EXPECTED = "expected a spack.yaml, a spack.lock, or one spec on each line"
# A key may end in `:`, `+:` or `-:`, inside or outside of quotes: `packages::`, `'packages:':`.
_MANIFEST = re.compile(
    rf"^ *['\"]?(?:{'|'.join(_OF_A_MANIFEST)})(?:[+-]?:)?['\"]?\s*:(?:\s|$)", re.MULTILINE
)

# Several files in one text: before each is the start of a YAML document with a name, or the line
# that `tail` and `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env):?['\"]?\s*:", re.MULTILINE)


def read_environment(
    data: bytes, path: str, limits: Limits = LIMITS, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return the content of an environment.

    Args:
        data: a `spack.yaml`, a `spack.lock`, or one spec a line, with `#` for comments.
        path: its path in messages.
        limits: the limits of its size.
        surroundings: the files and values that a `spack.yaml` may refer to.

    Raises:
        UnreadableEnvironment: it is none of these, or cannot be read.
    """
    faults = Faults(path)
    environment = Environment()
    with faults.collected():
        if len(data) > MAX_BYTES:
            raise LineFault(0, f"has more than {MAX_BYTES:,} bytes")
        text = decoded(data)
        if files := joined_files(text, path):
            path, text = next(iter(files.items()))

            def open_either(path: str) -> bytes | Mapping[str, bytes] | None:
                content = opened(files, path)
                return surroundings.open(path) if content is None else content

            environment = _read(text, path, limits, replace(surroundings, open=open_either))
        else:
            environment = _read(text, path, limits, surroundings)
    faults.raise_any()
    return environment


def user_specs(texts: Iterable[str], parse: Parser = parse_query) -> Environment:
    """Return an environment of separate specs."""
    specs = tuple(_user_spec(text, 0, LIMITS, parse) for text in texts)
    return Environment(specs, tuple(legacy_notes(specs)))


def _user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line, with its error if it is not one."""
    spec = read_spec(text, line, limits.length, parse)
    return replace(spec, text=text, legacy=legacy_reading(spec.query) if spec.query else None)


def _read(text: str, path: str, limits: Limits, surroundings: Surroundings) -> Environment:
    if text.startswith(_SIGNED):
        raise LineFault(1, f"is a signed file of a build cache (spec.json.sig), {_EXPECTED}")
    is_manifest = _MANIFEST.search(text) is not None
    if text.lstrip().startswith(("{", "[")):
        data = _json(text)
        if nodes := _nodes(data):
            return read_nodes(nodes, limits.nodes)
        if isinstance(data, dict) and data.keys() & {"_meta", "concrete_specs"}:
            return read_lock(data, limits.nodes)
        if data is not None and not (isinstance(data, dict) and data.keys() & {*_OF_A_MANIFEST}):
            raise LineFault(1, f"{_json_kind(data)}, {_EXPECTED}")
        is_manifest |= text.lstrip()[0] == "{"
    if is_manifest:
        # Importing PyYAML takes longer than reading a list of specs.
        from spack_cache_db.environments.manifest import read_manifest

        return read_manifest(text, path, limits, surroundings)
    reader = _PastedText(limits, surroundings)
    for number, line in _lines(text):
        reader.add(number, line)
    return reader.environment()


def _json(text: str) -> Any:
    """Return decoded JSON, None if it may be YAML that begins with a brace."""
    try:
        return json.loads(text)
    except RecursionError:
        raise LineFault(0, "is nested too deeply, expected a spack.lock") from None
    except ValueError as error:
        is_lock = '"concrete_specs"' in text
        if not is_lock and not text.lstrip().startswith("[{"):
            return None
        expected = "expected a whole spack.lock" if is_lock else _EXPECTED
        line, problem = 0, f": {error}"
        if isinstance(error, json.JSONDecodeError):  # Else it is a number of thousands of digits.
            # The end of a text may be a line behind its last one.
            line = min(error.lineno, text.removesuffix("\n").count("\n") + 1)
            problem = f" at column {error.colno}: {error.msg}"
        raise LineFault(line, f"broken JSON{problem}, {expected}") from None


def _json_kind(data: Any) -> str:
    """Return a description of JSON that is not an environment."""
    first = data[0] if isinstance(data, list) and data else data
    keys = first.keys() if isinstance(first, dict) else set()
    inner = next(iter(first.values())) if len(keys) == 1 else None
    if first is not data and ("arch" in keys or (isinstance(inner, dict) and "arch" in inner)):
        return "lists specs without their hashes, as 'spack find --json' did before Spack 0.18"
    if "database" in keys:
        return "is the index of a build cache, for 'spack-cache-db build'"
    if {"version", "data"} <= keys:
        return "is a manifest of a build cache"
    return "is JSON, but neither a spack.lock nor output of 'spack find --json'"


def _nodes(data: Any) -> list[Any]:
    """Return the nodes of `spack find --json` or `spack spec --json`; empty for other JSON."""
    if isinstance(data, dict) and isinstance(data.get("spec"), dict):
        data = data["spec"].get("nodes")
    is_nodes = isinstance(data, list) and data and isinstance(data[0], dict) and "hash" in data[0]
    return data if is_nodes else []


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by path, the environment first; empty if it is one file.

    `name` is the path of the text, and of a file before the first heading.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    before = text[: headings[0].start()]
    files = {name: before} if before.strip() else {}
    stops = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, stop in zip(headings, stops, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        files[posixpath.normpath(path)] = text[heading.end() : stop]
    first = next((path for path in files if _ENVIRONMENT.search(files[path])), next(iter(files)))
    return {first: files.pop(first), **files}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or else the only file of that name.

    Files that a visitor drops have names without folders, so that folders are ignored in the end.
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
    same_names = [other for other in files if posixpath.basename(other) == name]
    beside = [other for other in same_names if posixpath.dirname(other) == home] or same_names
    return files[beside[0]].encode() if len(beside) == 1 else None


MOST_NAMED = 3
LONGEST_NAMED = 60
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAME = re.compile(r"[\w.-]+|\*.*", re.ASCII)
_ATTEMPT = re.compile(r"([\w-]+)\s*[@+~%^=/]", re.ASCII)
"""The beginning of a line that is a spec with a mistake."""

# Headings of Spack's output: the architecture and compiler of the specs below (`cmd/__init__.py`).
_SECTION = re.compile(r"-- (?P<arch>[^/]+?) / (?P<compiler>\S.*?) -{2,}")
_OTHER_SECTION = re.compile(r"-{2,} \S.*? -{2,}")
_RULE = re.compile(r"[-=]{4,}")
_INPUT = ("Input spec", "Normalized")
_TITLES = (*_INPUT, "Concretized")
_HASH = re.compile(r"/[a-z2-7]{7}(?=[a-z2-7]{25}\b|\b)")
_INSTALLING = re.compile(r"==> Installing \S+-[a-z2-7]{32}(?: .*)?")
_INDENTED = 4
"""Blanks before a dependency in trees of `spack find`."""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, counted from 1; a backslash at the end joins two lines."""
    joined, start = "", 0
    for number, raw in enumerate(StringIO(text), start=1):
        line = raw.rstrip()
        start = start or number
        if line.endswith("\\") and len(joined) < LONGEST_LINE:
            joined += line[:-1]
            continue
        yield start, plain(joined + line)
        joined, start = "", 0
    if joined:
        yield start, plain(joined)


class _PastedText:
    """Collects the specs of a text line by line."""

    def __init__(self, limits: Limits, surroundings: Surroundings) -> None:
        self._limits = limits
        self._known = surroundings.known
        self._parse = surroundings.parse
        self._specs: list[UserSpec] = []
        # Specs of unknown packages, or with errors: they count only in a list.
        self._doubtful: list[UserSpec] = []
        # Arguments of commands: they do not count if Spack's output follows.
        self._arguments: list[UserSpec] = []
        self._others: list[str] = []
        self._below = 0
        self._commands: dict[str, None] = {}
        self._headings: dict[str, None] = {}
        self._hashes: set[str] = set()
        self._is_output = False
        # Constraints of the last heading on the specs below; None outside Spack's output.
        self._heading: str | None = None
        self._group = ""
        # Blanks before the roots of a tree, -1 before the first root; None outside a tree.
        self._margin: int | None = None
        self._is_message = False
        self._is_input = False

    def add(self, number: int, line: str) -> None:
        """Read the next line."""
        words = line.strip()
        if not words or (self._is_message and line.startswith("  ")):
            return
        self._is_message = False
        if self._is_heading(words):
            return
        line = _COMMENT.sub("", line).rstrip()
        if line and not self._is_input:
            self._read(number, line)
        if len(self._specs) + len(self._arguments) + len(self._doubtful) > self._limits.specs:
            raise LineFault(0, f"has more than {self._limits.specs:,} specs")
        if len(self._others) + self._below > self._limits.nodes:
            raise LineFault(0, f"has more than {self._limits.nodes:,} lines that are not specs")

    def environment(self) -> Environment:
        """Return the specs of the text; `LineFault` if it has none, but other lines."""
        specs, other_lines = self._specs, self._others
        if not (specs and self._is_output):
            specs = [*specs, *self._arguments]
        if other_lines or self._is_output:
            other_lines = [*other_lines, *(spec.text for spec in self._doubtful)]
        else:
            specs = [*specs, *self._doubtful]
        specs.sort(key=lambda spec: spec.line)
        notes = [*self._notes(other_lines)]
        if not specs and (other_lines or self._is_output):
            raise LineFault(0, "; ".join(("there is no spec in this text", *notes)))
        return Environment(tuple(specs), (*notes, *legacy_notes(specs)), others=tuple(other_lines))

    def _notes(self, other_lines: list[str]) -> Iterator[str]:
        if self._below:
            are = "lines are dependencies" if self._below > 1 else "line is a dependency"
            yield f"{self._below:,} {are} of other specs in a tree, and skipped"
        if self._commands:
            yield f"skipped: {_listed(self._commands, '; ')}"
        if other_lines:
            are = "lines are not specs" if len(other_lines) > 1 else "line is not a spec"
            yield f"{len(other_lines):,} {are}: {_listed(map(_short, other_lines), ', ')}"
        if self._headings:
            yield f"headings that are not applied: {_listed(map(_short, self._headings), ', ')}"

    def _is_heading(self, words: str) -> bool:
        """Return whether a line is a heading or message of Spack's, and apply it."""
        if section := _SECTION.fullmatch(words):
            self._begin_section(section["arch"], section["compiler"])
        elif _OTHER_SECTION.fullmatch(words):
            self._begin()
            self._headings[words.strip("- ")] = None
        elif words.startswith("==>"):
            self._begin()
            self._is_message = True
            return not _INSTALLING.fullmatch(words)
        elif words in _TITLES:
            self._begin()
            self._is_input = words in _INPUT
        else:
            return _RULE.fullmatch(words) is not None
        return True

    def _begin(self) -> None:
        self._is_output, self._is_input = True, False
        self._heading, self._group, self._margin = "", "", None

    def _begin_section(self, arch: str, compilers: str) -> None:
        """Apply a heading of an architecture and compilers, or of a group."""
        self._begin()
        self._margin = -1
        if arch == "root specs":
            self._group = compilers if compilers != "default" else ""
            return
        constraints = []
        for part, constraint in ((arch, f"arch={arch}"), (compilers, f"%{compilers.lstrip('%')}")):
            if part in ("no arch", "no compiler", "no compilers"):
                continue
            with suppress(QuerySyntaxError):
                if parse_legacy_query(constraint).name is None:
                    constraints.append(constraint)
                    continue
            self._headings[part] = None
        self._heading = " ".join(constraints)

    def _read(self, number: int, line: str) -> None:
        """Add the specs of a line, or the line as one that is not a spec."""
        if len(line) > LONGEST_LINE:
            self._others.append(line)
            return
        pasted_specs = pasted_line(line, self._known, self._heading)
        if self._margin is not None:
            blanks = len(line) - len(line.lstrip())
            self._margin = blanks if self._margin < 0 else self._margin
            if blanks - self._margin >= _INDENTED:
                pasted_specs = tuple(replace(pasted, is_dependency=True) for pasted in pasted_specs)
        self._is_output |= any(pasted.is_printed for pasted in pasted_specs)
        specs = [(pasted, self._user_spec(pasted, number)) for pasted in pasted_specs]
        valid = [pair for pair in specs if pair[0].is_dependency or self._counts(*pair)]
        is_typed = not any(
            pasted.is_printed or pasted.is_certain or pasted.left_out for pasted in pasted_specs
        )
        if len(valid) < len(specs):
            if is_typed and len(specs) == 1 and self._is_written(specs[0][1]):
                self._doubtful.append(specs[0][1])
            else:
                self._others.append(line.strip())
        if len(valid) == len(specs) or not is_typed:
            for pasted, spec in valid:
                self._add_spec(pasted, spec)

    def _is_written(self, spec: UserSpec) -> bool:
        """Return whether a line is written as a spec: a name, or a known name and a mistake."""
        attempt = _ATTEMPT.match(spec.text)
        if spec.error is not None:
            return attempt is not None and self._known.is_package(attempt[1])
        return _NAME.fullmatch(spec.text) is not None

    def _add_spec(self, pasted: PastedSpec, spec: UserSpec) -> None:
        if pasted.is_dependency:
            self._below += 1
        elif pasted.left_out:
            self._arguments.append(spec)
            self._commands[pasted.left_out] = None
        else:
            # Spack may print a binary twice: among the roots and below its compiler, or in a log.
            is_copied = pasted.is_printed or pasted.is_certain
            dag_hash = _HASH.search(spec.text) if is_copied else None
            if dag_hash is None or dag_hash[0] not in self._hashes:
                self._specs.append(spec)
            self._hashes |= {dag_hash[0]} if dag_hash else set()

    def _user_spec(self, pasted: PastedSpec, line: int) -> UserSpec:
        if pasted.external:
            return UserSpec(pasted.spec, line, external=pasted.external, is_buildable=False)
        spec = _user_spec(pasted.spec, line, self._limits, self._parse)
        return replace(spec, group=self._group)

    def _counts(self, pasted: PastedSpec, spec: UserSpec) -> bool:
        """Return whether a spec counts in any text."""
        query = spec.query
        if query is None or pasted.external:
            return pasted.external != ""
        is_known = query.name is not None and self._known.is_package(query.name)
        is_known &= not has_options(query)
        is_printed = pasted.is_printed and self._heading is not None
        return pasted.is_certain or is_printed or is_known or is_visible(query)


def _listed(texts: Iterable[str], separator: str) -> str:
    all_texts = [*texts]
    more = f" and {len(all_texts) - MOST_NAMED:,} more" if len(all_texts) > MOST_NAMED else ""
    return f"{separator.join(all_texts[:MOST_NAMED])}{more}"


def _short(text: str) -> str:
    return repr(text if len(text) <= LONGEST_NAMED else f"{text[: LONGEST_NAMED - 1]}…")
