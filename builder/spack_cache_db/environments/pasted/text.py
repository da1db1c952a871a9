"""Collects the specs of a text: a list, the output of a terminal, a log or a README.

    $ spack find
    -- linux-debian12-zen3 / gcc@12 ---------------------------------
    hdf5@1.14.5  zlib@1.3.1
    ==> 2 installed packages

has the specs `hdf5@1.14.5` and `zlib@1.3.1`, both with the architecture and compiler of
the heading. A line is a spec if it parses, and if it names a known package, has a sign
of a spec such as `@` or `%`, or was printed by Spack with a state or a hash. A note
counts all other lines. If every line is written as a spec, the text is a list, and
unknown names count as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import StringIO
from typing import NamedTuple

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
"""A comment: a `#` at the beginning or behind a blank, as in a shell."""
_NAME = re.compile(r"[\w.-]+|\*.*", re.ASCII)
"""A text that may be the name of a package, or begins with `*`, which is any name."""
_ATTEMPT = re.compile(r"([\w-]+)\s*[@+~%^=/]", re.ASCII)
"""The beginning of a line that is a spec with a mistake: a name and a sign."""

_HEADING = re.compile(r"-{2,} (?P<text>\S.*?)(?: -*)?")
"""A heading of Spack's output: the architecture and compilers of the specs below.

Spack fills it with dashes up to 64 columns, so a longer one has no dash at its end
(`llnl/util/tty/__init__.py`, `hline`).
"""
_SECTION = re.compile(r"(?P<arch>[^/]+?) / (?P<compilers>\S.*)")
"""The text of such a heading, `linux-debian12-zen3 / gcc@12`."""
_MODULES = re.compile(r"(?:-{2,} )?[/~$]\S*(?::| -+)")
"""The heading of a folder in `module avail`, also with `--terse`."""
_RULE = re.compile(r"[-=]{4,}")
"""A line of dashes, such as that below a title of `spack spec`."""
_INPUT_TITLES = ("Input spec", "Normalized")
_TITLES = (*_INPUT_TITLES, "Concretized")
"""The titles of `spack spec`; only below the last one are results."""
_INSTALLING = re.compile(r"==> Installing \S+-[a-z2-7]{32}(?: .*)?")
"""The message of an installation, with name, version and hash of a spec."""
_NO_CONSTRAINT = ("no arch", "no compiler", "no compilers")
"""The parts of a heading that constrain nothing."""
_INDENTED = 4
"""Blanks before a dependency in trees of `spack find`."""
_BEFORE_THE_ROOTS = -1
"""The margin of a tree whose first line is not read yet."""
_SHORTEST_HASH = 7
"""Characters of a hash if Spack prints only its beginning."""


def read_text(
    text: str,
    limits: Limits,
    surroundings: Surroundings,
    *,
    is_beside_output: bool = False,
) -> Environment:
    """Return the specs of a text.

    Args:
        text: the text.
        limits: the maximum numbers of specs and of other lines.
        surroundings: the parser of specs, and the known packages and hashes.
        is_beside_output: whether the text is the lines around JSON that Spack printed,
            which may have no spec.

    Raises:
        LineFault: it has other lines and no spec, or too many lines.
    """
    reader = _TextReader(limits, surroundings, is_beside_output=is_beside_output)
    for number, line in _lines(text):
        reader.add(number, line)
    return reader.environment()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, counted from 1, without terminal sequences.

    A backslash at the end joins a line with the next one.
    """
    joined = ""
    # The number of the first joined line; 0 if there is none.
    start = 0
    for number, raw in enumerate(StringIO(text), start=1):
        line = raw.rstrip()
        if start == 0:
            start = number
        if line.endswith("\\") and len(joined) < LONGEST_LINE:
            joined += line[:-1]
            continue
        yield start, plain(joined + line)
        joined = ""
        start = 0
    # The last line may end in a backslash.
    if joined:
        yield start, plain(joined)


@dataclass(slots=True)
class _Section:
    """The lines below a heading of Spack's output.

    Attributes:
        heading: the constraints of the heading on its specs; empty for none, None
            outside Spack's output.
        group: the group of an environment whose roots are listed.
        margin: the blanks before the roots of a tree; None outside a tree.
        is_module_list: whether the lines are names of modules.
        is_input: whether the lines repeat the specs of a command, and do not count.
    """

    heading: str | None = None
    group: str = ""
    margin: int | None = None
    is_module_list: bool = False
    is_input: bool = False


class _Candidate(NamedTuple):
    """A part of a line that may be a spec, and how it reads as one."""

    pasted: PastedSpec
    spec: UserSpec


class _TextReader:
    """Collects the specs of a text line by line."""

    def __init__(
        self, limits: Limits, surroundings: Surroundings, *, is_beside_output: bool
    ) -> None:
        self._limits = limits
        self._is_beside_output = is_beside_output
        self._known = surroundings.known
        self._parse = surroundings.parse

        # Where the reader is in the text: below which heading, whether Spack printed
        # any line so far, and whether the last line is a message (`==> …`).
        self._section = _Section()
        self._is_output = is_beside_output
        self._is_message = False

        # The specs that count.
        self._specs: list[UserSpec] = []
        # Specs of unknown packages or with errors: they count only in a list of specs.
        self._doubtful: list[UserSpec] = []
        # Arguments of commands: they do not count if the output of the command follows.
        self._arguments: list[UserSpec] = []

        # What is not a spec. Dictionaries keep the order and drop repetitions.
        self._others: list[str] = []
        self._dependency_count = 0
        self._commands: dict[str, None] = {}
        # How versions of other package managers were read.
        self._readings: dict[str, None] = {}
        self._unread_headings: dict[str, None] = {}
        # The hashes that Spack printed, by their first seven characters.
        self._printed_hashes: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, number: int, line: str) -> None:
        """Read the next line."""
        words = line.strip()
        if not words:
            # Below a blank line, `spack uninstall` prints an indented list.
            self._is_message = False
            return

        # A message goes on in indented lines.
        is_heading = _HEADING.fullmatch(words) is not None
        if self._is_message and line.startswith("  ") and not is_heading:
            return
        self._is_message = False

        # A heading has no specs.
        if self._apply_heading(words):
            return
        line = _COMMENT.sub("", line).rstrip()
        if line and not self._section.is_input:
            self._read(number, line)
        self._require_few()

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
        notes += legacy_notes(specs)
        return Environment(tuple(specs), tuple(notes), others=tuple(other_lines))

    def _require_few(self) -> None:
        """Raise `LineFault` if there are too many specs or other lines."""
        spec_count = len(self._specs) + len(self._arguments) + len(self._doubtful)
        if spec_count > self._limits.specs:
            raise LineFault(0, f"has more than {self._limits.specs:,} specs")
        if len(self._others) + self._dependency_count > self._limits.nodes:
            most = f"{self._limits.nodes:,} lines that are not specs"
            raise LineFault(0, f"has more than {most}")

    def _notes(self, other_lines: list[str]) -> Iterator[str]:
        """Yield a note on each kind of words that were skipped."""
        count = self._dependency_count
        if count > 0:
            are = "lines are dependencies" if count > 1 else "line is a dependency"
            yield f"{count:,} {are} of other specs in a tree, and skipped"
        if self._commands:
            commands = first_of(list(self._commands), MOST_NAMED, "; ")
            yield f"skipped: {commands}"
        if self._readings:
            yield first_of(list(self._readings), MOST_NAMED, "; ")
        if other_lines:
            count = len(other_lines)
            are = "lines are not specs" if count > 1 else "line is not a spec"
            yield f"{count:,} {are}: {_quoted(other_lines)}"
        if self._unread_headings:
            names = _quoted(self._unread_headings)
            yield f"headings that are not applied: {names}"

    def _apply_heading(self, words: str) -> bool:
        """Begin a section if a line is a heading or message of Spack's.

        Returns whether the line is done: it has no spec.
        """
        # The heading of a folder in `module avail`.
        if _MODULES.fullmatch(words):
            self._begin(_Section(is_module_list=True))
            return True
        # `-- linux-debian12-zen3 / gcc@12 ----`
        heading = _HEADING.fullmatch(words)
        if heading is not None:
            self._begin(self._section_below(heading["text"].rstrip("- ")))
            return True
        # A message ends a section. That of an installation names a spec.
        if words.startswith("==>"):
            self._begin(_Section(heading=""))
            self._is_message = True
            return not _INSTALLING.fullmatch(words)
        # A title of `spack spec`, and the line of dashes below it.
        if words in _TITLES:
            self._begin(_Section(heading="", is_input=words in _INPUT_TITLES))
            return True
        return _RULE.fullmatch(words) is not None

    def _begin(self, section: _Section) -> None:
        """Begin a section, which only output has."""
        self._section = section
        self._is_output = True

    def _section_below(self, heading: str) -> _Section:
        """Return the section of a heading: architecture and compilers, or a group.

        `linux-debian12-zen3 / gcc@12` has `arch=linux-debian12-zen3 %gcc@12`, and
        `root specs / tools` the group `tools`.
        """
        parts = _SECTION.fullmatch(heading)
        if parts is None:
            # A heading that cannot be read ends the section before as well.
            self._unread_headings[heading] = None
            return _Section(heading="")

        # The roots of an environment, by group.
        arch = parts["arch"]
        compilers = parts["compilers"]
        if arch == "root specs":
            group = compilers if compilers != "default" else ""
            return _Section(heading="", group=group, margin=_BEFORE_THE_ROOTS)

        # The constraints of each part that is a constraint.
        constraints = []
        constraint_of = {arch: f"arch={arch}", compilers: f"%{compilers.lstrip('%')}"}
        for part, constraint in constraint_of.items():
            if part in _NO_CONSTRAINT:
                continue
            if _is_constraint(constraint):
                constraints.append(constraint)
            else:
                self._unread_headings[part] = None
        return _Section(heading=" ".join(constraints), margin=_BEFORE_THE_ROOTS)

    def _read(self, number: int, line: str) -> None:
        """Add the specs of a line, or the line as one that is not a spec."""
        if len(line) > LONGEST_LINE:
            self._others.append(line)
            return
        pasted_specs = self._pasted_specs(line)
        if any(pasted.is_printed for pasted in pasted_specs):
            self._is_output = True

        # A command without specs, such as `spack find`.
        only = pasted_specs[0] if len(pasted_specs) == 1 else None
        if only is not None and only.left_out and not only.spec:
            self._commands[only.left_out] = None
            return

        # Separate the specs that count from other words.
        valid: list[_Candidate] = []
        invalid: list[_Candidate] = []
        for pasted in pasted_specs:
            spec = self._user_spec(pasted, number)
            if pasted.is_dependency or self._counts(pasted, spec):
                valid.append(_Candidate(pasted, spec))
            else:
                invalid.append(_Candidate(pasted, spec))

        # A line that was typed by a person, neither printed nor a command, is a spec as
        # a whole, or none.
        is_typed = not any(
            pasted.is_printed or pasted.is_certain or pasted.left_out
            for pasted in pasted_specs
        )
        if invalid and is_typed:
            alone = invalid[0].spec if len(pasted_specs) == 1 else None
            if alone is not None and self._is_written_as_spec(alone):
                self._doubtful.append(alone)
            else:
                self._others.append(line.strip())
            return

        # Of other lines, the specs count, and the words between them are named.
        if invalid and not valid:
            self._others.append(line.strip())
            return
        self._others += [candidate.pasted.spec for candidate in invalid]
        for candidate in valid:
            self._add_spec(candidate)

    def _pasted_specs(self, line: str) -> tuple[PastedSpec, ...]:
        """Return the parts of a line that may be specs.

        In a tree, those of an indented line are dependencies.
        """
        section = self._section
        pasted_specs = pasted_line(
            line, self._known, section.heading, is_module_list=section.is_module_list
        )
        if section.margin is None:
            return pasted_specs
        # The first line of a tree is a root.
        blanks = len(line) - len(line.lstrip())
        if section.margin == _BEFORE_THE_ROOTS:
            section.margin = blanks
        if blanks - section.margin < _INDENTED:
            return pasted_specs
        return tuple(replace(pasted, is_dependency=True) for pasted in pasted_specs)

    def _user_spec(self, pasted: PastedSpec, line: int) -> UserSpec:
        # An external is not parsed, because it needs no binary.
        if pasted.external:
            return UserSpec(
                pasted.spec, line, external=pasted.external, is_buildable=False
            )
        spec = read_user_spec(pasted.spec, line, self._limits, self._parse)
        return replace(spec, group=self._section.group)

    def _counts(self, pasted: PastedSpec, spec: UserSpec) -> bool:
        """Return whether a spec counts in any text, not only in a list of specs."""
        query = spec.query
        if pasted.external:
            return True
        if query is None:
            return False
        is_known = query.name is not None and self._known.is_package(query.name)
        # In `cd /project`, the path parses as a hash.
        is_shell_command = query.name in SHELL_COMMANDS
        if is_shell_command and not is_known and not pasted.is_certain:
            return False
        # It has a sign of a spec, or stands where Spack prints specs.
        if pasted.is_certain or is_visible(query):
            return True
        if pasted.is_printed and self._section.heading is not None:
            return True
        # Else it is a known name, but not that of a command: `gcc --version`.
        return is_known and not has_options(query)

    def _is_written_as_spec(self, spec: UserSpec) -> bool:
        """Return whether a line is written as a spec, though it does not count.

        It is an unknown name, or a known name with a mistake behind it.
        """
        if spec.error is None:
            return _NAME.fullmatch(spec.text) is not None
        attempt = _ATTEMPT.match(spec.text)
        return attempt is not None and self._known.is_package(attempt[1])

    def _add_spec(self, candidate: _Candidate) -> None:
        """Add a spec; a dependency is only counted."""
        pasted = candidate.pasted
        if pasted.is_dependency:
            self._dependency_count += 1
            return
        if pasted.note:
            self._readings[pasted.note] = None
        if pasted.left_out:
            self._arguments.append(candidate.spec)
            self._commands[pasted.left_out] = None
            return
        # Spack may print a binary twice: among the roots and below its compiler, or in
        # a log.
        if not self._was_printed(pasted.hash):
            self._specs.append(candidate.spec)

    def _was_printed(self, dag_hash: str) -> bool:
        """Return whether a hash was printed before, whole or in part, and record it."""
        if len(dag_hash) < _SHORTEST_HASH:
            return False
        same_start = self._printed_hashes[dag_hash[:_SHORTEST_HASH]]
        for other in same_start:
            if other.startswith(dag_hash) or dag_hash.startswith(other):
                return True
        same_start.append(dag_hash)
        return False


def _is_constraint(text: str) -> bool:
    """Return whether a text is a spec without a name, as a part of a heading is."""
    with suppress(QuerySyntaxError):
        return parse_legacy_query(text).name is None
    return False


def _quoted(texts: Iterable[str]) -> str:
    """Return the first texts in quotes, each cut, and the number of the others."""
    quoted = [repr(cut(text, LONGEST_NAMED)) for text in texts]
    return first_of(quoted, MOST_NAMED)
