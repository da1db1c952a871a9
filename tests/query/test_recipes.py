"""Where the recipe of a package is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.packages import recipe_links
from tests.indexes import index, node, record

PUBLIC = "https://packages.spack.io/package.html?name="


@pytest.mark.parametrize(
    ("recipes", "links"),
    [
        ({}, [{"builtin": f"{PUBLIC}a"}, {}, {"builtin": f"{PUBLIC}both"}]),
        (
            {"ours": "https://x.org/{package}/package.py"},
            [
                {"builtin": f"{PUBLIC}a"},
                {"ours": "https://x.org/own/package.py"},
                {"builtin": f"{PUBLIC}both", "ours": "https://x.org/both/package.py"},
            ],
        ),
        (
            {"builtin": "https://mine.org/"},
            [{"builtin": "https://mine.org/"}, {}, {"builtin": "https://mine.org/"}],
        ),
    ],
)
def test_a_recipe_is_of_the_packages_own_namespace(
    tmp_path: Path, recipes: dict[str, str], links: list[dict[str, str]]
) -> None:
    """None for a namespace that nothing is known of; the address that was given, or Spack's own."""
    specs = [node("a"), node("own", namespace="ours"), node("both")]
    specs.append(node("both", namespace="ours", version="2.0", hash="2" * 32))
    (tmp_path / "index.json").write_bytes(index(*map(record, specs)))
    build(tmp_path / "index.json", tmp_path / "x.db", recipes=recipes)
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        assert [recipe_links(conn, each) for each in ("a", "own", "both")] == links


def test_what_only_pages_know_is_of_spacks_own_recipes(samples: sqlite3.Connection) -> None:
    """Pages say no namespace: they are those of Spack's public cache."""
    assert recipe_links(samples, "py-torch") == {"builtin": f"{PUBLIC}py-torch"}
