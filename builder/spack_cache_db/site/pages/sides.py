"""The two sides of a comparison."""

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
        """Return the address of the comparison after some changes, as a page or in a
        form.
        """
        sides = replace(self, **changes)  # type: ignore[arg-type]
        old, new = (quote(side, safe=":") for side in (sides.old, sides.new))
        return f"/diff/{old}...{new}{form and f'.{form}'}{sides.query(old='', new='')}"
