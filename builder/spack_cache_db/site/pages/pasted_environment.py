"""The page `/cover`: the answer of the command `cover` for a pasted environment, within limits."""

from __future__ import annotations

import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
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
    Commands,
    installations_of,
    short_spec,
)
from spack_cache_db.query.names import known_names
from spack_cache_db.site.pages.filters import EVERYWHERE, Narrowing
from spack_cache_db.site.sandbox.sql_functions import LONGEST, LOOK_AT_THE_TIME
from spack_cache_db.spack.parser import parser_of

LIMITS = Limits(specs=1_000, nodes=5_000, length=LONGEST)
MOST_FORM_FIELDS = 20
NAME = "pasted text"
HAVING = ("binary", "external", "installed")
"""The statuses of specs that need no further binary."""
TOO_LONG = "takes too long for a web page: check fewer specs at once, or use the command line"


@dataclass(frozen=True, slots=True)
class PastedText:
    """A pasted text, and names that narrow the answer."""

    text: str
    narrowing: Narrowing = EVERYWHERE

    @property
    def query(self) -> str:
        """The query string of the same page."""
        return urlencode([("q", self.text), *self.narrowing.pairs])


@dataclass(frozen=True, slots=True)
class CoverPage:
    """The content of the page; without an answer for an empty form, or with an error."""

    found: Cover | None = None
    lacking: tuple[CoveredSpec, ...] = ()
    having: tuple[CoveredSpec, ...] = ()
    install: Commands | None = None
    error: str | None = None


def pasted_text(query: str) -> PastedText | None:
    """Return the text and names in a query string or form; None if it has too many fields."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        return None
    text = dict(reversed(pairs)).get("q", "")
    # Browsers add carriage returns to the lines of a form.
    return PastedText(text.replace("\r\n", "\n"), Narrowing.parse(pairs))


def covered(lookups: Lookups, pasted: PastedText) -> Cover:
    """Return the answer for a pasted environment.

    Raises:
        BuilderError: the text is not an environment, or takes too long; or a name is unknown.
    """

    def look_at_the_time() -> None:
        list(select(lookups.conn, LOOK_AT_THE_TIME))

    try:
        scope = pasted.narrowing.scope(lookups)
        around = Surroundings(parse=parser_of(pasted.narrowing.spack), known=known_names(lookups))
        environment = read_environment(pasted.text.encode("utf-8", "replace"), NAME, LIMITS, around)
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
        answer = covered(lookups, pasted)
    except BuilderError as error:
        return CoverPage(error=str(error))
    having = tuple(spec for spec in answer.specs if spec.status in HAVING)
    return CoverPage(
        answer,
        lacking=tuple(spec for spec in answer.specs if spec.status not in HAVING),
        having=having,
        install=commands_of(lookups.conn, having),
    )


def commands_of(conn: sqlite3.Connection, having: Sequence[CoveredSpec]) -> Commands | None:
    """Return the commands that install all binaries from their mirrors, and load installed specs.

    For a lockfile, they name only the roots, because Spack adds the dependencies.
    """
    roots = [spec for spec in having if spec.is_root is not False] or having

    def specs_of(status: str) -> list[str]:
        texts = (
            short_spec(conn, spec.configuration.package, spec.hash)
            for spec in roots
            if spec.status == status and spec.configuration and spec.hash
        )
        return [*dict.fromkeys(texts)]

    binaries = specs_of("binary")
    ways = [way for spec in roots for way in _installations(conn, spec)]
    modules = dict.fromkeys(line for way in ways if way.alternative for line in way.commands)
    loads = (way.commands[0] for way in ways if not way.alternative)
    installed = dict.fromkeys(shlex.split(load)[-1] for load in loads)
    mirrors = {
        spec.mirror or PLACEHOLDER: spec.release or "" for spec in roots if spec.status == "binary"
    }
    names = Counter[str]()
    lines = []
    for url, release in mirrors.items():
        names[release] += 1
        name = f"{release}-{names[release]}" if names[release] > 1 else release
        lines.append(["spack", "mirror", "add", name, url])
    lines += [TRUST_KEYS.split(), [*INSTALL, *binaries]] if binaries else []
    lines += map(shlex.split, modules)
    lines += [["spack", "load", *installed]] if installed else []
    note = NO_ADDRESS if PLACEHOLDER in mirrors else None
    return Commands(tuple(map(shlex.join, lines)), note=note) if lines else None


def _installations(conn: sqlite3.Connection, spec: CoveredSpec) -> Iterator[Commands]:
    """Yield the installation of an installed spec, or of an external that it provides."""
    if spec.status in ("installed", "external") and spec.configuration and spec.hash:
        ways = installations_of(conn, spec.configuration.package, spec.hash)
        yield from [way for way in ways if way.release == spec.release][:1]
