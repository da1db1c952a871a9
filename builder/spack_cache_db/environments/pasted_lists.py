"""A list of specs, or a text with specs in it such as the output of a terminal → its specs.

One rule decides what a spec is. A line is a spec if it parses, and if it names a package that is
known, has marks of a spec such as `@` or `%`, or was printed by Spack with a state or a hash. All
other lines are counted and named in a note. Only where every line is written as a spec, the text
is a list, and names that are not known count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import StringIO

from spack_cache_db.environments import (
    Environment,
    Limits,
    Surroundings,
    UserSpec,
    legacy_notes,
    read_spec,
)
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser, legacy_reading, parse_legacy_query
from spack_cache_db.spack.pasted_specs import (
    PastedSpec,
    has_options,
    is_visible,
    pasted_line,
    plain,
)

MOST_NAMED = 3
LONGEST_NAMED = 60
LONGEST_LINE = 10_000
"""Characters of a line in which specs are looked for."""

_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAME = re.compile(r"[\w.-]+|\*.*", re.ASCII)
_ATTEMPT = re.compile(r"([\w-]+)\s*[@+~%^=/]", re.ASCII)
"""How a line begins that somebody wrote as a spec, with a mistake in it."""

# Headings of Spack's output say for what the specs below them were built (`cmd/__init__.py`).
_SECTION = re.compile(r"-- (?P<arch>[^/]+?) / (?P<compiler>\S.*?) -{2,}")
_OTHER_SECTION = re.compile(r"-{2,} \S.*? -{2,}")
_NOTHING = ("no arch", "no compiler", "no compilers")
_RULE = re.compile(r"[-=]{4,}")
_ROOT_SPECS = "root specs"
_DEFAULT_GROUP = "default"
_INPUT = ("Input spec", "Normalized")
_TITLES = (*_INPUT, "Concretized")
_HASH = re.compile(r"/[a-z2-7]{7}(?=[a-z2-7]{25}\b|\b)")
_INSTALLING = re.compile(r"==> Installing \S+-[a-z2-7]{32}(?: .*)?")
_INDENTED = 4
"""Blanks by which a dependency is indented, in trees of `spack find`."""


def read_list(text: str, limits: Limits, surroundings: Surroundings) -> Environment:
    """Return the specs of a list, or of a text in which specs stand, and notes on the rest.

    Raises:
        LineFault: it has no specs, too many, or too many other lines.
    """
    reader = _PastedText(limits, surroundings)
    for number, line in _lines(text):
        reader.add(number, line)
    return reader.environment()


def user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return a spec that stands alone on a line, or why it is not one."""
    found = read_spec(text, line, limits.length, parse)
    if found.query is None:
        return UserSpec(text, line, error=found.error)
    return UserSpec(text, line, found.query, legacy_reading(found.query))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, counted from 1; a backslash at its end joins a line."""
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
    """A text while its lines are read."""

    def __init__(self, limits: Limits, surroundings: Surroundings) -> None:
        self._limits = limits
        self._known = surroundings.known
        self._parse = surroundings.parse
        self._specs: list[UserSpec] = []
        # They count only in a list: their names are not known, or they do not parse.
        self._doubtful: list[UserSpec] = []
        # What commands ask for; they do not count where Spack printed it.
        self._asked: list[UserSpec] = []
        self._others: list[str] = []
        self._below = 0
        self._commands: dict[str, None] = {}
        self._headings: dict[str, None] = {}
        self._hashes: set[str] = set()
        self._is_output = False
        # What the last heading asks of the specs below it; None where nobody printed them.
        self._around: str | None = None
        self._group = ""
        # Blanks before the roots of a tree, -1 before the first; None where there is no tree.
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
        if len(self._specs) + len(self._asked) + len(self._doubtful) > self._limits.specs:
            raise LineFault(0, f"has more than {self._limits.specs:,} specs")
        if len(self._others) + self._below > self._limits.nodes:
            raise LineFault(0, f"has more than {self._limits.nodes:,} lines that are not specs")

    def environment(self) -> Environment:
        """Return what was read.

        Raises:
            LineFault: there is a text, and no spec in it.
        """
        specs, others = self._specs, self._others
        if not (specs and self._is_output):
            specs = [*specs, *self._asked]
        if others or self._is_output:
            others = [*others, *(each.text for each in self._doubtful)]
        else:
            specs = [*specs, *self._doubtful]
        specs.sort(key=lambda each: each.line)
        notes = [*self._notes(others)]
        if not specs and (others or self._is_output):
            raise LineFault(0, "; ".join(("there is no spec in this text", *notes)))
        return Environment(tuple(specs), (*notes, *legacy_notes(specs)), others=tuple(others))

    def _notes(self, others: list[str]) -> Iterator[str]:
        """Yield what was left aside, and why."""
        if self._below:
            are = "lines are dependencies" if self._below > 1 else "line is a dependency"
            yield f"{self._below:,} {are} of other specs in a tree, and skipped"
        if self._commands:
            yield f"skipped: {_some(self._commands, '; ')}"
        if others:
            are = "lines are not specs" if len(others) > 1 else "line is not a spec"
            yield f"{len(others):,} {are}: {_some(map(_short, others), ', ')}"
        if self._headings:
            yield f"headings that are not applied: {_some(map(_short, self._headings), ', ')}"

    def _is_heading(self, words: str) -> bool:
        """Return whether a line stands above what Spack printed, and keep what it says."""
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
        """Begin what stands below a heading."""
        self._is_output, self._is_input = True, False
        self._around, self._group, self._margin = "", "", None

    def _begin_section(self, arch: str, compilers: str) -> None:
        """Begin what stands below a heading of an architecture and compilers, or of a group."""
        self._begin()
        self._margin = -1
        if arch == _ROOT_SPECS:
            self._group = compilers if compilers != _DEFAULT_GROUP else ""
            return
        around = []
        for part, asked in ((arch, f"arch={arch}"), (compilers, f"%{compilers.lstrip('%')}")):
            if part not in _NOTHING and _asks(asked):
                around.append(asked)
            elif part not in _NOTHING:
                self._headings[part] = None
        self._around = " ".join(around)

    def _read(self, number: int, line: str) -> None:
        """Keep the specs of a line, or the line itself."""
        if len(line) > LONGEST_LINE:
            self._others.append(line)
            return
        found = pasted_line(line, self._known, self._around)
        if self._margin is not None:
            blanks = len(line) - len(line.lstrip())
            self._margin = blanks if self._margin < 0 else self._margin
            if blanks - self._margin >= _INDENTED:
                found = tuple(replace(each, is_dependency=True) for each in found)
        self._is_output |= any(each.is_printed for each in found)
        read = [(each, self._user_spec(each, number)) for each in found]
        counted = [each for each in read if each[0].is_dependency or self._counts(*each)]
        is_typed = not any(each.is_printed or each.is_certain or each.left_out for each in found)
        if len(counted) < len(read):
            (_, spec), *others = read
            if is_typed and not others and self._is_written(spec):
                self._doubtful.append(spec)
            else:
                self._others.append(line.strip())
        if len(counted) == len(read) or not is_typed:
            for each in counted:
                self._keep(*each)

    def _is_written(self, spec: UserSpec) -> bool:
        """Return whether somebody wrote a spec: a name, or a known name and a mistake."""
        attempt = _ATTEMPT.match(spec.text)
        if spec.error is not None:
            return attempt is not None and self._known.is_package(attempt[1])
        return _NAME.fullmatch(spec.text) is not None

    def _keep(self, found: PastedSpec, spec: UserSpec) -> None:
        """Keep a spec that counts, and a dependency as a number."""
        if found.is_dependency:
            self._below += 1
        elif found.left_out:
            self._asked.append(spec)
            self._commands[found.left_out] = None
        else:
            # Spack prints a binary among the roots and with its compiler, and in a log again.
            is_copied = found.is_printed or found.is_certain
            dag_hash = _HASH.search(spec.text) if is_copied else None
            if dag_hash is None or dag_hash[0] not in self._hashes:
                self._specs.append(spec)
            self._hashes |= {dag_hash[0]} if dag_hash else set()

    def _user_spec(self, found: PastedSpec, line: int) -> UserSpec:
        if found.external:
            return UserSpec(found.spec, line, external=found.external, is_buildable=False)
        spec = user_spec(found.spec, line, self._limits, self._parse)
        return replace(spec, group=self._group)

    def _counts(self, found: PastedSpec, spec: UserSpec) -> bool:
        """Return whether a spec is one, whatever stands around it."""
        asked = spec.query
        if asked is None or found.external:
            return found.external != ""
        is_known = asked.name is not None and self._known.is_package(asked.name)
        is_known &= not has_options(asked)
        is_printed = found.is_printed and self._around is not None
        return found.is_certain or is_printed or is_known or is_visible(asked)


def _asks(text: str) -> bool:
    """Return whether a text constrains a spec, without a name of its own."""
    try:
        return parse_legacy_query(text).name is None
    except QuerySyntaxError:
        return False


def _some(texts: Iterable[str], separator: str) -> str:
    """Return the first of some texts, and how many others there are."""
    every = [*texts]
    more = f" and {len(every) - MOST_NAMED:,} more" if len(every) > MOST_NAMED else ""
    return f"{separator.join(every[:MOST_NAMED])}{more}"


def _short(text: str) -> str:
    """Return a text in quotes, its end left out if it is long."""
    return repr(text if len(text) <= LONGEST_NAMED else f"{text[: LONGEST_NAMED - 1]}…")
