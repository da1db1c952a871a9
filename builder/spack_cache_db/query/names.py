"""Resolves names of packages, releases, stacks and machines in any spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.pasted.lines import pasted_spec
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.query.conditions import VIRTUALS, Asked, Condition, Conditions, Verdict, Word
from spack_cache_db.query.configurations import specs_beginning
from spack_cache_db.query.database import Lookups, select, select_ids
from spack_cache_db.query.gone import Gone, gone_of_package
from spack_cache_db.query.graph import KNOWN_AS_DEPENDENCY
from spack_cache_db.spack.legacy import todays_spec
from spack_cache_db.spack.targets import is_known, known_targets

_DEPENDENCY = ("package", "virtual", "compiler")
_TARGET = re.compile(r"[^:,]+")
"""A target in a range or a list."""
MOST_NEAR = 5
"""Maximum of similar names in one answer."""
NAME = """
SELECT packages.spec_count, packages.release_count,
  EXISTS (SELECT 1 FROM known_packages WHERE known_packages.name = asked.name),
  coalesce(packages.spec_count, 1) = 0 AND EXISTS (
    SELECT 1 FROM configurations JOIN specs ON specs.configuration = configurations.id
    WHERE configurations.package = packages.id AND specs.is_external)
FROM (SELECT :name AS name) AS asked LEFT JOIN packages ON packages.name = asked.name
"""
PACKAGE_COUNTS = """
SELECT name, spec_count FROM packages
UNION ALL SELECT name, 0 FROM known_packages WHERE name NOT IN (SELECT name FROM packages)
ORDER BY name
"""
Kind = Literal["binary", "gone", "external", "dependency", "page", "recipe", "virtual", "unknown"]
NO_BINARY = "no binary of it is in this database"
NOT_INSTALLED = "it is not installed"
_TEXTS: dict[Kind, str] = {
    "external": "external",
    "dependency": KNOWN_AS_DEPENDENCY,
    "page": "named by a page",
    "recipe": "Spack has this package",
}
MOST_HASHES = 5
"""Number of hashes in an error about an ambiguous prefix."""
SCOPE = ("package", "target", "platform", "os", "host", "release", "stack")
"""The kinds of names in a scope, in the order of its conditions."""
_FEW = 5
"""Names in a message if none is similar to the unknown one."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The names of a database, by kind and by their folded form.

    Kinds are the fields of a URL (`package`, `release`, `stack`, `host`, `target`, `os`,
    `platform`, `compiler`, `hash`), `dependency` for a package, compiler or virtual package, and
    `side` for a release, or a release and a stack (`develop:e4s`).
    """

    names: Mapping[str, Mapping[str, tuple[str, ...]]]

    def canonical(self, kind: str, text: str) -> str:
        """Return the name of a kind that a text spells; the text if it spells none or several.

        A target may be a range or a list, and a hash the beginning of one.
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
        names = {
            name for field in kinds for name in self.names.get(field, {}).get(_folded(text), ())
        }
        return text if text in names or len(names) != 1 else names.pop()

    def knows(self, kind: str, text: str) -> bool:
        """Return whether a text spells a name of this kind."""
        return _folded(text) in self.names[kind]

    def notes(self, names: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return a note on each pair of a kind and a text that is another spelling of a name."""
        pairs = ((text, self.canonical(kind, text)) for kind, text in names if text)
        return [f"{text} is read as {name}" for text, name in pairs if text != name]


def read_spellings(lookups: Lookups) -> Spellings:
    """Return the spellings of all names in a database; cached."""
    return lookups.once(Spellings, lambda: _read(lookups))


def _read(lookups: Lookups) -> Spellings:
    virtuals = "SELECT DISTINCT virtual FROM providers"
    targets = {*lookups.families, *lookups.families.values(), *known_targets()}
    names: dict[str, Iterable[str]] = {
        "package": package_counts(lookups),
        "virtual": VIRTUALS.union(row[0] for row in select(lookups.conn, virtuals)),
        "release": (record.name for record in lookups.releases.values()),
        "stack": (record.name for record in lookups.stacks.values()),
        "host": targets,
        "target": targets,
        "compiler": {*lookups.words["compiler"].values(), *lookups.compilers},
        "os": lookups.words["os"].values(),
        "platform": lookups.words["platform"].values(),
    }
    spellings: dict[str, dict[str, tuple[str, ...]]] = {kind: {} for kind in names}
    for kind, names_of_kind in names.items():
        for name in names_of_kind:
            spellings[kind][_folded(name)] = (*spellings[kind].get(_folded(name), ()), name)
    return Spellings(spellings)


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-")


class UnknownHashError(BuilderError):
    """No hash, or more than one, begins with a text."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """The meaning of a name in a database.

    The kind is `binary` if a binary has the name, and `gone` if its mirror has lost all binaries
    with the name, which `gone` counts. Otherwise it is `external` or `dependency` if an
    index has a record of such a spec, `page` if a page has the name, `recipe` if Spack has the
    package, `virtual`, or `unknown`. `others` are the providers of a virtual package, or the names
    near an unknown one.
    """

    name: str
    kind: Kind
    spec_count: int = 0
    others: tuple[str, ...] = ()
    is_installed: bool = False
    gone: Gone | None = None

    @property
    def text(self) -> str:
        """The meaning as text, without the name."""
        if self.kind == "binary":
            return counted(self.spec_count, "binary", "binaries")
        if self.gone is not None:
            return self.gone.of_package
        if self.kind == "virtual":
            return f"a virtual package, known to be provided by {', '.join(self.others)}"
        if self.kind == "unknown":
            return unknown_text(self.others)
        return f"{_TEXTS[self.kind]}, {NOT_INSTALLED if self.is_installed else NO_BINARY}"

    @property
    def sentence(self) -> str:
        """The name and its meaning."""
        return f"{self.name}: {self.text}"


def unknown_text(near: Sequence[str]) -> str:
    """Return the text for an unknown name, with the names near it."""
    return "no package has this name" + (f" (near: {', '.join(near)})" if near else "")


def known_name(lookups: Lookups, name: str, *, with_near: bool = True) -> KnownName:
    """Return the meaning of a name in exactly this spelling."""
    ((specs, releases, is_recipe, is_external),) = select(lookups.conn, NAME, name=name)
    if specs:
        return KnownName(name, "binary", specs)
    gone = gone_of_package(lookups.conn, name) if releases else None
    if gone is not None:
        return KnownName(name, "gone", gone=gone)
    if releases is not None or is_recipe:
        kind: Kind = "recipe" if releases is None else "page" if releases else "dependency"
        kind = "external" if is_external else kind
        return KnownName(name, kind, is_installed=lookups.is_installed)
    if providers := lookups.providers.get(name, ()):
        return KnownName(name, "virtual", others=providers)
    return KnownName(name, "unknown", others=near_names(lookups, name) if with_near else ())


def package_counts(lookups: Lookups) -> dict[str, int]:
    """Return the number of binaries of each known package, by name; cached."""
    return lookups.once(PACKAGE_COUNTS, lambda: dict(select(lookups.conn, PACKAGE_COUNTS)))


def near_names(lookups: Lookups, name: str) -> tuple[str, ...]:
    """Return the names of packages near an unknown one, of those with binaries if possible."""
    counts = package_counts(lookups)
    return close_names(name, filter(counts.get, counts)) or close_names(name, counts)


def close_names(name: str, known: Iterable[str], similarity: float = 0.7) -> tuple[str, ...]:
    """Return the known names that are similar to a name, then those that contain it or are in it.

    Case is ignored, and very short names are in too many others. `similarity` is the least ratio
    of `difflib`.
    """
    text, names = name.strip().lower(), {other.lower(): other for other in known}
    similar = difflib.get_close_matches(text, names, MOST_NEAR, similarity)
    longer = [other for other in names if text in other] if len(text) > 2 else []
    shorter = [other for other in names if len(other) > 3 and other in text]
    close = dict.fromkeys((*similar, *sorted(longer, key=len), *sorted(shorter, key=len)[::-1]))
    return tuple(names[other] for other in close)[:MOST_NEAR]


def spec_of_hash(lookups: Lookups, text: str) -> int:
    """Return the id of the spec whose hash begins with a text, which may have a `/` before it.

    Raises UnknownHashError if none begins so, or several do.
    """
    prefix = text.lower().removeprefix("/")
    specs = specs_beginning(lookups.conn, prefix, MOST_HASHES + 1) if prefix else {}
    if not specs:
        meaning = known_name(lookups, text)
        advice = "`find SPEC --hashes` lists hashes"
        sentence = f" {meaning.sentence};" if meaning.kind != "unknown" else ""
        raise UnknownHashError(f"no hash in this database begins with {text!r};{sentence} {advice}")
    if len(specs) > 1:
        hashes = ", ".join([*specs.values()][:MOST_HASHES])
        more = ", and more" if len(specs) > MOST_HASHES else ""
        raise UnknownHashError(f"several hashes begin with {text!r}: {hashes}{more}; give one")
    return next(iter(specs))


def known_names(lookups: Lookups) -> KnownNames:
    """Return tests for the packages, virtual packages and hashes of a database, in any spelling."""
    knows = read_spellings(lookups).knows
    return KnownNames(
        lambda name: knows("package", name) or knows("virtual", name),
        lambda prefix: bool(specs_beginning(lookups.conn, prefix, 1)),
    )


def spec_in(lookups: Lookups, text: str, version: str | None = None) -> PastedSpec:
    """Return the spec in a typed or pasted text, in the syntax of Spack 1.0.

    Raises UnknownSpackVersion if `version`, for which it is written, is not a version of Spack.
    """
    pasted = pasted_spec(text, known_names(lookups))
    return replace(pasted, spec=todays_spec(pasted.spec, version))


class UnknownNameError(BuilderError):
    """An unknown release, stack, package or machine; the message has the names that are close."""


def explicitly(lookups: Lookups) -> Conditions:
    """Return the condition that a spec was installed by name, not as a dependency."""
    verdict = Verdict(select_ids(lookups.conn, "SELECT spec FROM installs WHERE explicit"))
    return (Condition("specs", "asked for explicitly", verdict),)


def scope_of(lookups: Lookups, explicit: bool = False, /, **arguments: str | None) -> Conditions:
    """Return the conditions of names by their kinds (`SCOPE`), in any spelling.

    Raises UnknownNameError for names that the database or archspec does not have.
    """
    canonical = read_spellings(lookups).canonical
    kinds = sorted(arguments, key=SCOPE.index)
    names = {kind: canonical(kind, name) for kind in kinds if (name := arguments[kind]) is not None}
    ids = {
        "release": {record.name: key for key, record in lookups.releases.items()},
        "stack": {record.name: key for key, record in lookups.stacks.items()},
        "target": {name: key for key, name in lookups.words["target"].items()},
    }
    for kind in ids:
        if kind in names and names[kind] not in ids[kind]:
            first = ", ".join(islice(ids[kind], _FEW)) + (", …" if len(ids[kind]) > _FEW else "")
            close = hint(names[kind], ids[kind], f"{kind}s in this database: {first or 'none'}")
            raise UnknownNameError(f"no {kind} is called {names[kind]!r}; {close}")
    if "package" in names and names["package"] not in lookups.packages:
        raise UnknownNameError(known_name(lookups, names["package"]).sentence)
    if "host" in names and not (names["host"] in lookups.families or is_known(names["host"])):
        close = hint(names["host"], known_targets(), "expected a name such as zen3 or neoverse_v2")
        raise UnknownNameError(f"archspec knows no target {names['host']!r}; {close}")
    conditions = []
    for kind, name in names.items():
        text = f"{kind}={name}" if kind in ("platform", "os") else name
        value: Asked = ids[kind][name] if kind in ("release", "stack") else Word(name)
        conditions.append(Condition(kind, text, name if kind == "host" else value))
    return (*conditions, *(explicitly(lookups) if explicit else ()))


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the names that are close to an unknown one, or the text `otherwise`."""
    close = difflib.get_close_matches(name, [*known], cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise
