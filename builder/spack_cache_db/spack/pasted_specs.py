"""Specs as people copy them from a terminal, a thread or a log.

Known are commands (`$ spack install --fresh -j 8 hdf5+mpi`), quotes and backticks, and the lines
in which `spack spec` and `spack find` print a spec: its state (`[+]`, ` - `), its hash, and the
spec itself, in Spack 0.17 to 1.2; and prefixes of what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError, Token, tokens
from spack_cache_db.spack.normal_forms import PATCH_PRINTED
from spack_cache_db.spack.parser import parse_legacy_query

_COMMANDS = """
add build-env buildcache change concretize deconcretize dependencies dependents deprecate dev-build
develop diff edit env extensions external fetch find gc graph info install load location mark mirror
module patch providers remove restage rm solve spec stage test test-env undevelop uninstall unload
verify versions
"""
COMMANDS = frozenset(_COMMANDS.split())
"""The commands of Spack that take a spec."""

LONGEST = 10_000
"""Characters of a text in which a spec is looked for."""

_OF_TWO_WORDS = ("buildcache", "env", "external", "mirror", "module", "test", "verify")
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
_NUMBERED = ("-j", "-p", "--jobs", "--concurrent-packages")
"""Options that take a number; without one they are others."""

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
_SPAN = re.compile(r"`([^`]+)`|“([^”]+)”|\u2018([^\u2019]+)\u2019|«([^»]+)»")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_END = re.compile(r"[|&;#]|\d?>|\\$|2>&1")
_PROMPT = re.compile(r"(?:\S.*?[\])])?[$>]\s+")
_STATE = re.compile(r"(?:\[[-+^a-z]\]|-(?=\s))\s*")
_HASHED = re.compile(
    r"(?P<hash>[a-z2-7]{7}|[a-z2-7]{32})(?P<gap>\s+)(?P<rest>\^?(?![\w.-]+:?=)[\w.].*)"
)
_PREFIX = re.compile(r"(?:.*[\s/])?[\w.+-]+-(?P<hash>[a-z2-7]{32})(?:[/:\s.].*)?")
_INDENTED = 5
"""Blanks between a hash and the name of a dependency, in trees of `spack find`."""


@dataclass(frozen=True, slots=True)
class PastedSpec:
    """A spec that stood in a text.

    Attributes:
        spec: the spec; empty if the text has none.
        left_out: what else the text says, such as `install --fresh -j 8`.
        is_dependency: whether it stands below another spec in a tree.
        is_printed: whether Spack printed it, and nobody typed it.
    """

    spec: str
    left_out: str = ""
    is_dependency: bool = False
    is_printed: bool = False

    def notes_on(self, text: str) -> tuple[str, ...]:
        """Return what to say of how a text was read; nothing of one that is a spec alone."""
        if self.spec == text.strip():
            return ()
        left_out = f"; skipped: {self.left_out}" if self.left_out else ""
        return (f"read as {self.spec!r}{left_out}",)


def pasted_spec(text: str) -> PastedSpec:
    """Return the spec of a text; one that is nothing but a spec comes back as it is."""
    if len(text) > LONGEST:
        return PastedSpec(text)
    text = _ESCAPE.sub("", text).expandtabs().strip()
    text = re.sub(r"\\\s*\n\s*", " ", text)
    if span := _SPAN.search(text):
        text = next(filter(None, span.groups())).strip()
    text = _unquoted(text)
    return _of_command(text) or _printed(text) or PastedSpec(_without_prompt(text))


def _without_prompt(text: str) -> str:
    prompt = _PROMPT.match(text)
    return _unquoted(text[prompt.end() :]) if prompt else text


def _unquoted(text: str) -> str:
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
    at = 0
    while at < len(words) and words[at][0] == "-":
        at += 1 + (words[at] in _GLOBAL_VALUES)
    if at >= len(words) or words[at] not in COMMANDS:
        return None
    name = words[at]
    at += 1 + (name in _OF_TWO_WORDS)
    said = words[:at]
    spec: list[str] = []
    while at < len(words) and not _END.match(words[at]):
        taken = _option(name, words[at:], is_first=not spec)
        said += words[at : at + taken]
        spec += [] if taken else [_unquoted(words[at])]
        at += taken or 1
    return PastedSpec(" ".join(spec).rstrip(".,;?!"), " ".join(said))


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


def _printed(text: str) -> PastedSpec | None:
    """Return the spec of a line that Spack printed, None for another line.

    A prefix, or a message about one, ends in the hash of its spec.
    """
    if prefix := _PREFIX.fullmatch(text):
        return PastedSpec(f"/{prefix['hash']}", is_printed=True)
    state = _STATE.match(text)
    rest = text[state.end() :] if state else text
    is_state = state is not None and (text[0] == "[" or len(state[0]) > 2)
    hashed = _HASHED.fullmatch(rest)
    if hashed and (is_state or _is_hash(hashed)):
        below = hashed["rest"].startswith("^") or len(hashed["gap"]) >= _INDENTED
        return printed_spec(hashed["rest"].lstrip("^"), hashed["hash"], is_dependency=below)
    if is_state:
        return printed_spec(rest.lstrip("^"), is_dependency=rest.startswith("^"))
    return PastedSpec(_unquoted(rest)) if state else None


def _is_hash(found: re.Match[str]) -> bool:
    """Return whether a word is a hash, and no package such as libxml2.

    Spack prints versions, and blanks before dependencies.
    """
    if found["rest"][0] == "^" and len(found["gap"]) < _INDENTED:
        return False
    return len(found["hash"]) == 32 or "@" in found["rest"].split()[0]


def printed_spec(
    text: str, dag_hash: str | None = None, around: str = "", *, is_dependency: bool = False
) -> PastedSpec:
    """Return a spec that Spack printed, with its hash and what a heading says of it.

    Before Spack 1.0, variants are printed behind the compiler. Of patches, the beginning of each
    is printed, also behind `:=`.

    Args:
        text: the spec.
        dag_hash: the beginning of its hash, if it is known.
        around: what else is known of it, as a spec.
        is_dependency: whether it stands below another spec.
    """
    text = " ".join(text.split())
    try:
        query = parse_legacy_query(text)
        known = parse_legacy_query(around) if around else SpecQuery()
    except QuerySyntaxError:
        found = f"{text} /{dag_hash}" if dag_hash else text
        return PastedSpec(found, is_dependency=is_dependency, is_printed=True)
    parts = {
        part: getattr(query, part) or getattr(known, part)
        for part in ("os", "platform", "target", "dependencies")
    }
    variants = tuple(
        replace(each, exact=False) if each.name == "patches" and _is_short(each.values) else each
        for each in query.variants
    )
    found = spec_text(replace(query, **parts, variants=variants, hash=query.hash or dag_hash))
    return PastedSpec(found, is_dependency=is_dependency, is_printed=True)


def _is_short(patches: tuple[str, ...]) -> bool:
    return all(len(each) <= PATCH_PRINTED for each in patches)


def separate_specs(text: str) -> list[str]:
    """Return the specs of a text in which several follow each other, as behind a command.

    A name that follows no `%` or `^` begins one. What is no spec comes back as it is.
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


def printed_cells(line: str) -> Iterator[tuple[str | None, str]]:
    """Yield the hash and the spec of each cell of a line in which `spack find` prints several.

    Paths are left out. An option stands in a cell of its own behind its spec.
    """
    found: list[tuple[str | None, str]] = []
    for cell in re.split(r"\s{2,}", line.strip()):
        rest = _STATE.sub("", cell, count=1)
        hashed = _HASHED.fullmatch(rest)
        if hashed and hashed["rest"][0] != "^":
            found.append((hashed["hash"], hashed["rest"]))
        elif re.match(r"[\w.-]+:?==?", rest) and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {rest}")
        elif not rest.startswith("/"):
            found.append((None, rest))
    yield from found
