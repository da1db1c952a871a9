"""The records of an index, as its source says them and as a built file does, in one normal form.

Lists of Spack's that are sets (edges, types, virtuals) are sorted; everything else is compared as
it is. Neither side passes through the reader that filled the file: that is what is on trial.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

Values = dict[str, Any]

_MIRROR = """
SELECT mirrors.id FROM mirrors
JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
WHERE releases.name = :release AND stacks.name = :stack AND mirrors.path = :path
"""
_RECORDS = """
SELECT specs.hash, specs.id, packages.name, versions.name, platforms.name, operating_systems.name,
  targets.name, nodes.namespace, nodes.package_hash, nodes.parameters,
  target_descriptions.description, nodes.external, nodes.rest, records.ref_count,
  records.in_buildcache, records.rest, old_hashes.full_hash, old_hashes.build_hash,
  built.hash
FROM records
JOIN specs ON specs.id = records.spec
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN platforms ON platforms.id = configurations.platform
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN targets ON targets.id = configurations.target
JOIN nodes ON nodes.id = records.node
LEFT JOIN target_descriptions ON target_descriptions.id = nodes.target
LEFT JOIN old_hashes ON old_hashes.spec = records.spec AND old_hashes.mirror = records.mirror
LEFT JOIN splices ON splices.spec = records.spec AND splices.mirror = records.mirror
LEFT JOIN specs AS built ON built.id = splices.build_spec
WHERE records.mirror = :mirror
"""
_EDGES = """
SELECT specs.hash, dependency_types.types, dependency_virtuals.virtuals, dependencies.direct
FROM dependencies
JOIN specs ON specs.id = dependencies.dependency
JOIN dependency_types ON dependency_types.id = dependencies.types
JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
WHERE dependencies.spec = :spec
"""
_DECLARED = """
SELECT code, message, declared FROM problems WHERE mirror = :mirror AND declared IS NOT NULL
"""


class RecordsOfFile:
    """The records of one mirror, as a built file says them."""

    def __init__(self, connection: sqlite3.Connection, mirror: int) -> None:
        self._connection = connection
        self._rows = {
            row[0]: row[1:] for row in connection.execute(_RECORDS, {"mirror": mirror}).fetchall()
        }
        self._by_build_hash = {row[16]: key for key, row in self._rows.items() if row[16]}
        self._declared: dict[str, list[tuple[str, str, Any]]] = {}
        for code, message, declared in connection.execute(_DECLARED, {"mirror": mirror}):
            dag_hash = message.removeprefix("the spec ")[:32]
            self._declared.setdefault(dag_hash, []).append((code, message, json.loads(declared)))

    def hashes(self) -> set[str]:
        """Return the hashes of all records."""
        return set(self._rows)

    def normal(self, said: Mapping[str, Any]) -> Values:
        """Return what a source says of a spec, in normal form."""
        record = dict(said)
        spec = record.pop("spec")
        if "name" not in spec:
            ((name, node),) = spec.items()
            edges = node.get("dependencies", {}).items()
            spec = {**node, "name": name}
            spec["dependencies"] = [{"name": to, **edge} for to, edge in edges]
        edges = sorted(self._edge(each) for each in spec.pop("dependencies", ()))
        arch = spec.pop("arch")
        return {**record, **spec, **arch, "dependencies": edges}

    def _edge(self, said: Mapping[str, Any]) -> list[Any]:
        how = said.get("parameters", {"deptypes": said.get("type", ())})
        dag_hash = self._by_build_hash.get(said["hash"], said["hash"])
        direct = how.get("direct")
        return [
            dag_hash,
            sorted(how["deptypes"]),
            sorted(how.get("virtuals", ())),
            -1 if direct is None else int(direct),
        ]

    def stored(self, dag_hash: str) -> Values:
        """Return what the file says of a spec, in normal form; `KeyError` if it has none."""
        (
            key, name, version, platform, system, target, namespace, package_hash, parameters,
            description, external, rest, ref_count, in_buildcache, record_rest, full_hash,
            build_hash, build_spec,
        ) = self._rows[dag_hash]  # fmt: skip
        found: Values = {
            "name": name,
            "version": version,
            "platform": platform,
            "platform_os": system,
            "target": json.loads(description) if description else target,
            "namespace": namespace,
            "parameters": json.loads(parameters),
            "hash": dag_hash,
            **json.loads(rest),
            **json.loads(record_rest or "{}"),
            "dependencies": self._edges(key),
        }
        known = {
            "package_hash": package_hash,
            "external": json.loads(external) if external else None,
            "ref_count": ref_count,
            "in_buildcache": None if in_buildcache is None else bool(in_buildcache),
            "full_hash": full_hash,
            "build_hash": build_hash,
            "build_spec": {"name": name, "hash": build_spec} if build_spec else None,
        }
        found |= {key: value for key, value in known.items() if value is not None}
        return self._with_declared(dag_hash, found)

    def _edges(self, spec: int) -> list[list[Any]]:
        rows = self._connection.execute(_EDGES, {"spec": spec})
        return sorted(
            [dag_hash, _set(types), _set(virtuals), -1 if direct is None else direct]
            for dag_hash, types, virtuals, direct in rows
        )

    def _with_declared(self, dag_hash: str, found: Values) -> Values:
        """Put back what this mirror says otherwise than is stored."""
        for code, message, declared in self._declared.get(dag_hash, ()):
            if code == "two_dependencies":
                found["dependencies"] = sorted(
                    [to, types, virtuals, -1 if direct is None else int(direct)]
                    for to, types, virtuals, direct in declared
                )
            elif code == "two_configurations":
                target = found["target"]
                found |= {
                    "name": declared["package"],
                    "version": declared["version"],
                    "platform": declared["platform"],
                    "platform_os": declared["os"],
                    "target": declared["target"] if isinstance(target, str) else target,
                }
            elif code == "unknown_key":
                _put_back(found, message, declared)
        return found


def mirror_of(
    connection: sqlite3.Connection, release: str, stack: str, path: str
) -> RecordsOfFile | None:
    """Return the records of the index that lay there; None if the file has none from there."""
    where = {"release": release, "stack": stack, "path": path}
    found = connection.execute(_MIRROR, where).fetchone()
    return None if found is None else RecordsOfFile(connection, found[0])


def _set(text: str) -> list[str]:
    return text.split(",") if text else []


def _put_back(found: Values, message: str, declared: Any) -> None:
    """Put a key that is not known back where it was, if that is the record or its node."""
    path = message.partition("the key ")[2].partition(" is not known")[0]
    if "." not in path and "[" not in path:
        found[path] = declared
