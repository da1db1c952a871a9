"""The two sides of a comparison, as `/diff/<old>...<new>` has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote

from spack_cache_db.site.filters import AddressFields


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

    def without(self, name: str) -> Sides:
        """Return the comparison without one of the names that narrow it."""
        return replace(self, **{name: None})  # type: ignore[arg-type]
