"""Names of packages, releases, stacks and machines: their spellings, and what a database knows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.query.conditions import (
    VIRTUALS,
    Asked,
    Condition,
    Conditions,
    Word,
)
from spack_cache_db.query.configurations import MOST_HASHES, providers_of, specs_beginning
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.graph import KNOWN_AS_DEPENDENCY
from spack_cache_db.spack.pasted_specs import KnownNames
from spack_cache_db.spack.targets import is_known, known_targets

KNOWN_PACKAGES = "SELECT name FROM known_packages"
PROVIDED = "SELECT DISTINCT virtual FROM providers"
_DEPENDENCY = ("package", "virtual", "compiler")
_TARGET = re.compile(r"[^:,]+")
"""A target in a range or a list of them."""
MOST_NEAR = 5
"""Similar names in one answer."""
NAME = """
SELECT packages.spec_count, packages.release_count,
  EXISTS (SELECT 1 FROM known_packages WHERE known_packages.name = asked.name),
  coalesce(packages.spec_count, 1) = 0 AND EXISTS (
    SELECT 1 FROM configurations JOIN specs ON specs.configuration = configurations.id
    WHERE configurations.package = packages.id AND specs.is_external)
FROM (SELECT :name AS name) AS asked LEFT JOIN packages ON packages.name = asked.name
"""
NAMES = """
SELECT name, spec_count > 0 FROM packages UNION ALL SELECT name, 0 FROM known_packages
"""
Kind = Literal["binary", "external", "dependency", "page", "recipe", "virtual", "unknown"]
NO_BINARY = "no binary of it is in this database"
NOT_INSTALLED = "no spec of it is installed"
_TEXTS: dict[Kind, str] = {
    "external": "external",
    "dependency": KNOWN_AS_DEPENDENCY,
    "page": "named by a page",
    "recipe": "Spack has this package",
}
_FEW = 5
"""Names in the message if none is similar to the unknown one."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The names of a database, by kind and by what is equal in all spellings of a name.

    Kinds are the fields of an address (`package`, `release`, `stack`, `host`, `target`, `os`,
    `platform`, `compiler`, `hash`), `dependency` for what a spec may name (a package, a compiler or
    a virtual package), and `side` for what is compared.
    """

    names: Mapping[str, Mapping[str, tuple[str, ...]]]

    def canonical(self, kind: str, text: str) -> str:
        """Return the only name of a kind that a text spells; the text if none or several do.

        A target may be a range or a list, and a hash the beginning of one. A side of a comparison
        is a release, or a release and a stack (`develop:e4s`).
        """
        if kind == "hash":
            return text.lower()
        if kind == "side":
            release, colon, stack = text.rpartition(":")
            if not colon or self._name("release", text) != text:
                return self._name("release", text)
            return f"{self._name('release', release)}:{self._name('stack', stack)}"
        if kind == "target":
            return _TARGET.sub(lambda part: self._name(kind, part[0]), text)
        return self._name(kind, text)

    def _name(self, kind: str, text: str) -> str:
        kinds = _DEPENDENCY if kind == "dependency" else (kind,)
        names = {name for each in kinds for name in self.names.get(each, {}).get(_folded(text), ())}
        return text if text in names or len(names) != 1 else names.pop()

    def knows(self, kind: str, text: str) -> bool:
        """Return whether a text spells a name of a kind."""
        return _folded(text) in self.names[kind]

    def notes(self, names: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return a note on each name, with its kind before it, that is spelled otherwise."""
        given = ((text, self.canonical(kind, text)) for kind, text in names if text)
        return [f"{text} is read as {name}" for text, name in given if text != name]


def read_spellings(lookups: Lookups) -> Spellings:
    """Return the spellings of all names in a database, which are read once."""
    return lookups.once(Spellings, lambda: _read(lookups))


def _read(lookups: Lookups) -> Spellings:
    packages = {*lookups.packages, *(name for (name,) in select(lookups.conn, KNOWN_PACKAGES))}
    virtuals = VIRTUALS.union(name for (name,) in select(lookups.conn, PROVIDED))
    targets = {*lookups.families, *lookups.families.values(), *known_targets()}
    compilers = {*lookups.words["compiler"].values(), *lookups.compilers}
    names: dict[str, Iterable[str]] = {
        "package": packages,
        "virtual": virtuals,
        "release": (each.name for each in lookups.releases.values()),
        "stack": (each.name for each in lookups.stacks.values()),
        "host": targets,
        "target": targets,
        "compiler": compilers,
        "os": lookups.words["os"].values(),
        "platform": lookups.words["platform"].values(),
    }
    found: dict[str, dict[str, tuple[str, ...]]] = {kind: {} for kind in names}
    for kind, name in ((key, name) for key, some in names.items() for name in some):
        found[kind][_folded(name)] = (*found[kind].get(_folded(name), ()), name)
    return Spellings(found)


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-")


