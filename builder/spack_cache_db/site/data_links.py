"""The addresses at which Datasette has the rows of our pages: as table, JSON and CSV.

For example, a package's page with the filter `target=zen3` links
`/spack-cache/builds?package=hdf5&target=zen3`.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from spack_cache_db.query.conditions.conditions import Word
from spack_cache_db.site.filters import DataLinks, Filters, Pairs, condition_of
from spack_cache_db.spack.queries import CompilerConstraint
from spack_cache_db.spack.targets import MAC, is_mac, known_targets
from spack_cache_db.spack.versions import is_stable


def data_links(
    database: str, table: str, pairs: Pairs, *, many: bool = False
) -> DataLinks:
    """Return the addresses of the rows of a table or view that have some values in its
    columns.

    Args:
        database: the route of the database.
        table: the name of the table or view.
        pairs: Datasette's fields, such as a column and its value.
        many: leave out the count of the rows, which can take longer than showing the
            first of them.
    """
    base = f"/{database}/{quote(table)}"
    query = urlencode(pairs)
    without_count = "&_nocount=1" if many else ""
    return DataLinks(
        browse=f"{base}?{query}{without_count}",
        json=f"{base}.json?{query}&_shape=array",
        csv=f"{base}.csv?{query}&_stream=on&_size=max",
    )


def package_links(
    database: str, package: str, filters: Filters, versions: Iterable[str]
) -> DataLinks:
    """Return the addresses of the rows of a package's page, with its filters.

    Args:
        database: the route of the database.
        package: the name of the package.
        filters: the filters of its page.
        versions: the versions of the package.
    """
    # Only `build_listings` knows in which release a binary is, and only `host_builds`
    # which hosts run it. With both filters, the host becomes a list of targets, and a
    # platform.
    table = "builds"
    if filters.release:
        table = "build_listings"
    elif filters.host is not None:
        table = "host_builds"
    pairs = [("package", package)]
    for name, value in filters.chosen:
        if name == "host" and table == "host_builds":
            pairs.append((name, value))
        elif name == "stable":
            stable = sorted(version for version in versions if is_stable(version))
            pairs.append(("version__in", ",".join(stable)))
        else:
            pairs.append(_column_filter(name, value))
            if name == "host" and is_mac(value) is not None:
                pairs.append(("platform" if is_mac(value) else "platform__not", MAC))
    return data_links(database, table, pairs)


_LIST_FIELDS = {"stack": "stacks__arraycontains", "variant": "variants__contains"}
"""Filters of columns that contain lists, and the fields of Datasette for them."""


def _column_filter(name: str, value: str) -> tuple[str, str]:
    """Return the field of Datasette that filters a column as one of our filters does,
    and its value.

    For example `("target__in", "zen3,zen4")` for the filter `host=zen4`.
    """
    condition = condition_of(name, value)
    if isinstance(condition.value, Word):
        field = _LIST_FIELDS.get(name, name)
        return field, condition.value.text
    if isinstance(condition.value, CompilerConstraint):
        return "compiler__startswith", value
    # A family (`aarch64:`) or a host: the targets that satisfy the condition. Spack may
    # not know this one.
    targets = {*known_targets(), value.removesuffix(":")}
    matching = [target for target in targets if condition.is_met_by("target", target)]
    return "target__in", ",".join(sorted(matching))
