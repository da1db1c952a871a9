"""Installed trees for tests: what the index of an installation says."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.indexes import real

INSTALLED_AT = 1_701_820_800
"""2023-12-06 00:00:00 in UTC; each record of `real_tree` is installed a minute after
the last.
"""


def installed(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the record of an installed spec."""
    name = spec["name"] if "name" in spec else next(iter(spec))
    return {
        "spec": spec,
        "ref_count": 0,
        "path": f"/opt/sw/{name}",
        "installed": True,
        "explicit": False,
        "installation_time": INSTALLED_AT + 0.5,
        **more,
    }


def write_tree(folder: Path, records: Iterable[dict[str, Any]]) -> Path:
    """Write the index of an installation that has these records."""
    installs = {record["spec"]["hash"]: record for record in records}
    (folder / ".spack-db").mkdir(parents=True)
    text = json.dumps({"database": {"version": "8", "installs": installs}})
    (folder / ".spack-db" / "index.json").write_text(text)
    return folder


def real_tree() -> list[dict[str, Any]]:
    """Return records of a real index as if they were installed, hdf5 explicitly."""
    records = json.loads(real())["database"]["installs"].values()
    needed = {
        to["hash"]
        for record in records
        for to in record["spec"].get("dependencies", ())
    }
    found = []
    for at, each in enumerate(records):
        spec = each["spec"]
        if at % 3 == 0 and spec["hash"] not in needed:
            continue
        path = (spec.get("external") or {}).get(
            "path"
        ) or f"/opt/sw/{spec['name']}-{spec['hash']}"
        when = INSTALLED_AT + 60 * at
        explicit = spec["name"] == "hdf5"
        found.append(
            installed(spec, path=path, installation_time=when, explicit=explicit)
        )
    return found