class UnknownHashError(BuilderError):
    """No binary, or more than one, has a hash that begins so; the message says what to type."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """Knowledge of a database about a name.

    Attributes:
        name: the name.
        kind: `binary` if a binary has the name. Otherwise `external` or `dependency` if an index
            has a record of such a spec, `page` if a page names it, `recipe` if Spack has the
            package, `virtual` for a virtual package, and `unknown`.
        spec_count: the number of binaries.
        others: the packages that provide a virtual package, or the names near an unknown one.
        is_installed: whether the database has installations only.
    """

    name: str
    kind: Kind
    spec_count: int = 0
    others: tuple[str, ...] = ()
    is_installed: bool = False

    @property
    def text(self) -> str:
        """The knowledge in words, without the name."""
        others = ", ".join(self.others)
        if self.kind == "binary":
            return counted(self.spec_count, "binary", "binaries")
        if self.kind == "virtual":
            return f"a virtual package, known to be provided by {others}"
        if self.kind == "unknown":
            return unknown_text(self.others)
        return f"{_TEXTS[self.kind]}, {NOT_INSTALLED if self.is_installed else NO_BINARY}"

    @property
    def sentence(self) -> str:
        """The name and what is known of it."""
        return f"{self.name}: {self.text}"


def unknown_text(near: Sequence[str]) -> str:
    """Return what to say of a name that nothing has, given what is near."""
    return "no package has this name" + (f" (near: {', '.join(near)})" if near else "")


def known_name(lookups: Lookups, name: str, *, with_near: bool = True) -> KnownName:
    """Return what a database knows of a name, as it is spelled."""
    ((specs, releases, is_recipe, is_external),) = select(lookups.conn, NAME, name=name)
    if specs:
        return KnownName(name, "binary", specs)
    if releases is not None or is_recipe:
        kind: Kind = "recipe" if releases is None else "page" if releases else "dependency"
        kind = "external" if is_external else kind
        return KnownName(name, kind, is_installed=lookups.is_installed)
    if providers := providers_of(lookups.conn, name):
        return KnownName(name, "virtual", others=providers)
    return KnownName(name, "unknown", others=near_names(lookups, name) if with_near else ())


def near_names(lookups: Lookups, name: str) -> tuple[str, ...]:
    """Return the names of packages like one that is not known: those with binaries, if any are."""
    names = lookups.once(NAMES, lambda: dict(sorted(select(lookups.conn, NAMES))))
    return close_names(name, filter(names.get, names)) or close_names(name, names)


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that are similar to a name, then those that contain it."""
    names = [*known]
    parts = [each for each in names if name in each] if len(name) > 2 else []
    similar = difflib.get_close_matches(name, names, MOST_NEAR, cutoff=0.7)
    return tuple(dict.fromkeys((*similar, *sorted(parts, key=len))))[:MOST_NEAR]


def spec_of_hash(lookups: Lookups, text: str) -> int:
    """Return the id of the one spec whose hash begins so; a `/` may stand before it.

    Raises:
        UnknownHashError: no hash begins so, or several do.
    """
    prefix = text.lower().removeprefix("/")
    found = specs_beginning(lookups.conn, prefix, MOST_HASHES + 1) if prefix else {}
    if not found:
        known = known_name(lookups, text)
        advice = "`find SPEC --hashes` lists hashes"
        named = f" {known.sentence};" if known.kind != "unknown" else ""
        raise UnknownHashError(f"no hash in this database begins with {text!r};{named} {advice}")
    if len(found) > 1:
        shown = ", ".join([*found.values()][:MOST_HASHES])
        more = ", and more" if len(found) > MOST_HASHES else ""
        raise UnknownHashError(f"several hashes begin with {text!r}: {shown}{more}; give one")
    return next(iter(found))


def known_names(lookups: Lookups) -> KnownNames:
    """Return the packages and hashes of a database.

    A package is known if the database has a binary of it, if it is a dependency of one, or if the
    package data of the database names it; so are virtual packages. Names may have any spelling.
    """
    knows = read_spellings(lookups).knows
    return KnownNames(
        lambda name: knows("package", name) or knows("virtual", name),
        lambda prefix: bool(specs_beginning(lookups.conn, prefix, 1)),
    )


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


def scope_of(
    lookups: Lookups,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    *,
    package: str | None = None,
    target: str | None = None,
) -> Conditions:
    """Return the conditions that narrow an answer, by names in any spelling (`spellings`).

    Raises:
        UnknownNameError: the database has no such package, target, release or stack, or archspec
            no such host.
    """
    given = {"package": package, "target": target, "platform": platform, "os": os}
    given |= {"host": host, "release": release, "stack": stack}
    spellings = read_spellings(lookups)
    names = {
        kind: spellings.canonical(kind, name) for kind, name in given.items() if name is not None
    }
    ids = {
        kind: {each.name: key for key, each in known.items()}
        for kind, known in (("release", lookups.releases), ("stack", lookups.stacks))
    }
    ids["target"] = {name: key for key, name in lookups.words["target"].items()}
    for kind in ids:
        if kind in names and names[kind] not in ids[kind]:
            some = ", ".join(islice(ids[kind], _FEW)) + (", …" if len(ids[kind]) > _FEW else "")
            close = hint(names[kind], ids[kind], f"{kind}s in this database: {some or 'none'}")
            raise UnknownNameError(f"no {kind} is called {names[kind]!r}; {close}")
    if "package" in names and names["package"] not in lookups.packages:
        raise UnknownNameError(known_name(lookups, names["package"]).sentence)
    if "host" in names and not (names["host"] in lookups.families or is_known(names["host"])):
        close = hint(names["host"], known_targets(), "expected a name such as zen3 or neoverse_v2")
        raise UnknownNameError(f"archspec knows no target {names['host']!r}; {close}")
    found = []
    for kind, name in names.items():
        text = f"{kind}={name}" if kind in ("platform", "os") else name
        asks: Asked = ids[kind][name] if kind in ("release", "stack") else Word(name)
        found.append(Condition(kind, text, name if kind == "host" else asks))
    return tuple(found)


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return which names are close to one that is not known, or what to do where none is."""
    close = difflib.get_close_matches(name, [*known], cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise
