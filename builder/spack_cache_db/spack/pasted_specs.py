"""Specs as people copy them from a terminal, a thread, a log or a list of modules.

`pasted_spec` reads a text that is one spec, `pasted_line` a line of a longer text. Both read
commands (`$ spack install --fresh -j 8 hdf5+mpi`), quotes and backticks, what Spack 0.17 to 1.2
prints (`[+]  2feova4  zlib@1.3`), installation prefixes, and names of modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError, Token, tokens
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
"""Characters of a text in which a spec is looked for."""

_OF_TWO_WORDS = ("buildcache", "test", "verify")
_GLOBAL_VALUES = (
    "-C",
    "-D",
    "-c",
    "-e",
    "--color",
    "--config",
    "--config-scope",
    "--env-dir",
    "--env",
)
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
"""The commands whose argument is a spec, whatever it is called."""
_NUMBERED = ("-j", "-p", "--jobs", "--concurrent-packages")
"""Options that take a number; without one they are others."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours and other sequences of terminals (ECMA-48), and titles of windows."""
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
_SPAN = re.compile(r"`([^`]+)`|“([^“”]+)”|\u2018([^\u2018\u2019]+)\u2019|«([^«»]+)»")
_ITEM = re.compile(r"[-*•]\s+(?=[\w'\"`])")
"""The mark of an item in a list of YAML or Markdown."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_END = re.compile(r"[|&;#]|\d?>|\\$|2>&1")
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")
_MODULE_COMMAND = re.compile(r"(?:.*?[$>%]\s+)?(?:module\s+(?:load|add)|ml(?:\s+load)?)\s+(?=\S)")

_HASH = r"(?:[a-z2-7]{32}|[a-z2-7]{7})"
_PREFIX = re.compile(r"[\w.+]-(?P<hash>[a-z2-7]{32})(?![\w-])")
_EXTERNAL = re.compile(rf"(?:\[.\]\s+)?(?P<prefix>/\S*) \(external (?P<name>[\w.+-]+-{_HASH})\)")
# Before a spec stand its state, its hash, and in `spack spec --types` the types of its edges.
_LEAD = re.compile(
    r"\s*(?:(?P<state>\[[^\]]\]|(?<=\s)-)(?P<blanks>\s+))?"
    rf"(?:(?P<hash>{_HASH}|-{{32}}|-{{7}})(?P<gap>\s+)(?=[\[^\w]))?"
    r"(?P<types>\[[blrt ]{4}\]\s+)?"
)
_BODY = re.compile(r"""(?:"[^"]*"|'[^']*'|\S|\s(?!\s))*""")
_CONSTRAINT = re.compile(r"[@+~%^-]|[\w.-]+:?==?|/[a-z2-7]{7}$")
"""How a word begins that constrains the spec before it."""
_INDENTED = 5
"""Blanks between a hash and the name of a dependency, in trees of `spack find`."""
_EXTERNAL_STATE = "[e]"

