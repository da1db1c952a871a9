"""Where the recipes of a package are: those of Spack, or of a namespace of somebody's own."""

from __future__ import annotations

import sqlite3
from urllib.parse import quote

from spack_cache_db.query.connection import select

PUBLIC_NAMESPACE = "builtin"
PUBLIC_RECIPES = "https://packages.spack.io/package.html?name={package}"

NAMESPACES = """
SELECT DISTINCT nodes.namespace
FROM packages
JOIN configurations ON configurations.package = packages.id
JOIN specs ON specs.configuration = configurations.id
JOIN records ON records.spec = specs.id
JOIN nodes ON nodes.id = records.node
WHERE packages.name = :package ORDER BY nodes.namespace
"""
RECIPES = "SELECT namespace, url FROM recipes"


def recipe_links(conn: sqlite3.Connection, package: str) -> dict[str, str]:
    """Return the address of the recipe in each namespace of a package where it is known.

    A package that pages alone tell of is one of Spack's own. Of another namespace nothing is known
    but what whoever built the file said of it.
    """
    known = {PUBLIC_NAMESPACE: PUBLIC_RECIPES, **dict(select(conn, RECIPES))}
    names = [name for (name,) in select(conn, NAMESPACES, package=package)] or [PUBLIC_NAMESPACE]
    return {
        name: known[name].replace("{package}", quote(package, safe=""))
        for name in names
        if name in known
    }
