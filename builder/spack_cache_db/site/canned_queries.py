"""The canned queries of metadata.yml under Datasette 1.0, which reads queries from elsewhere.

0.65 reads them from the metadata, 1.0 from its configuration alone (`datasette.yml`, `--config`).
So that they stand once and every way to start Datasette has them, they are added when it starts,
with `add_query` (Datasette 1.0, "Internals for plugins").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


async def add_queries(datasette: Any, metadata: Path) -> None:
    """Add the queries that a metadata file has for each database that is served.

    They are trusted: where visitors may not send SQL, these still answer.
    """
    described = yaml.safe_load(metadata.read_text(encoding="utf-8"))
    for database, content in (described.get("databases") or {}).items():
        if database not in datasette.databases:
            continue
        for name, query in (content.get("queries") or {}).items():
            await datasette.add_query(
                database,
                name,
                query["sql"],
                title=query.get("title"),
                description=query.get("description"),
                parameters=query.get("params"),
                is_trusted=True,
            )
