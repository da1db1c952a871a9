"""Finds specs in text that people copy from a terminal, a forum, a log or a list of modules.

`pasted_spec` reads a text that is one spec, `pasted_line` a line of a longer text. Both read
commands (`$ spack install --fresh -j 8 hdf5+mpi`), quotes and backticks, output of Spack 0.17 to
1.2 (`[+]  2feova4  zlib@1.3`), installation prefixes, and names of modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError, tokens
from spack_cache_db.spack.normal_forms import PATCH_PRINTED
from spack_cache_db.spack.parser import parse_legacy_query

_COMMANDS = """
add build-env buildcache change deconcretize dependencies dependents deprecate dev-build develop
diff edit extensions fetch find graph info install load location mark patch remove restage rm solve
spec stage test test-env undevelop uninstall unload verify versions
"""
COMMANDS = frozenset(_COMMANDS.split())
"""The commands of Spack that take a spec."""

LONGEST = 10_000
"""Maximum length of a text that is searched for a spec."""

_OF_TWO_WORDS = ("buildcache", "test", "verify")
_GLOBAL_VALUES = (
    "-C", "-D", "-c", "-e", "--color", "--config", "--config-scope", "--env-dir", "--env",
)  # fmt: skip
_LONG_VALUES = """
--add-repo --cover --dev-path --file --format --key --log-file --log-format --mirror --mirror-name
--mirror-url --name --only --scope --source-path --tag --test --until --use-buildcache
"""
_VALUES = frozenset(_LONG_VALUES.split())
_SHORT_VALUES = {
    "buildcache": ("-k", "-m"),
    "dev-build": ("-d", "-u"),
    "install": ("-f", "-u"),
    "spec": ("-c",),
}
_ASKING = ("add", "change", "dev-build", "develop", "install", "load", "solve", "spec")
"""The commands whose argument is always a spec."""
_NUMBERED = ("-j", "-p", "--jobs", "--concurrent-packages")
"""Options that take a number, if one follows."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours and other terminal sequences (ECMA-48), and window titles."""
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
_SPAN = re.compile(r"`([^`]+)`|“([^“”]+)”|\u2018([^\u2018\u2019]+)\u2019|«([^«»]+)»")
_ITEM = re.compile(r"[-*•]\s+(?=[\w'\"`])")
"""A bullet of a YAML or Markdown list."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_END = re.compile(r"[|&;#]|\d?>|\\$|2>&1")
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")
_MODULE_COMMAND = re.compile(r"(?:.*?[$>%]\s+)?(?:module\s+(?:load|add)|ml(?:\s+load)?)\s+(?=\S)")

_HASH = r"(?:[a-z2-7]{32}|[a-z2-7]{7})"
_PREFIX = re.compile(r"[\w.+]-(?P<hash>[a-z2-7]{32})(?![\w-])")
_EXTERNAL = re.compile(rf"(?:\[.\]\s+)?(?P<prefix>/\S*) \(external (?P<name>[\w.+-]+-{_HASH})\)")
# Spack prints a state, a hash and, with `spack spec --types`, dependency types before a spec.
_LEAD = re.compile(
    r"\s*(?:(?P<state>\[[^\]]\]|(?<=\s)-)(?P<blanks>\s+))?"
    rf"(?:(?P<hash>{_HASH}|-{{32}}|-{{7}})(?P<gap>\s+)(?=[\[^\w]))?"
    r"(?P<types>\[[blrt ]{4}\]\s+)?"
)
_BODY = re.compile(r"""(?:"[^"]*"|'[^']*'|\S|\s(?!\s))*""")
_CONSTRAINT = re.compile(r"[@+~%^-]|[\w.-]+:?==?|/[a-z2-7]{7}$")
"""The beginning of a word that constrains the spec before it."""
_INDENTED = 5
"""Blanks between a hash and the name of a dependency, in trees of `spack find`."""
_EXTERNAL_STATE = "[e]"

# Names of Spack's modules: {name}/{version}-{compiler.name}-{compiler.version}, or a part of it,
# and seven characters of the hash (`modules/common.py`).
_MODULE = re.compile(r"\w[\w.+-]*(?:/[\w.+-]+)?")
_VERSION = re.compile(r"v?\d[\w.]*|develop|main|master|head|trunk|nightly|stable|latest")
_PRERELEASE = re.compile(r"(?:alpha|beta|rc)\d*")
_MODULE_MARK = re.compile(r"[(<][A-Za-z:,]+[>)]|\d+\)")
_LONGEST_MODULE = 200


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Tests whether a package has a name, and whether a binary's hash has a prefix; default any."""

    is_package: Callable[[str], bool] = lambda name: True
    is_hash: Callable[[str], bool] = lambda prefix: True


