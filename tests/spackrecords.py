"""The 905 records of Spack's recorded answers, as pages: one per package and release
`cache`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from spack_cache_db.model import Configuration
from tests.pagetexts import page, spec
from tests.paths import DATA

SPACK: dict[str, Any] = json.loads((DATA / "satisfies.json").read_text())


@cache
def records() -> dict[str, Configuration]:
    """Return what pages print of each spec, by its hash."""
    return {
        dag_hash: Configuration._make((*words, tuple(SPACK["variants"][place])))
        for dag_hash, *words, place in SPACK["specs"]
    }


def write_records(folder: Path) -> Path:
    """Write the pages of the records."""
    folder.mkdir()
    specs_of: dict[str, list[dict[str, Any]]] = {}
    for dag_hash, record in records().items():
        detail = spec(
            hash=dag_hash,
            versions=[record.version],
            compiler=record.compiler,
            os=record.os,
            platform=record.platform,
            target=record.target,
            variants=list(record.variants),
        )
        specs_of.setdefault(record.package, []).append(detail)
    for package, specs in specs_of.items():
        (folder / f"{package}.md").write_bytes(page(package, "cache", specs))
    return folder