# Spack's modules are called {name}/{version}-{compiler.name}-{compiler.version}, or by some of
# these, with seven characters of the hash behind (`modules/common.py`).
_MODULE = re.compile(r"\w[\w.+-]*(?:/[\w.+-]+)?")
_VERSION = re.compile(r"v?\d[\w.]*|develop|main|master|head|trunk|nightly|stable|latest")
_PRERELEASE = re.compile(r"(?:alpha|beta|rc)\d*")
_MODULE_MARK = re.compile(r"[(<][A-Za-z:,]+[>)]|\d+\)")
_LONGEST_MODULE = 200


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a text may mean; by default any.

    Attributes:
        is_package: returns whether there is a package of this name.
        is_hash: returns whether the hash of a binary begins so.
    """

    is_package: Callable[[str], bool] = lambda name: True
    is_hash: Callable[[str], bool] = lambda prefix: True


ANY_NAME = KnownNames()


@dataclass(frozen=True, slots=True)
class PastedSpec:
    """A spec that stood in a text.

    Attributes:
        spec: the spec; empty if the text has none.
        left_out: what else the text contains, such as `install --fresh -j 8`.
        external: the prefix, if Spack printed that the spec is an external.
        is_dependency: whether it stands below another spec in a tree.
        is_printed: whether Spack printed it, with a state or a hash.
        is_certain: whether the text shows that it is a spec, whatever its name: by its hash, or as
            the argument of a command that takes nothing else.
    """

    spec: str
    left_out: str = ""
    external: str = ""
    is_dependency: bool = False
    is_printed: bool = False
    is_certain: bool = False

    def notes_on(self, text: str) -> tuple[str, ...]:
        """Return how a text was read, nothing if it is a spec alone."""
        if self.spec == text.strip():
            return ()
        left_out = f"; skipped: {self.left_out}" if self.left_out else ""
        return (f"read as {self.spec!r}{left_out}",)


def pasted_spec(text: str, known: KnownNames = ANY_NAME) -> PastedSpec:
    """Return the spec of a text; one that is nothing but a spec comes back as it is.

    Args:
        text: what was pasted.
        known: what the names of modules may mean.
    """
    if len(text) > LONGEST:
        return PastedSpec(text)
    text = re.sub(r"\\\s*\n\s*", " ", plain(text).strip())
    if span := _SPAN.search(text):
        text = next(filter(None, span.groups())).strip()
    text = unquoted(text)
    if found := _of_command(text) or _of_prefix(text):
        return found
    # A name and a version alone, such as `hdf5-1.14`, are words for the search.
    if (found := _of_module(text, known)) and ("/" in text or len(found.spec) < len(text)):
        return found
    cells = _cells(f" {text}")
    if len(cells) == 1 and (cells[0].state or cells[0].hash):
        return cells[0].read("")
    return PastedSpec(_typed(text))


def pasted_line(
    line: str, known: KnownNames = ANY_NAME, around: str | None = None
) -> tuple[PastedSpec, ...]:
    """Return the specs of a line of a longer text; what is not a spec comes back as it is.

    Args:
        line: the line, without escapes of terminals.
        known: what the names of modules may mean.
        around: what a heading of Spack's output says of the line, as a spec; None outside such
            output.
    """
    text = line.strip()
    span = _SPAN.search(text)
    before = text[: span.start()] if span else ""
    if span and (not before.strip("-*• ") or "spack " in span[0]):
        text = next(filter(None, span.groups())).strip()
    text = unquoted(text)
    if command := _of_command(text):
        return tuple(replace(command, spec=each) for each in separate_specs(command.spec))
    if text.startswith(("/", "[", "==>")) and (prefix := _of_prefix(text)):
        return (prefix,)
    if modules := _of_modules(text, known):
        return modules
    cells = _cells(line if text == line.strip() else text)
    if around is not None or any(each.state or each.hash for each in cells):
        return tuple(each.read(around or "") for each in cells)
    return tuple(map(PastedSpec, separate_specs(_typed(text))))


def plain(text: str) -> str:
    """Return a text without escapes of terminals, with blanks for tabs."""
    return _ESCAPE.sub("", text).expandtabs()


def _typed(text: str) -> str:
    """Return a text without a prompt, the dash of a list and quotes around it."""
    mark = _PROMPT.match(text) or _ITEM.match(text)
    return unquoted(text[mark.end() :] if mark else text)


def unquoted(text: str) -> str:
    """Return a text without the quotes around it."""
    while len(text) > 1 and text[-1] == _QUOTES.get(text[0]) and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _of_command(text: str) -> PastedSpec | None:
    """Return the spec that a command of Spack is given, None for no command."""
    words = [match[0] for match in _WORD.finditer(text)]
    for start, word in enumerate(words):
        # A folder, or somebody, may be called `spack` as well.
        if _is_spack(word) and (found := _command(words[start + 1 :])):
            return found
    return None


def _command(words: list[str]) -> PastedSpec | None:
    """Return the spec of a command, given the words after `spack`."""
    place = 0
    while place < len(words) and words[place][0] == "-":
        place += 1 + (words[place] in _GLOBAL_VALUES)
    if place >= len(words) or words[place] not in COMMANDS:
        return None
    name = words[place]
    place += 1 + (name in _OF_TWO_WORDS)
    options = words[:place]
    spec: list[str] = []
    while place < len(words) and not _END.match(words[place]):
        taken = _option(name, words[place:], is_first=not spec)
        options += words[place : place + taken]
        spec += [] if taken else [unquoted(words[place])]
        place += taken or 1
    text = " ".join(spec).rstrip(".,;?!")
    return PastedSpec(text, " ".join(options), is_certain=name in _ASKING)


def _option(command: str, words: list[str], *, is_first: bool) -> int:
    """Return how many words an option is, with its value; 0 for a part of a spec."""
    word = words[0]
    is_option = is_first or word.startswith("--") or len(word) == 2 or word[1:3].isdigit()
    return 1 + _takes_value(command, word, words[1:]) if word[0] == "-" and is_option else 0


def _is_spack(word: str) -> bool:
    return word.rpartition("/")[2].lstrip("$>%`(") == "spack"


def _takes_value(command: str, option: str, following: list[str]) -> bool:
    """Return whether the word after an option is its value."""
    if not following or "=" in option:
        return False
    if option in _NUMBERED:
        return following[0].isdigit()
    return option in _VALUES or option in _SHORT_VALUES.get(command, ())


def _of_prefix(text: str) -> PastedSpec | None:
    """Return the spec of an installation prefix, or of a message that names one."""
    if external := _EXTERNAL.fullmatch(text):
        found = _of_module(external["name"], ANY_NAME) or PastedSpec(external["name"])
        return replace(found, external=external["prefix"])
    prefix = _PREFIX.search(text)
    return PastedSpec(f"/{prefix['hash']}", is_certain=True) if prefix else None


def _of_modules(text: str, known: KnownNames) -> tuple[PastedSpec, ...]:
    """Return the specs of a line in which every word is a module, none for another line."""
    command = _MODULE_COMMAND.match(text)
    words = text[command.end() if command else 0 :].split()
    found = [_of_module(word, known) for word in words if not _MODULE_MARK.fullmatch(word)]
    return tuple(filter(None, found)) if all(found) else ()


def _of_module(text: str, known: KnownNames) -> PastedSpec | None:
    """Return the spec of a module: by its hash if that is known, else by name and version."""
    if len(text) > _LONGEST_MODULE or not _MODULE.fullmatch(text):
        return None
    name, slash, rest = text.partition("/")
    if slash:
        return _module_spec(name, rest.split("-"), known)
    words = name.split("-")
    starts = [start for start, word in enumerate(words) if start and _VERSION.fullmatch(word)]
    names = ["-".join(words[:start]) for start in starts] if "." in text else []
    place = next((place for place, name in enumerate(names) if known.is_package(name)), 0)
    return _module_spec(names[place], words[starts[place] :], known) if names else None


def _module_spec(name: str, parts: list[str], known: KnownNames) -> PastedSpec | None:
    """Return the spec of a module.

    Args:
        name: the name of its package.
        parts: the version, the compiler and its version, options, and the hash, if they stand in
            the name of the module.
        known: what it may mean.
    """
    version, *others = parts
    dag_hash = others[-1] if others and re.fullmatch(_HASH, others[-1]) else ""
    has_compiler = any(_VERSION.fullmatch(part) or part == "none" for part in others[1:])
    is_hash = not others and re.fullmatch("[a-z2-7]+", version)
    if is_hash or not _VERSION.fullmatch(version) or not (has_compiler or known.is_package(name)):
        return None
    if dag_hash and known.is_hash(dag_hash):
        return PastedSpec(f"{name}/{dag_hash}", is_certain=True)
    if others and _PRERELEASE.fullmatch(others[0]):
        version = f"{version}-{others[0]}"
    return PastedSpec(f"{name}@{version}", is_certain=True)


class _Cell(NamedTuple):
    """A spec in a line that Spack printed, with what stands before it.

    Attributes:
        state: whether it is installed, such as `[+]`.
        hash: the beginning of its hash; dashes if Spack does not know it yet.
        is_below: whether a `^` or the blanks before its name make it a dependency.
        text: the spec, and what stands behind it.
    """

    state: str
    hash: str
    is_below: bool
    text: str

    def read(self, around: str) -> PastedSpec:
        """Return the spec, with what a heading says of it."""
        text = _spec_words(self.text) if self.state or self.hash else self.text
        spec = _printed(text, self.hash.strip("-"), around)
        return PastedSpec(
            spec,
            external=spec if self.state == _EXTERNAL_STATE else "",
            is_dependency=self.is_below,
            is_printed=bool(self.state or self.hash),
            is_certain=bool(self.hash),
        )


def _cells(line: str) -> list[_Cell]:
    """Return the specs of a line, which two blanks separate; each may have its prefix behind it."""
    found: list[_Cell] = []
    place = 0
    while lead := _LEAD.match(line, place):
        state, dag_hash = lead["state"] or "", lead["hash"] or ""
        start = lead.end()
        if state == "-" and not dag_hash and len(lead["blanks"]) == 1:
            # The dash of an item in a list.
            state = ""
        if dag_hash and not _is_hash(lead, line[start:]):
            dag_hash, start = "", lead.start("hash")
        body = _BODY.match(line, start)
        text = body[0] if body else ""
        if not text:
            break
        place = start + len(text)
        is_indented = bool(dag_hash) and len(lead["gap"]) >= _INDENTED
        if found and not state and not dag_hash and _CONSTRAINT.match(text):
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {text}")
        elif found and text.startswith("/"):
            prefix = _PREFIX.search(text)
            found[-1] = found[-1]._replace(hash=prefix["hash"] if prefix else found[-1].hash)
        else:
            is_below = is_indented or (text.startswith("^") and place > len(text))
            found.append(_Cell(state, dag_hash, is_below, text))
    return found


def _is_hash(lead: re.Match[str], rest: str) -> bool:
    """Return whether a word before a name is a hash, and not a package such as libxml2."""
    if len(lead["hash"]) == 32 or lead["hash"].startswith("-") or lead["types"]:
        return True
    if rest.startswith("^") and len(lead["gap"]) < _INDENTED:
        return False
    word = rest.split()[0]
    return "@" in word or (lead["state"] is not None and "=" not in word)


def _spec_words(text: str) -> str:
    """Return a spec without the prefix, the progress or the time that Spack prints behind it."""
    words = _WORD.findall(text)
    for number, (before, word) in enumerate(pairwise(words), start=1):
        if before[-1] not in "]%^" and not _CONSTRAINT.match(word):
            return " ".join(words[:number])
    return text


def _printed(text: str, dag_hash: str, around: str) -> str:
    """Return a spec that Spack printed, with its hash and what a heading says of it.

    Before Spack 1.0, variants are printed behind the compiler. Of patches, the beginning of each
    is printed, also behind `:=`.
    """
    text = " ".join(text.removeprefix("^").split())
    try:
        query = parse_legacy_query(text)
        known = parse_legacy_query(around) if around else SpecQuery()
    except QuerySyntaxError:
        return f"{text} /{dag_hash}" if dag_hash else text
    parts = {
        part: getattr(query, part) or getattr(known, part)
        for part in ("os", "platform", "target", "dependencies")
    }
    variants = tuple(
        replace(each, exact=False) if each.name == "patches" and _is_short(each.values) else each
        for each in query.variants
    )
    return spec_text(
        replace(query, **parts, variants=variants, hash=query.hash or dag_hash or None)
    )


def _is_short(patches: tuple[str, ...]) -> bool:
    return all(len(each) <= PATCH_PRINTED for each in patches)


def separate_specs(text: str) -> list[str]:
    """Return the specs of a text in which several follow each other, as behind a command.

    A name that does not follow a `%` or `^` begins one. A text that cannot be split into words
    comes back as it is.
    """
    try:
        words = tokens(text)
    except QuerySyntaxError:
        return [text]
    starts = [
        word.column for before, word in pairwise(words) if word.kind == "name" and _ends(before)
    ]
    return [text[start:end].strip() for start, end in pairwise([0, *starts, len(text)])]


def _ends(word: Token) -> bool:
    return word.kind not in ("dependency", "edge_start", "edge_end")


def is_visible(query: SpecQuery) -> bool:
    """Return whether a text that was read as a query has marks of a spec, whatever its name.

    `NAME=value` with capitals is a variable of the shell, `-name` may be an option of a command,
    and a slash may stand in a path.
    """
    if query.name is not None and query.name != query.name.lower():
        return False
    has_hash = re.fullmatch(_HASH if query.name else "[a-z2-7]+", query.hash or "")
    has_part = any((query.versions, query.os, query.platform, query.target, query.flags))
    variants = [each for each in query.variants if each.name == each.name.lower()]
    has_variant = any(query.text[each.column : each.column + 1] != "-" for each in variants)
    return bool(has_hash or has_part or has_variant or query.dependencies)


def has_options(query: SpecQuery) -> bool:
    """Return whether a text that was read as a query looks like a command with options.

    These are `--version` and `-v`, which the language of specs reads as variants.
    """
    signs = (query.text[each.column : each.column + 3] for each in query.variants)
    return not is_visible(query) and any(
        sign.startswith("--") or (sign[:1] == "-" and not sign[2:].strip()) for sign in signs
    )