ANY_NAME = KnownNames()


@dataclass(frozen=True, slots=True)
class PastedSpec:
    """A spec from a text.

    Attributes:
        spec: the spec; empty if the text has none.
        left_out: the words that are not part of the spec, such as `install --fresh -j 8`.
        external: the prefix, if Spack printed that the spec is an external.
        is_dependency: whether it is below another spec in a tree.
        is_printed: whether Spack printed it, with a state or a hash.
        is_certain: whether it is a spec even if its name is unknown: it has a hash, or is the
            argument of a command that takes only specs.
    """

    spec: str
    left_out: str = ""
    external: str = ""
    is_dependency: bool = False
    is_printed: bool = False
    is_certain: bool = False

    def notes_on(self, text: str) -> tuple[str, ...]:
        """Return how a text was read; empty if the text is the spec."""
        if self.spec == text.strip():
            return ()
        left_out = f"; skipped: {self.left_out}" if self.left_out else ""
        return (f"read as {self.spec!r}{left_out}",)


def pasted_spec(text: str, known_names: KnownNames = ANY_NAME) -> PastedSpec:
    """Return the spec of a pasted text; `known_names` decides which words name modules."""
    if len(text) > LONGEST:
        return PastedSpec(text)
    text = re.sub(r"\\\s*\n\s*", " ", plain(text).strip())
    if span := _SPAN.search(text):
        text = next(filter(None, span.groups())).strip()
    text = unquoted(text)
    if pasted := _from_command(text) or _from_prefix(text):
        return pasted
    # A name and a version alone, such as `hdf5-1.14`, are words for the search.
    if (pasted := _from_module(text, known_names)) and (
        "/" in text or len(pasted.spec) < len(text)
    ):
        return pasted
    cells = _cells(f" {text}")
    if len(cells) == 1 and (cells[0].state or cells[0].hash):
        return cells[0].read("")
    return PastedSpec(_typed(text))


def pasted_line(
    line: str, known_names: KnownNames = ANY_NAME, heading: str | None = None
) -> tuple[PastedSpec, ...]:
    """Return the specs of a line of a longer text; a line that is not a spec is returned as one.

    Args:
        line: the line, without terminal sequences.
        known_names: decides which words name modules.
        heading: constraints from a heading of Spack's output, as a spec; None outside such output.
    """
    text = line.strip()
    span = _SPAN.search(text)
    before = text[: span.start()] if span else ""
    if span and (not before.strip("-*• ") or "spack " in span[0]):
        text = next(filter(None, span.groups())).strip()
    text = unquoted(text)
    if command := _from_command(text):
        return tuple(replace(command, spec=spec) for spec in separate_specs(command.spec))
    if text.startswith(("/", "[", "==>")) and (prefix := _from_prefix(text)):
        return (prefix,)
    if modules := _from_modules(text, known_names):
        return modules
    cells = _cells(line if text == line.strip() else text)
    if heading is not None or any(cell.state or cell.hash for cell in cells):
        return tuple(cell.read(heading or "") for cell in cells)
    return tuple(map(PastedSpec, separate_specs(_typed(text))))


def plain(text: str) -> str:
    """Return a text without terminal sequences, with blanks for tabs."""
    return _ESCAPE.sub("", text).expandtabs()


def _typed(text: str) -> str:
    """Return a text without its prompt, bullet and quotes."""
    mark = _PROMPT.match(text) or _ITEM.match(text)
    return unquoted(text[mark.end() :] if mark else text)


def unquoted(text: str) -> str:
    """Return a text without the quotes around it."""
    while len(text) > 1 and text[-1] == _QUOTES.get(text[0]) and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _from_command(text: str) -> PastedSpec | None:
    """Return the spec in a command line of Spack, None for other texts."""
    words = _WORD.findall(text)
    for start, word in enumerate(words):
        is_spack = word.rpartition("/")[2].lstrip("$>%`(") == "spack"
        # A folder or a user may be called `spack` as well.
        if is_spack and (pasted := _command(words[start + 1 :])):
            return pasted
    return None


