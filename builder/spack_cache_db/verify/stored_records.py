"""Records of an index in one normal form, read from its source or from a published file.

Lists of Spack's that are sets (edges, types, virtuals) are sorted; everything else is compared as
it is. Neither side passes through the reader that filled the file: that is what is on trial.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import getitem
from typing import Any

from spack_cache_db.build.pipeline import external_without_paths, without_path
from spack_cache_db.schema import CONFIGURATION_JOINS, LEFT_OUT, PATHS, word_of
from spack_cache_db.sources.columns import Document
from spack_cache_db.verify.stored_values import IS_BINARY

Values = dict[str, Any]

# The same bytes may have lain elsewhere as well.
_MIRROR = """
SELECT mirrors.id FROM mirrors
JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
WHERE releases.name = :release AND stacks.name = :stack
  AND (mirrors.path = :path OR mirrors.sha256 = :sha256)
ORDER BY mirrors.path = :path AND mirrors.sha256 = :sha256 DESC, mirrors.path = :path DESC
"""
_WORDS = ", ".join(map(word_of, ("package", "version", "platform", "os", "target")))
# What an index tells of without listing it is held against the spec's own configuration.
_RECORDS = f"""
SELECT specs.hash, specs.id, {_WORDS}, nodes.namespace, nodes.package_hash, nodes.parameters,
  target_descriptions.description, nodes.external, nodes.rest, records.ref_count,
  records.in_buildcache, records.rest, old_hashes.full_hash, old_hashes.build_hash,
  built.hash
FROM records
JOIN mirrors ON mirrors.id = records.mirror
JOIN specs ON specs.id = records.spec
JOIN nodes ON nodes.id = records.node
LEFT JOIN listings AS here
  ON here.release = mirrors.release AND here.spec = records.spec AND {IS_BINARY}
JOIN configurations ON configurations.id = coalesce(here.configuration, specs.configuration)
{CONFIGURATION_JOINS}
LEFT JOIN target_descriptions ON target_descriptions.id = nodes.target
LEFT JOIN old_hashes ON old_hashes.spec = records.spec AND old_hashes.mirror = records.mirror
LEFT JOIN splices ON splices.spec = records.spec AND splices.mirror = records.mirror
LEFT JOIN specs AS built ON built.id = splices.build_spec
WHERE records.mirror = :mirror
"""  # noqa: S608 - our own text
_EDGES = """
SELECT specs.hash, dependency_types.types, dependency_virtuals.virtuals, dependencies.direct
FROM dependencies
JOIN specs ON specs.id = dependencies.dependency
JOIN dependency_types ON dependency_types.id = dependencies.types
JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
WHERE dependencies.spec = :spec
"""
_NOT_LISTED = f"""
SELECT specs.hash
FROM records
JOIN mirrors ON mirrors.id = records.mirror
JOIN nodes ON nodes.id = records.node
JOIN specs ON specs.id = records.spec
WHERE records.mirror = :mirror AND {IS_BINARY} AND NOT EXISTS (
  SELECT 1 FROM listings
  JOIN stack_set_members ON stack_set_members.stack_set = listings.stacks
  WHERE listings.release = mirrors.release AND listings.spec = records.spec
    AND stack_set_members.stack = mirrors.stack
)
ORDER BY specs.hash
"""  # noqa: S608 - our own text
_TARBALLS = """
SELECT hash, size, tarball FROM build_listings
WHERE release = (
  SELECT releases.name FROM mirrors JOIN releases ON releases.id = mirrors.release
  WHERE mirrors.id = :mirror
)
"""
_DECLARED = """
SELECT code, message, declared FROM problems WHERE mirror = :mirror AND declared IS NOT NULL
"""

# What the records of a mirror need, and it may have no record of.
_NAMES = """
SELECT specs.hash, packages.name
FROM (
  SELECT dependencies.dependency AS spec FROM records
  JOIN dependencies ON dependencies.spec = records.spec WHERE records.mirror = :mirror
  UNION
  SELECT build_spec FROM splices WHERE mirror = :mirror
) AS needed
JOIN specs ON specs.id = needed.spec
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
WHERE NOT EXISTS (
  SELECT 1 FROM records WHERE records.spec = needed.spec AND records.mirror = :mirror)
"""
_ORIGIN = "SELECT 1 FROM origin WHERE name = ? AND value = ?"


class StoredRecords:
    """The records of one mirror, as a built file says them."""

    def __init__(self, connection: sqlite3.Connection, mirror: int) -> None:
        self._connection = connection
        self._mirror = mirror
        left_out = connection.execute(_ORIGIN, (PATHS, LEFT_OUT)).fetchone()
        self._is_without_paths = left_out is not None
        self._rows = {
            row[0]: row[1:] for row in connection.execute(_RECORDS, {"mirror": mirror}).fetchall()
        }
        self._by_build_hash = {row[16]: key for key, row in self._rows.items() if row[16]}
        self._declared: dict[str, list[tuple[str, Any]]] = {}
        for code, message, declared in connection.execute(_DECLARED, {"mirror": mirror}):
            dag_hash = message.removeprefix("the spec ")[:32]
            self._declared.setdefault(dag_hash, []).append((code, json.loads(declared)))
        named = connection.execute(_NAMES, {"mirror": mirror})
        self._names = (
            dict(named)
            | {dag_hash: row[1] for dag_hash, row in self._rows.items()}
            | {
                dag_hash: declared["package"]
                for dag_hash, told in self._declared.items()
                for code, declared in told
                if code in ("two_configurations", "no_record")
            }
        )

    def hashes(self) -> set[str]:
        """Return the hashes of all records."""
        return set(self._rows)

    def not_listed(self) -> list[str]:
        """Return the hashes of the binaries that its release does not list in its stack."""
        rows = self._connection.execute(_NOT_LISTED, {"mirror": self._mirror})
        return [dag_hash for (dag_hash,) in rows]

    def tarballs(self) -> dict[str, dict[str, Any]]:
        """Return the `size` and `tarball` of each spec that its release lists, as here said."""
        found = {}
        for dag_hash, size, tarball in self._connection.execute(
            _TARBALLS, {"mirror": self._mirror}
        ):
            declared = dict(self._declared.get(dag_hash, ()))
            found[dag_hash] = {
                "size": declared.get("two_sizes", size),
                "tarball": declared.get("two_tarballs", tarball),
            }
        return found

    def normal(self, said: Mapping[str, Any]) -> Values:
        """Return what a source says of a spec, in normal form; what was given is taken apart."""
        record = dict(said)
        unknown = self._unknown(record)
        spec = record.pop("spec")
        if self._is_without_paths:
            record = without_path(record)
        if "name" not in spec:
            ((name, node),) = spec.items()
            edges = node.get("dependencies", {}).items()
            spec = {**node, "name": name}
            spec["dependencies"] = [{"name": to, **edge} for to, edge in edges]
        if self._is_without_paths and isinstance(spec.get("external"), dict):
            spec["external"] = external_without_paths(spec["external"])
        arch = spec.pop("arch")
        found = {"dependencies": _each_once(map(self._edge, spec.pop("dependencies", ())))}
        for prefix, values in (("", record), ("spec.", spec), ("spec.arch.", arch)):
            found |= {f"{prefix}{key}": value for key, value in values.items()}
        return found | unknown

    def _unknown(self, record: Any) -> Values:
        """Take what the file has as unknown keys out of a record; return it by its place."""
        found = {}
        row = self._rows.get(_hash_of(record))
        for path, _ in _record_rest(row[14] if row else None)[1]:
            *way, key = path
            try:
                found[_place(path)] = reduce(getitem, way, record).pop(key)
            except (LookupError, TypeError, AttributeError):
                continue  # What is stored remains, and differs.
        return found

    def _edge(self, said: Mapping[str, Any]) -> list[Any]:
        rest = dict(said)
        how = rest.pop("parameters", None) or {"deptypes": rest.pop("type", ())}
        dag_hash, name = rest.pop("hash"), rest.pop("name")
        known = {"deptypes", "virtuals", "direct"}
        rest |= {key: value for key, value in how.items() if key not in known}
        edge = [
            self._by_build_hash.get(dag_hash, dag_hash),
            name,
            sorted(how["deptypes"]),
            sorted(how.get("virtuals", ())),
            _number(how.get("direct")),
        ]
        return [*edge, rest] if rest else edge

    def stored(self, dag_hash: str) -> Values:
        """Return what the file says of a spec, in normal form; `KeyError` if it has none."""
        (
            key, name, version, platform, system, target, namespace, package_hash, parameters,
            description, external, rest, ref_count, in_buildcache, record_rest, full_hash,
            build_hash, build_spec,
        ) = self._rows[dag_hash]  # fmt: skip
        kept, unknown = _record_rest(record_rest)
        found: Values = {
            "spec.name": name,
            "spec.version": version,
            "spec.arch.platform": platform,
            "spec.arch.platform_os": system,
            "spec.arch.target": json.loads(description) if description else target,
            "spec.namespace": namespace,
            "spec.parameters": json.loads(parameters),
            "spec.hash": dag_hash,
            **{f"spec.{key}": value for key, value in json.loads(rest).items()},
            **kept,
            "dependencies": self._edges(key),
        }
        known = {
            "spec.package_hash": package_hash,
            "spec.external": json.loads(external) if external else None,
            "ref_count": ref_count,
            "in_buildcache": None if in_buildcache is None else bool(in_buildcache),
            "spec.full_hash": full_hash,
            "spec.build_hash": build_hash,
            "spec.build_spec": build_spec
            and {"name": self._names.get(build_spec), "hash": build_spec},
        }
        found |= {key: value for key, value in known.items() if value is not None}
        found |= {_place(path): value for path, value in unknown}
        return self._with_declared(dag_hash, found)

    def _edges(self, spec: int) -> list[Any]:
        rows = self._connection.execute(_EDGES, {"spec": spec})
        return _each_once(
            [dag_hash, self._names.get(dag_hash), _set(types), _set(virtuals), _number(direct)]
            for dag_hash, types, virtuals, direct in rows
        )

    def _with_declared(self, dag_hash: str, found: Values) -> Values:
        """Put back what this mirror says otherwise than is stored."""
        for code, declared in self._declared.get(dag_hash, ()):
            if code == "two_dependencies":
                found["dependencies"] = _each_once(
                    [to, self._names.get(to), types, virtuals, _number(direct)]
                    for to, types, virtuals, direct in declared
                )
            elif code == "two_configurations":
                target = found["spec.arch.target"]
                found |= {
                    "spec.name": declared["package"],
                    "spec.version": declared["version"],
                    "spec.arch.platform": declared["platform"],
                    "spec.arch.platform_os": declared["os"],
                    "spec.arch.target": declared["target"] if isinstance(target, str) else target,
                }
        return found


def stored_records(connection: sqlite3.Connection, document: Document) -> StoredRecords | None:
    """Return the records of an index as the file has them; None if it has none from there."""
    facts = document.index_facts
    where = {
        "release": document.release,
        "stack": facts.stack if facts else None,
        "path": document.path,
        "sha256": document.sha256,
    }
    found = connection.execute(_MIRROR, where).fetchone()
    return None if found is None else StoredRecords(connection, found[0])


def _set(text: str) -> list[str]:
    return text.split(",") if text else []


def _each_once(edges: Iterable[Any]) -> list[Any]:
    return [edge for edge, _ in groupby(sorted(edges))]


def _number(direct: Any) -> int:
    return -1 if direct is None else int(direct)


def _record_rest(text: str | None) -> tuple[Values, list[Any]]:
    """Return the other keys of a record, and those of them that are not known, with their paths."""
    kept: Values = json.loads(text or "{}")
    return kept, kept.pop("unknown_keys", [])


def _place(path: Sequence[str | int]) -> str:
    return f"the unknown key {json.dumps(path, ensure_ascii=False)}"


def _hash_of(record: Any) -> str:
    spec = record["spec"]
    return str(spec["hash"] if "name" in spec else next(iter(spec.values()))["hash"])
