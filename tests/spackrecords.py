"""The 905 records of Spack's recorded answers, as pages: one per package and release `cache`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from spack_cache_db.query.asked import SpecRecord
from tests.pagetexts import page, spec
from tests.paths import DATA

SPACK: dict[str, Any] = json.loads((DATA / "satisfies.json").read_text())


@cache
def records() -> tuple[SpecRecord, ...]:
    """Give the records as pages print them."""
    return tuple(
        SpecRecord(
            name, version, compiler, os, platform, target, tuple(SPACK["variants"][place]), hash_
        )
        for hash_, name, version, compiler, os, platform, target, place in SPACK["specs"]
    )


def write_records(folder: Path) -> Path:
    """Write the pages of the records."""
    folder.mkdir()
    for name in sorted({record.name for record in records()}):
        specs = [
            spec(
                hash=record.hash,
                versions=[record.version],
                compiler=record.compiler,
                os=record.os,
                platform=record.platform,
                target=record.target,
                variants=list(record.variants),
            )
            for record in records()
            if record.name == name
        ]
        (folder / f"{name}.md").write_bytes(page(name, "cache", specs))
    return folder
