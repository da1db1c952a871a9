"""Collects the specs of a text: a list, the output of a terminal, a log or a README.

A line is a spec if it parses, and if it names a known package, has a sign of a spec
such as `@` or `%`, or was printed by Spack with a state or a hash. A note counts all
other lines. If every line is written as a spec, the text is a list, and unknown names
count as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import StringIO

from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UserSpec,
)
from spack_cache_db.environments.pasted.commands import SHELL_COMMANDS
from spack_cache_db.environments.pasted.lines import (
    has_options,
    is_visible,
    pasted_line,
)
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.environments.pasted.quotes import plain
from spack_cache_db.environments.user_specs import legacy_notes, read_user_spec
from spack_cache_db.errors import LineFault, cut, first_of
from spack_cache_db.spack.legacy import parse_legacy_query
from spack_cache_db.spack.lexer import QuerySyntaxError

LONGEST_LINE = 10_000
"""Maximum length of a line that is searched for specs."""
MOST_NAMED = 3
"""Maximum of lines, commands or headings that a note names."""
LONGEST_NAMED = 60
"""Maximum of characters of a line in a note."""

_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAME = re.compile(r"[\w.-]+|\*.*", re.ASCII)
_ATTEMPT = re.compile(r"([\w-]+)\s*[@+~%^=/]", re.ASCII)
"""The beginning of a line that is a spec with a mistake."""

# Headings of Spack's output: the architecture and compilers of the specs below. Spack
# fills them with dashes up to 64 columns, so a longer one has no dash at its end
# (`llnl/util/tty/__init__.py`, `hline`).
_HEADING = re.compile(r"-{2,} (?P<text>\S.*?)(?: -*)?")
_SECTION = re.compile(r"(?P<arch>[^/]+?) / (?P<compilers>\S.*)")
_MODULES = re.compile(r"(?:-{2,} )?[/~$]\S*(?::| -+)")
"""The heading of a folder in `module avail`, also with `--terse`."""
_RULE = re.compile(r"[-=]{4,}")
_INPUT = ("Input spec", "Normalized")
_TITLES = (*_INPUT, "Concretized")
_INSTALLING = re.compile(r"==> Installing \S+-[a-z2-7]{32}(?: .*)?")
_NO_COMPILERS = ("no arch", "no compiler", "no compilers")
_INDENTED = 4
"""Blanks before a dependency in trees of `spack find`."""
_SHORTEST_HASH = 7


def read_text(
    text: str,
    limits: Limits,
    surroundings: Surroundings,
    *,
    is_beside_output: bool = False,
) -> Environment:
    """Return the specs of a text; `LineFault` if it has none, but other lines.

    `is_beside_output` is for the lines around JSON that Spack printed: they need no
    spec.
    """
    reader = _TextReader(limits, surroundings, is_beside_output=is_beside_output)
    for number, line in _lines(text):
        reader.add(number, line)
    return reader.environment()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, counted from 1; a backslash at the end joins two
    lines.
    """
    joined = ""
    start = 0
    for number, raw in enumerate(StringIO(text), start=1):
        line = raw.rstrip()
        start = start or number
        if line.endswith("\\") and len(joined) < LONGEST_LINE:
            joined += line[:-1]
            continue
        yield start, plain(joined + line)
        joined = ""
        start = 0
    if joined:
        yield start, plain(joined)


