"""What package data says of a package, as its source says it and as a built file gives it back.

Lists that are sets are sorted by what they name; everything else is compared as it is. Neither side
passes through the reader that filled the file: that is what is on trial.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import zstandard

from spack_cache_db.build.known_packages import PACKAGES_PER_REST
from spack_cache_db.sources.columns import LISTED, NAMED, PUBLISHED
from spack_cache_db.sources.packages import TYPES, read_facts
from spack_cache_db.sources.strictness import read_strictly
from spack_cache_db.sources.units import RawFile

Values = dict[str, Any]

_PACKAGES = """
SELECT id, name, description, homepage, build_system, latest_version, recipe FROM known_packages
"""
_VERSIONS = """
SELECT version, deprecated FROM known_versions WHERE package = :name ORDER BY position
"""
_VARIANTS = """
SELECT name, default_value, description FROM known_variants WHERE package = :name
"""
_EDGES = "SELECT dependency, package, types FROM known_dependencies"
_REST = "SELECT data FROM package_rests WHERE id = :id"

_SETS = ("versions", "versions_deprecated", "variants", "dependencies", "dependent_to")


def said_packages(file: RawFile) -> Iterator[tuple[str, str, Values]]:
    """Yield each package of a file: its name, the form in which it is told of, what is said.

    Raises:
        InputError: the file is refused.
    """
    read_facts(file)
    values = read_strictly(file.data)
    if isinstance(values, dict):
        yield values["name"], PUBLISHED, normal(values)
        return
    for each in values:
        if isinstance(each, str):
            yield each, NAMED, {"name": each}
        else:
            yield each["name"], LISTED, normal(each)


def normal(values: Mapping[str, Any]) -> Values:
    """Return what is said of a package with all sets sorted."""
    found = dict(values)
    for key in _SETS:
        some = found.get(key)
        if isinstance(some, list):
            found[key] = sorted(some, key=_sorted_json)
        elif isinstance(some, dict):
            found[key] = {
                name: sorted(each, key=_sorted_json) if isinstance(each, list) else each
                for name, each in some.items()
            }
    return found


def _sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class StoredPackages:
    """The packages of which a built file has package data."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows = {row[1]: row for row in connection.execute(_PACKAGES)}
        self._needed: dict[str, dict[str, str | None]] = defaultdict(dict)
        self._dependents: dict[str, list[str]] = defaultdict(list)
        for dependency, name, types in connection.execute(_EDGES):
            self._needed[name][dependency] = types
            self._dependents[dependency].append(name)
        self._rests: dict[int, Any] = {}

    def values(self, name: str, form: str) -> Values | None:
        """Return what the file says of a package in a form; None if it has none of that form."""
        row = self._rows.get(name)
        if row is None:
            return None
        place = row[0] - 1
        rest = self._rest(place // PACKAGES_PER_REST + 1)[place % PACKAGES_PER_REST].get(form)
        if rest is None:
            return None
        if form == NAMED:
            return {"name": name}
        _, _, description, homepage, build_system, latest_version, recipe = row
        found: Values = {"name": name, "homepage": homepage, "latest_version": latest_version}
        if form == PUBLISHED:
            found |= {"description": description, "build_system": build_system}
            found |= self._published(name, rest)
        else:
            found |= {"file": recipe}
            found |= self._listed(name)
        found = {key: value for key, value in found.items() if value is not None}
        for absent in rest.get("absent", ()):
            found.pop(absent, None)
        return normal(found | rest.get("keys", {}))

    def _published(self, name: str, rest: Values) -> Values:
        versions = self._connection.execute(_VERSIONS, {"name": name}).fetchall()
        more = rest.get("versions") or [{}] * len(versions)
        lists: dict[int, list[Values]] = {0: [], 1: []}
        if not {"versions", "versions_deprecated"} & rest.get("keys", {}).keys():
            for (version, deprecated), other in zip(versions, more, strict=True):
                lists[deprecated or 0].append({"name": version, **other})
        variants = self._connection.execute(_VARIANTS, {"name": name})
        named = {"dependencies": self._needed[name], "dependent_to": self._dependents[name]}
        more, fewer = rest.get("more", {}), rest.get("fewer", {})
        said = rest.get("descriptions", {})
        return {
            "versions": lists[0],
            "versions_deprecated": lists[1],
            "variants": [
                {"name": each, "default": _default(default), "description": text}
                for each, default, text in variants
            ],
            **{
                key: [
                    {"name": each, "description": self._description(each, said)}
                    for each in {*names, *more.get(key, ())}.difference(fewer.get(key, ()))
                ]
                for key, names in named.items()
            },
        }

    def _description(self, name: str, said: Mapping[str, str]) -> str | None:
        for described in (said, self._rest(0)):
            if name in described:
                return described[name]
        text = self._rows[name][2] if name in self._rows else None
        return text.rstrip() if text else text

    def _listed(self, name: str) -> Values:
        dependencies: dict[str, list[str]] = {each: [] for each in TYPES}
        for dependency, types in self._needed[name].items():
            for each in types.split(",") if types else ():
                dependencies[each].append(dependency)
        versions = self._connection.execute(_VERSIONS, {"name": name})
        return {"versions": [version for version, _ in versions], "dependencies": dependencies}

    def _rest(self, number: int) -> Any:
        if number not in self._rests:
            (data,) = self._connection.execute(_REST, {"id": number}).fetchone()
            self._rests[number] = json.loads(zstandard.ZstdDecompressor().decompress(data))
        return self._rests[number]


def _default(text: str) -> str | bool:
    return {"True": True, "False": False}.get(text, text)