def _command(words: list[str]) -> PastedSpec | None:
    """Return the spec in a command, which is the words after `spack`."""
    position = 0
    while position < len(words) and words[position][0] == "-":
        position += 1 + (words[position] in _GLOBAL_VALUES)
    if position >= len(words) or words[position] not in COMMANDS:
        return None
    name = words[position]
    position += 1 + (name in _OF_TWO_WORDS)
    options = words[:position]
    spec: list[str] = []
    while position < len(words) and not _END.match(words[position]):
        length = _option(name, words[position:], is_first=not spec)
        options += words[position : position + length]
        spec += [] if length else [unquoted(words[position])]
        position += length or 1
    text = " ".join(spec).rstrip(".,;?!")
    return PastedSpec(text, " ".join(options), is_certain=name in _ASKING)


def _option(command: str, words: list[str], *, is_first: bool) -> int:
    """Return the number of words of an option with its value; 0 for a part of a spec."""
    option, *following = words
    is_long = option.startswith("--") or len(option) == 2 or option[1:3].isdigit()
    if option[0] != "-" or not (is_first or is_long):
        return 0
    if not following or "=" in option:
        return 1
    if option in _NUMBERED:
        return 1 + following[0].isdigit()
    return 1 + (option in _VALUES or option in _SHORT_VALUES.get(command, ()))


def _from_prefix(text: str) -> PastedSpec | None:
    """Return the spec of an installation prefix, or of a message that names one."""
    if external := _EXTERNAL.fullmatch(text):
        pasted = _from_module(external["name"], ANY_NAME) or PastedSpec(external["name"])
        return replace(pasted, external=external["prefix"])
    prefix = _PREFIX.search(text)
    return PastedSpec(f"/{prefix['hash']}", is_certain=True) if prefix else None


def _from_modules(text: str, known_names: KnownNames) -> tuple[PastedSpec, ...]:
    """Return the specs of a line in which every word is a module; empty for other lines."""
    command = _MODULE_COMMAND.match(text)
    words = text[command.end() if command else 0 :].split()
    modules = [
        _from_module(word, known_names) for word in words if not _MODULE_MARK.fullmatch(word)
    ]
    return tuple(filter(None, modules)) if all(modules) else ()