class _TextReader:
    """Collects the specs of a text line by line."""

    def __init__(
        self, limits: Limits, surroundings: Surroundings, *, is_beside_output: bool
    ) -> None:
        self._limits = limits
        self._is_beside_output = is_beside_output
        self._known = surroundings.known
        self._parse = surroundings.parse
        self._specs: list[UserSpec] = []
        # Specs of unknown packages, or with errors: they count only in a list.
        self._doubtful: list[UserSpec] = []
        # Arguments of commands: they do not count if Spack's output follows.
        self._arguments: list[UserSpec] = []
        self._others: list[str] = []
        self._dependency_count = 0
        self._commands: dict[str, None] = {}
        self._readings: dict[str, None] = {}
        self._unread_headings: dict[str, None] = {}
        self._printed_hashes: defaultdict[str, list[str]] = defaultdict(list)
        self._is_output = is_beside_output
        # Constraints of the last heading on the specs below; None outside Spack's
        # output.
        self._heading: str | None = None
        self._group = ""
        # Blanks before the roots of a tree, -1 before the first root; None outside a
        # tree.
        self._margin: int | None = None
        self._is_module_list = False
        # Whether the next indented lines belong to a message.
        self._is_message = False
        self._is_input = False

    def add(self, number: int, line: str) -> None:
        """Read the next line."""
        words = line.strip()
        if not words:
            # Below a blank line, `spack uninstall` prints an indented list.
            self._is_message = False
            return
        if self._is_message and line.startswith("  ") and not _HEADING.fullmatch(words):
            return
        self._is_message = False
        if self._is_heading(words):
            return
        line = _COMMENT.sub("", line).rstrip()
        if line and not self._is_input:
            self._read(number, line)
        if (
            len(self._specs) + len(self._arguments) + len(self._doubtful)
            > self._limits.specs
        ):
            raise LineFault(0, f"has more than {self._limits.specs:,} specs")
        if len(self._others) + self._dependency_count > self._limits.nodes:
            most = f"{self._limits.nodes:,} lines that are not specs"
            raise LineFault(0, f"has more than {most}")

    def environment(self) -> Environment:
        """Return the specs of the text; `LineFault` if it has none, but other lines."""
        specs = list(self._specs)
        other_lines = list(self._others)
        # If Spack's output follows a command, the output has the specs.
        is_in_output = self._is_output and (specs or self._is_beside_output)
        if not is_in_output:
            specs += self._arguments
        # Names of unknown packages count only if all other lines are specs as well.
        if other_lines or self._is_output:
            other_lines += [spec.text for spec in self._doubtful]
        else:
            specs += self._doubtful
        specs.sort(key=lambda spec: spec.line)
        notes = list(self._notes(other_lines))
        is_empty = not specs and (other_lines or self._is_output)
        if is_empty and not self._is_beside_output:
            raise LineFault(0, "; ".join(("there is no spec in this text", *notes)))
        return Environment(
            tuple(specs), (*notes, *legacy_notes(specs)), others=tuple(other_lines)
        )

    def _notes(self, other_lines: list[str]) -> Iterator[str]:
        count = self._dependency_count
        if count:
            are = "lines are dependencies" if count > 1 else "line is a dependency"
            yield f"{count:,} {are} of other specs in a tree, and skipped"
        if self._commands:
            yield f"skipped: {first_of(list(self._commands), MOST_NAMED, '; ')}"
        if self._readings:
            yield first_of(list(self._readings), MOST_NAMED, "; ")
        if other_lines:
            are = (
                "lines are not specs" if len(other_lines) > 1 else "line is not a spec"
            )
            yield f"{len(other_lines):,} {are}: {_quoted(other_lines)}"
        if self._unread_headings:
            names = _quoted(self._unread_headings)
            yield f"headings that are not applied: {names}"

    def _is_heading(self, words: str) -> bool:
        """Return whether a line is a heading or message of Spack's, and apply it."""
        heading = _HEADING.fullmatch(words)
        if _MODULES.fullmatch(words):
            self._begin()
            self._heading = None
            self._is_module_list = True
        elif heading is not None:
            self._begin_section(heading["text"].rstrip("- "))
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
        """End the section before; a heading that cannot be read ends it as well."""
        self._is_output = True
        self._is_input = False
        self._is_module_list = False
        self._heading = ""
        self._group = ""
        self._margin = None

    def _begin_section(self, heading: str) -> None:
        """Apply a heading of an architecture and compilers, or of a group."""
        self._begin()
        section = _SECTION.fullmatch(heading)
        if section is None:
            self._unread_headings[heading] = None
            return
        arch = section["arch"]
        compilers = section["compilers"]
        self._margin = -1
        if arch == "root specs":
            self._group = compilers if compilers != "default" else ""
            return
        constraints = []
        named = {arch: f"arch={arch}", compilers: f"%{compilers.lstrip('%')}"}
        for part, constraint in named.items():
            if part in _NO_COMPILERS:
                continue
            if _is_constraint(constraint):
                constraints.append(constraint)
            else:
                self._unread_headings[part] = None
        self._heading = " ".join(constraints)

    def _read(self, number: int, line: str) -> None:
        """Add the specs of a line, or the line as one that is not a spec."""
        if len(line) > LONGEST_LINE:
            self._others.append(line)
            return
        pasted_specs = pasted_line(
            line, self._known, self._heading, is_module_list=self._is_module_list
        )
        if self._is_indented(line):
            pasted_specs = tuple(
                replace(pasted, is_dependency=True) for pasted in pasted_specs
            )
        self._is_output |= any(pasted.is_printed for pasted in pasted_specs)
        # A command without specs, such as `spack find`.
        if (
            len(pasted_specs) == 1
            and pasted_specs[0].left_out
            and not pasted_specs[0].spec
        ):
            self._commands[pasted_specs[0].left_out] = None
            return
        # Separate the specs that count from other words.
        valid: list[tuple[PastedSpec, UserSpec]] = []
        invalid: list[tuple[PastedSpec, UserSpec]] = []
        for pasted in pasted_specs:
            spec = self._user_spec(pasted, number)
            if pasted.is_dependency or self._counts(pasted, spec):
                valid.append((pasted, spec))
            else:
                invalid.append((pasted, spec))
        # A line that was typed by a person, neither printed nor a command, is a spec as
        # a whole.
        is_typed = not any(
            pasted.is_printed or pasted.is_certain or pasted.left_out
            for pasted in pasted_specs
        )
        if invalid and is_typed:
            self._add_doubtful(line, [spec for _, spec in invalid], len(valid))
            return
        if invalid and valid:
            self._others += [pasted.spec for pasted, _ in invalid]
        elif invalid:
            self._others.append(line.strip())
        for pasted, spec in valid:
            self._add_spec(pasted, spec)

    def _is_indented(self, line: str) -> bool:
        """Return whether a line is below another spec in a tree; the first line is a
        root.
        """
        if self._margin is None:
            return False
        blanks = len(line) - len(line.lstrip())
        if self._margin < 0:
            self._margin = blanks
        return blanks - self._margin >= _INDENTED

    def _add_doubtful(
        self, line: str, invalid: list[UserSpec], valid_count: int
    ) -> None:
        """Add a typed line that may be a spec of an unknown package, or is not a
        spec.
        """
        if len(invalid) == 1 and not valid_count and self._is_written(invalid[0]):
            self._doubtful.append(invalid[0])
        else:
            self._others.append(line.strip())

    def _is_written(self, spec: UserSpec) -> bool:
        """Return whether a line is written as a spec: a name, or a known name and a
        mistake.
        """
        if spec.error is not None:
            attempt = _ATTEMPT.match(spec.text)
            return attempt is not None and self._known.is_package(attempt[1])
        return _NAME.fullmatch(spec.text) is not None

    def _add_spec(self, pasted: PastedSpec, spec: UserSpec) -> None:
        if pasted.is_dependency:
            self._dependency_count += 1
            return
        if pasted.note:
            self._readings[pasted.note] = None
        if pasted.left_out:
            self._arguments.append(spec)
            self._commands[pasted.left_out] = None
            return
        # Spack may print a binary twice: among the roots and below its compiler, or in
        # a log.
        if not self._was_printed(pasted.hash):
            self._specs.append(spec)

    def _was_printed(self, dag_hash: str) -> bool:
        """Return whether a hash was printed before, whole or in part."""
        if len(dag_hash) < _SHORTEST_HASH:
            return False
        same_start = self._printed_hashes[dag_hash[:_SHORTEST_HASH]]
        for other in same_start:
            if other.startswith(dag_hash) or dag_hash.startswith(other):
                return True
        same_start.append(dag_hash)
        return False

    def _user_spec(self, pasted: PastedSpec, line: int) -> UserSpec:
        if pasted.external:
            return UserSpec(
                pasted.spec, line, external=pasted.external, is_buildable=False
            )
        spec = read_user_spec(pasted.spec, line, self._limits, self._parse)
        return replace(spec, group=self._group)

    def _counts(self, pasted: PastedSpec, spec: UserSpec) -> bool:
        """Return whether a spec counts in any text."""
        query = spec.query
        if pasted.external:
            return True
        if query is None:
            return False
        is_known = query.name is not None and self._known.is_package(query.name)
        if query.name in SHELL_COMMANDS and not (is_known or pasted.is_certain):
            return False
        is_printed = pasted.is_printed and self._heading is not None
        return (
            pasted.is_certain
            or is_printed
            or (is_known and not has_options(query))
            or is_visible(query)
        )


def _is_constraint(text: str) -> bool:
    """Return whether a text is a spec without a name, as a part of a heading is."""
    with suppress(QuerySyntaxError):
        return parse_legacy_query(text).name is None
    return False


def _quoted(texts: Iterable[str]) -> str:
    """Return the first texts in quotes, each cut, and the number of the others."""
    quoted = [repr(cut(text, LONGEST_NAMED)) for text in texts]
    return first_of(quoted, MOST_NAMED)
