"""Reads a list of specs, or the specs in other text, such as output of a terminal.

A line is a spec if it parses, and if it names a known package, has a sign of a spec such as `@` or
`%`, or was printed by Spack with a state or a hash. A note counts all other lines. If every line is
written as a spec, the text is a list, and unknown names count as well.
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
"""Maximum length of a line that is searched for specs."""

_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAME = re.compile(r"[\w.-]+|\*.*", re.ASCII)
_ATTEMPT = re.compile(r"([\w-]+)\s*[@+~%^=/]", re.ASCII)
"""The beginning of a line that is a spec with a mistake."""

# Headings of Spack's output: the architecture and compiler of the specs below (`cmd/__init__.py`).
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
"""Blanks before a dependency in trees of `spack find`."""


def read_list(text: str, limits: Limits, surroundings: Surroundings) -> Environment:
    """Return the specs of a list or other text, with notes on the other lines.

    Raises:
        LineFault: it has no specs, too many, or too many other lines.
    """
    reader = _PastedText(limits, surroundings)
    for number, line in _lines(text):
        reader.add(number, line)
    return reader.environment()


def user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line, with its error if it is not one."""
    spec = read_spec(text, line, limits.length, parse)
    return replace(spec, text=text, legacy=legacy_reading(spec.query) if spec.query else None)


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
        """Yield notes on the lines that are not specs."""
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
        """Reset the state for the lines below a heading."""
        self._is_output, self._is_input = True, False
        self._heading, self._group, self._margin = "", "", None

    def _begin_section(self, arch: str, compilers: str) -> None:
        """Apply a heading of an architecture and compilers, or of a group."""
        self._begin()
        self._margin = -1
        if arch == _ROOT_SPECS:
            self._group = compilers if compilers != _DEFAULT_GROUP else ""
            return
        constraints = []
        for part, constraint in ((arch, f"arch={arch}"), (compilers, f"%{compilers.lstrip('%')}")):
            if part not in _NOTHING and _is_constraint(constraint):
                constraints.append(constraint)
            elif part not in _NOTHING:
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
        """Add a spec, and count a dependency."""
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
        spec = user_spec(pasted.spec, line, self._limits, self._parse)
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


def _is_constraint(text: str) -> bool:
    """Return whether a text is a spec without a name."""
    try:
        return parse_legacy_query(text).name is None
    except QuerySyntaxError:
        return False


def _listed(texts: Iterable[str], separator: str) -> str:
    """Return the first texts and the number of the others."""
    all_texts = [*texts]
    more = f" and {len(all_texts) - MOST_NAMED:,} more" if len(all_texts) > MOST_NAMED else ""
    return f"{separator.join(all_texts[:MOST_NAMED])}{more}"


def _short(text: str) -> str:
    """Return a text in quotes, shortened if it is long."""
    return repr(text if len(text) <= LONGEST_NAMED else f"{text[: LONGEST_NAMED - 1]}…")
