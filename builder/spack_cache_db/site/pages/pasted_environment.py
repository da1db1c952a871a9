"""The page `/cover`: an environment that somebody pastes, with and without binaries.

It is read and answered as the command `cover` does; what it may ask for is bounded, and it is
looked at the time after each spec.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.environments import Limits, Surroundings, UnreadableEnvironment
from spack_cache_db.environments.formats import read_environment
from spack_cache_db.errors import BuilderError, Fault
from spack_cache_db.query.coverage import Cover, CoveredSpec, cover_environment
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.installation import (
    INSTALL,
    NO_ADDRESS,
    PLACEHOLDER,
    TRUST_KEYS,
    short_spec,
)
from spack_cache_db.query.lockfiles import CoveredNode
from spack_cache_db.query.names import known_names
from spack_cache_db.site.pages.filters import EVERYWHERE, Narrowing
from spack_cache_db.site.sandbox.sql_functions import LONGEST, LOOK_AT_THE_TIME
from spack_cache_db.spack.parser import parser_of

LIMITS = Limits(specs=1_000, nodes=5_000, length=LONGEST)
MOST_FORM_FIELDS = 20
NAME = "what you pasted"
HAVING = ("binary", "external", "installed")
"""The statuses of specs that need no binary any more."""

Covered = CoveredSpec | CoveredNode

TOO_LONG = "takes too long for a web page: check fewer specs at once, or use the command line"


@dataclass(frozen=True, slots=True)
class PastedText:
    """What a visitor asks: a text, and what narrows the answer."""

    text: str
    narrowing: Narrowing = EVERYWHERE

    @property
    def query(self) -> str:
        """The query string that asks the same."""
        return urlencode([("q", self.text), *self.narrowing.pairs])


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that install, or load, everything that an environment can have."""

    commands: tuple[str, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class CoverPage:
    """The page: the answer, or why there is none.

    Attributes:
        found: the answer; None before anything was asked.
        lacking: the specs that lack a binary.
        having: those that have one.
        install: the commands for all that have one; None if none has.
        error: why the environment cannot be read.
    """

    found: Cover | None = None
    lacking: tuple[Covered, ...] = ()
    having: tuple[Covered, ...] = ()
    install: Commands | None = None
    error: str | None = None


def pasted_text(query: str) -> PastedText | None:
    """Return what an address or a form asks; None if it has more than `MOST_FORM_FIELDS` fields.

    The first field of each name counts.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        return None
    text = dict(reversed(pairs)).get("q", "")
    # Forms send lines with carriage returns.
    return PastedText(text.replace("\r\n", "\n"), Narrowing.parse(pairs))


def covered(lookups: Lookups, pasted: PastedText) -> Cover:
    """Return the answer for what was pasted.

    Raises:
        UnreadableEnvironment: it cannot be read.
        UnknownSpackVersion: its specs are written for no version of Spack.
        UnknownNameError: there is no such release, stack or host.
    """
    scope = pasted.narrowing.scope(lookups)
    parse = parser_of(pasted.narrowing.spack)
    around = Surroundings(parse=parse, known=known_names(lookups))
    environment = read_environment(pasted.text.encode("utf-8", "replace"), NAME, LIMITS, around)

    def look_at_the_time() -> None:
        list(select(lookups.conn, LOOK_AT_THE_TIME))

    try:
        return cover_environment(lookups, environment, scope, after_each=look_at_the_time)
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        raise UnreadableEnvironment([Fault(NAME, 0, TOO_LONG)]) from None


def load_cover(lookups: Lookups, pasted: PastedText) -> CoverPage:
    """Return the page."""
    if not pasted.text.strip():
        return CoverPage()
    try:
        found = covered(lookups, pasted)
    except BuilderError as error:
        return CoverPage(error=str(error))
    having = tuple(each for each in found.specs if each.status in HAVING)
    return CoverPage(
        found,
        lacking=tuple(each for each in found.specs if each.status not in HAVING),
        having=having,
        install=commands_of(lookups.conn, having),
    )


def commands_of(conn: sqlite3.Connection, having: Sequence[Covered]) -> Commands | None:
    """Return the commands that install all binaries from their mirrors, and load the installed.

    Of a lockfile, the roots are named: what they need comes with them.
    """
    roots = [each for each in having if getattr(each, "is_root", True)] or having

    def specs_of(status: str) -> list[str]:
        some = [each for each in roots if each.status == status]
        named = (
            short_spec(conn, each.configuration.package, each.hash)
            for each in some
            if each.configuration and each.hash
        )
        return [*dict.fromkeys(named)]

    binaries, installed = specs_of("binary"), specs_of("installed")
    mirrors = {
        each.mirror or PLACEHOLDER: each.release or "" for each in roots if each.status == "binary"
    }
    names = Counter[str]()
    lines = []
    for url, release in mirrors.items():
        names[release] += 1
        name = f"{release}-{names[release]}" if names[release] > 1 else release
        lines.append(["spack", "mirror", "add", name, url])
    lines += [TRUST_KEYS.split(), [*INSTALL, *binaries]] if binaries else []
    lines += [["spack", "load", *installed]] if installed else []
    note = NO_ADDRESS if PLACEHOLDER in mirrors else None
    return Commands(tuple(map(shlex.join, lines)), note) if lines else None
