"""The script that one would write in an afternoon instead of using this project.

python-frontmatter reads each page, sqlite-utils inserts a row per listing and indexes
the text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import frontmatter
import sqlite_utils

from benchmarks.floor import page_files

SEARCHED = ("package", "versions", "compiler", "os", "target", "variants", "stacks")


def rows(folder: str) -> Iterator[dict[str, Any]]:
    """Yield one row per listing; sqlite-utils stores the lists as JSON."""
    for path in page_files(folder):
        # The categories of a page are its package and its release.
        page: dict[str, Any] = frontmatter.load(path).metadata
        _, release = page["categories"]
        for spec in page["spec_details"]:
            yield {"release": release, "package": page["title"], **spec}


def build(folder: str, file: str) -> None:
    """Build the script's database."""
    database = sqlite_utils.Database(file)
    specs = database.table("specs")
    specs.insert_all(rows(folder), pk=("release", "hash"), alter=True)
    specs.enable_fts(SEARCHED)
    database.close()


if __name__ == "__main__":
    _, source, database_file = sys.argv
    build(source, database_file)
