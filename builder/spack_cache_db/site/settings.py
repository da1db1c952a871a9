"""What our pages need besides the database: names, addresses and folders of a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What pages need besides the database.

    Templates get it as `urls`, because its methods `path` and `database` are those of
    Datasette's object of this name.

    Attributes:
        name: the name of the database.
        route: the name of the database, encoded for addresses.
        base_url: the path of the site on its server, with a slash at both ends.
        templates: folders of templates; a file in an earlier folder takes precedence.
        metadata: the texts of the whole site's metadata, such as title, license and
            source.
        size: the size of the database in bytes.
        sha256: the checksum of the database; None if Datasette does not know it.
        version: the version of Datasette.
        styles: a text that changes with our style sheets and scripts, so that browsers
            read new ones.
        file: the path of the database; its inspect file is in the same folder.
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

    @property
    def is_static(self) -> bool:
        """Whether the pages are files, without a server that answers queries."""
        return False

    @property
    def download(self) -> str | None:
        """The address of the database as a file."""
        return self.path(f"/{self.route}.db")

    def path(self, path: str) -> str | None:
        """Return the address of a path: `/cache/about` for `/about` below `/cache/`.

        None if the site has no such page, which only a static one may lack.
        """
        return self.base_url + path.removeprefix("/")

    def database(self, _: str) -> str | None:
        """Return the address of the database that our pages read, whatever the name."""
        return self.path(self.route)
