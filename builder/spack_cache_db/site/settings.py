"""What our pages need besides the database: names, addresses and folders of a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What pages need besides the database; templates call it `urls` for its methods.

    Attributes:
        name: the name of the database.
        route: the name of the database, encoded for addresses.
        templates: folders of templates, those of the owner first.
        metadata: the texts of the whole site's metadata, such as title, license and
            source.
        size: the size of the database in bytes.
        sha256: the checksum of the database, if Datasette knows it.
        version: the version of Datasette.
        styles: a text that changes with our style sheets and scripts.
        file: the path of the database, beside which its inspect file lies.
    """

    name: str = "spack-cache"
    route: str = "spack-cache"
    base_url: str = "/"
    templates: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    sha256: str | None = None
    version: str = ""
    styles: str = ""
    file: str = ""

    def path(self, path: str) -> str:
        """Return the address of a path, with the site's base."""
        return self.base_url + path.removeprefix("/")

    def database(self, _: str) -> str:
        """Return the address of the database that our pages read."""
        return self.path(self.route)
