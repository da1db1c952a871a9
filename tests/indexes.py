"""Indexes for tests: a real one of Spack 1.1, and small ones of each version of the
database.
"""

import copy
import gzip
import json
from base64 import b32encode
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from tests.paths import DATA

REAL_FILE = DATA / "indexes" / "index_v8.json.gz"
MIRRORS = DATA / "mirrors"
VIEWS = DATA / "mirror_with_views"
"""A mirror that Spack 1.2 wrote, with the views `myview` and `sub/view2`."""

FLAGS: dict[str, Any] = {
    name: []
    for name in ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
}

OTHERS: list[Any] = [
    None, True, 0, -1, 10**30, 1.5, 1e308, "", "x" * 300, "x" * 10_000, "\ud800", "a\0b", "a\nb",
    "a,b", [], [1], ["a"], [[]], {}, {"a": 1}, {"a": {"b": []}},
]  # fmt: skip
"""A value of each type, and some that look right."""


@cache
def real() -> bytes:
    """Return the bytes of an index of 905 records, written by Spack 1.1.0."""
    return gzip.decompress(REAL_FILE.read_bytes())


def hash_of(name: str) -> str:
    """Return a hash for a spec of this name."""
    return b32encode(sha1(name.encode()).digest()).decode().lower()


def node(name: str, *edges: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a node as database 8 has it."""
    return {
        "name": name,
        "version": "1.0",
        "arch": {"platform": "linux", "platform_os": "debian12", "target": "x86_64_v3"},
        "namespace": "builtin",
        "parameters": {"build_system": "generic", **FLAGS},
        "package_hash": f"recipe-of-{name}",
        "dependencies": list(edges),
        "annotations": {"original_specfile_version": 5},
        "hash": hash_of(name),
        **more,
    }


def edge(
    name: str, *types: str, virtuals: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """Return an edge as databases 7 and 8 have it."""
    parameters = {"deptypes": list(types), "virtuals": list(virtuals), **more}
    return {"name": name, "hash": hash_of(name), "parameters": parameters}


def record(
    spec: dict[str, Any], *, is_binary: bool = True, **more: Any
) -> dict[str, Any]:
    """Return a record of a build cache."""
    return {"spec": spec, "ref_count": 1, "in_buildcache": is_binary, **more}


def index(*records: dict[str, Any], version: str = "8") -> bytes:
    """Return the bytes of an index."""
    installs = {_hash(record["spec"]): record for record in records}
    return json.dumps({"database": {"version": version, "installs": installs}}).encode()


def _hash(spec: dict[str, Any]) -> str:
    if "hash" in spec:
        return str(spec["hash"])
    # In version 5, a node is below its name.
    (node_below_name,) = spec.values()
    return str(node_below_name["hash"])


def old_node(
    name: str, version: str, *needs: str, types: tuple[str, ...] = ("link",)
) -> Any:
    """Return a node with a compiler, as database 5, 6 or 7 has it.

    Args:
        version: the version of the database.
        needs: the names of its dependencies.
        types: the types of its edges.
    """
    spec = node(
        name,
        compiler={"name": "gcc", "version": "12.2.0"},
        full_hash=hash_of(name[::-1]),
    )
    del spec["annotations"]
    if version == "7":
        spec["dependencies"] = [edge(needed, *types) for needed in needs]
        del spec["full_hash"]
        return spec
    edges: list[dict[str, Any]] = []
    for needed in needs:
        edges.append({"name": needed, "hash": hash_of(needed), "type": list(types)})
    spec["dependencies"] = edges
    if version == "6":
        return spec
    # Version 5 has names as keys, of nodes and of edges.
    spec["dependencies"] = {old_edge.pop("name"): old_edge for old_edge in edges}
    del spec["package_hash"]
    del spec["name"]
    return {name: spec}


def write_layout3(
    folder: Path, indexes: Mapping[str | None, bytes], *, is_signed: bool = False
) -> Path:
    """Write a mirror of layout 3 that has these indexes: by the name of the view, None
    for none.
    """
    for view, data in indexes.items():
        manifests = folder / "v3" / "manifests" / "index" / (view or "")
        manifests.mkdir(parents=True, exist_ok=True)
        blob = write_blob(folder, data, "application/vnd.spack.db.v8+json")
        text = json.dumps({"version": 3, "data": [blob]})
        if is_signed:
            text = signed(text)
        (manifests / "index.manifest.json").write_text(text)
    (folder / "v3" / "layout.json").write_text('{"signing": "gpg"}')
    return folder


def write_blob(folder: Path, data: bytes, media_type: str) -> dict[str, Any]:
    """Write a blob of layout 3; return its entry in a manifest."""
    checksum = sha256(data).hexdigest()
    path = folder / "blobs" / "sha256" / checksum[:2] / checksum
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {
        "contentLength": len(data),
        "mediaType": media_type,
        "compression": "none",
        "checksumAlgorithm": "sha256",
        "checksum": checksum,
    }


def signed(text: str) -> str:
    """Return a text in a clear signature, as gpg makes one."""
    # gpg puts `- ` before lines that begin with a dash.
    lines = []
    for line in text.split("\n"):
        escaped = f"- {line}" if line.startswith("-") else line
        lines.append(escaped)
    body = "\n".join(lines)
    return (
        f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{body}\n"
        "-----BEGIN PGP SIGNATURE-----\n\niQIzBAEBCgAdFiEE\n-----END PGP SIGNATURE-----\n"
    )


KeyPath = tuple[str | int, ...]
"""The keys and positions that lead to a value within a value: `("spec", 0, "name")`."""


def key_paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of a value, and of each value within it."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from key_paths(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from key_paths(inner, (*path, position))


def replaced(value: Any, path: KeyPath, other: Any) -> Any:
    """Return a value with another one at a path in it."""
    if not path:
        return other
    step, *below = path
    changed = copy.copy(value)
    changed[step] = replaced(value[step], tuple(below), other)
    return changed


def lock_of(*nodes: dict[str, Any]) -> bytes:
    """Return a lockfile of nodes, the first of which is its root."""
    root = nodes[0]
    lock = {
        "_meta": {"file-type": "spack-lockfile", "lockfile-version": 6},
        "roots": [{"hash": root["hash"], "spec": root["name"]}],
        "concrete_specs": {node["hash"]: node for node in nodes},
    }
    return json.dumps(lock).encode()
