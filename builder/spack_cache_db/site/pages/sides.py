"""The two sides of a comparison, as `/diff/<old>...<new>` has them, and which
comparisons pages lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.site.filters import AddressFields

ALL = "all"
"""The field for the part of a comparison's page that shows all of its rows."""


@dataclass(frozen=True, slots=True)
class Sides(AddressFields):
    """The names in the address of a comparison: two releases, and names that narrow
    it.
    """

    old: str = ""
    new: str = ""
    stack: str | None = None
    package: str | None = None
    target: str | None = None
    host: str | None = None

    def address(self, form: str = "", **changes: str | None) -> str:
        """Return the address of the comparison after some changes.

        `Sides("v0.23", "develop", package="zlib").address("csv")` is
        `/diff/v0.23...develop.csv?package=zlib`. Without a form, it is that of the
        page.
        """
        sides = replace(self, **changes)  # type: ignore[arg-type]
        # A side may be a stack of a release, as in `develop:e4s`.
        old = quote(sides.old, safe=":")
        new = quote(sides.new, safe=":")
        extension = f".{form}" if form else ""
        # Both sides are in the path already.
        query = sides.query(old="", new="")
        return f"/diff/{old}...{new}{extension}{query}"

    def address_of_all(self, part: str) -> str:
        """Return the address of the page that shows all rows of a part, such as
        `/diff/v0.23...develop?all=lost#lost`.
        """
        address = self.address()
        mark = "&" if "?" in address else "?"
        return f"{address}{mark}{ALL}={part}#{part}"

    def without(self, name: str) -> Sides:
        """Return the comparison without one of the names that narrow it."""
        return replace(self, **{name: None})  # type: ignore[arg-type]


def comparisons(lookups: Lookups) -> Iterator[tuple[Release, Sides]]:
    """Yield each release with its comparison with the one before it, in the database's
    order: of each kind, the newest first.
    """
    for release in lookups.releases.values():
        before = lookups.before(release)
        if before is not None:
            yield release, Sides(before.name, release.name)


def latest_comparisons(
    compared: Iterable[tuple[Release, Sides]],
) -> dict[str, Sides]:
    """Return the newest of some comparisons for each kind of release."""
    latest: dict[str, Sides] = {}
    for release, sides in compared:
        latest.setdefault(release.kind, sides)
    return latest


def newest_comparison(compared: Iterable[tuple[Release, Sides]]) -> Sides | None:
    """Return the comparison of the newest snapshot, or else the first of some
    comparisons; None if there are none.
    """
    latest = latest_comparisons(compared)
    first = next(iter(latest.values()), None)
    return latest.get("snapshot", first)