def _from_module(text: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a module: its hash if that is known, else name and version."""
    if len(text) > _LONGEST_MODULE or not _MODULE.fullmatch(text):
        return None
    name, slash, details = text.partition("/")
    if slash:
        return _module_spec(name, details.split("-"), known_names)
    words = name.split("-")
    starts = [start for start, word in enumerate(words) if start and _VERSION.fullmatch(word)]
    names = ["-".join(words[:start]) for start in starts] if "." in text else []
    index = next((index for index, name in enumerate(names) if known_names.is_package(name)), 0)
    return _module_spec(names[index], words[starts[index] :], known_names) if names else None


def _module_spec(name: str, parts: list[str], known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a package's module; its parts are version, compiler, options and hash."""
    version, *suffixes = parts
    dag_hash = suffixes[-1] if suffixes and re.fullmatch(_HASH, suffixes[-1]) else ""
    has_compiler = any(_VERSION.fullmatch(part) or part == "none" for part in suffixes[1:])
    is_hash = not suffixes and re.fullmatch("[a-z2-7]+", version)
    if (
        is_hash
        or not _VERSION.fullmatch(version)
        or not (has_compiler or known_names.is_package(name))
    ):
        return None
    if dag_hash and known_names.is_hash(dag_hash):
        return PastedSpec(f"{name}/{dag_hash}", is_certain=True)
    if suffixes and _PRERELEASE.fullmatch(suffixes[0]):
        version = f"{version}-{suffixes[0]}"
    return PastedSpec(f"{name}@{version}", is_certain=True)


class _Cell(NamedTuple):
    """A spec in a line that Spack printed, with the state of its installation, such as `[+]`.

    The hash is dashes if Spack does not know it yet. A `^` or blanks make it a dependency.
    """

    state: str
    hash: str
    is_below: bool
    text: str

    def read(self, heading: str) -> PastedSpec:
        """Return the spec with the constraints of a heading."""
        text = _spec_words(self.text) if self.state or self.hash else self.text
        spec = _printed(text, self.hash.strip("-"), heading)
        return PastedSpec(
            spec,
            external=spec if self.state == _EXTERNAL_STATE else "",
            is_dependency=self.is_below,
            is_printed=bool(self.state or self.hash),
            is_certain=bool(self.hash),
        )


def _cells(line: str) -> list[_Cell]:
    """Return the specs of a line, separated by two blanks; a prefix may follow each."""
    cells: list[_Cell] = []
    position = 0
    while lead := _LEAD.match(line, position):
        state, dag_hash = lead["state"] or "", lead["hash"] or ""
        start = lead.end()
        if state == "-" and not dag_hash and len(lead["blanks"]) == 1:
            # A bullet of a list.
            state = ""
        if dag_hash and not _is_hash(lead, line[start:]):
            dag_hash, start = "", lead.start("hash")
        body = _BODY.match(line, start)
        text = body[0] if body else ""
        if not text:
            break
        position = start + len(text)
        is_indented = bool(dag_hash) and len(lead["gap"]) >= _INDENTED
        if cells and not state and not dag_hash and _CONSTRAINT.match(text):
            cells[-1] = cells[-1]._replace(text=f"{cells[-1].text} {text}")
        elif cells and text.startswith("/"):
            prefix = _PREFIX.search(text)
            cells[-1] = cells[-1]._replace(hash=prefix["hash"] if prefix else cells[-1].hash)
        else:
            is_below = is_indented or (text.startswith("^") and position > len(text))
            cells.append(_Cell(state, dag_hash, is_below, text))
    return cells


def _is_hash(lead: re.Match[str], following: str) -> bool:
    """Return whether a word before a name is a hash, not a package such as libxml2."""
    if len(lead["hash"]) == 32 or lead["hash"].startswith("-") or lead["types"]:
        return True
    if following.startswith("^") and len(lead["gap"]) < _INDENTED:
        return False
    word = following.split()[0]
    return "@" in word or (lead["state"] is not None and "=" not in word)


def _spec_words(text: str) -> str:
    """Return a spec without the prefix, progress or time that Spack prints behind it."""
    words = _WORD.findall(text)
    for number, (before, word) in enumerate(pairwise(words), start=1):
        if before[-1] not in "]%^" and not _CONSTRAINT.match(word):
            return " ".join(words[:number])
    return text


def _printed(text: str, dag_hash: str, heading: str) -> str:
    """Return a spec that Spack printed, with its hash and the constraints of a heading.

    Before Spack 1.0, variants are printed behind the compiler. Patches are printed in part, also
    behind `:=`.
    """
    text = " ".join(text.removeprefix("^").split())
    try:
        query = parse_legacy_query(text)
        heading_query = parse_legacy_query(heading) if heading else SpecQuery()
    except QuerySyntaxError:
        return f"{text} /{dag_hash}" if dag_hash else text
    parts = {
        part: getattr(query, part) or getattr(heading_query, part)
        for part in ("os", "platform", "target", "dependencies")
    }
    variants = tuple(
        replace(variant, exact=False)
        if variant.name == "patches" and all(len(sha) <= PATCH_PRINTED for sha in variant.values)
        else variant
        for variant in query.variants
    )
    return spec_text(
        replace(query, **parts, variants=variants, hash=query.hash or dag_hash or None)
    )


def separate_specs(text: str) -> list[str]:
    """Split a text of several specs, such as the arguments of a command.

    A name that does not follow a `%` or `^` begins a spec. A text with a syntax error is returned
    as one.
    """
    try:
        words = tokens(text)
    except QuerySyntaxError:
        return [text]
    sigils = ("dependency", "edge_start", "edge_end")
    starts = [
        word.column
        for before, word in pairwise(words)
        if word.kind == "name" and before.kind not in sigils
    ]
    return [text[start:stop].strip() for start, stop in pairwise([0, *starts, len(text)])]


def is_visible(query: SpecQuery) -> bool:
    """Return whether the text of a query has the syntax of a spec, not only a name.

    `NAME=value` with capitals is a shell variable, `-name` may be an option of a command, and a
    slash may be part of a path.
    """
    if query.name is not None and query.name != query.name.lower():
        return False
    has_hash = re.fullmatch(_HASH if query.name else "[a-z2-7]+", query.hash or "")
    has_part = any((query.versions, query.os, query.platform, query.target, query.flags))
    variants = [variant for variant in query.variants if variant.name == variant.name.lower()]
    has_variant = any(
        query.text[variant.column : variant.column + 1] != "-" for variant in variants
    )
    return bool(has_hash or has_part or has_variant or query.dependencies)


def has_options(query: SpecQuery) -> bool:
    """Return whether a query is a command with options: `--version` and `-v` parse as variants."""
    signs = (query.text[variant.column : variant.column + 3] for variant in query.variants)
    return not is_visible(query) and any(
        sign.startswith("--") or (sign[:1] == "-" and not sign[2:].strip()) for sign in signs
    )
