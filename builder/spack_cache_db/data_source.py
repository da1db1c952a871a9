"""Where the data of a database is from: its license, its website and its mirrors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from spack_cache_db.releases import PUBLIC_MIRRORS, PUBLIC_SITE, is_public_mirror

PUBLIC_LICENSE = "Apache-2.0"
"""The license of the data of Spack's public cache."""

LICENSE_URLS = {PUBLIC_LICENSE: "https://www.apache.org/licenses/LICENSE-2.0"}
"""The addresses of the texts of licenses."""

LICENSE_ROW = "data_license"
SOURCE_ROW = "source_url"
MIRROR_ROW = "mirror_url"


class DataSource(NamedTuple):
    """Where the data is from.

    Attributes:
        is_public: whether all of it is Spack's public build cache.
        license: the license of the data; None if it is not known.
        url: the only address of all of it on the web, if there is one.
        mirrors: the URLs of its mirrors. Several mirrors of Spack's public cache, and
            those of its pages, are the one URL below which they are.
    """

    is_public: bool
    license: str | None
    url: str | None
    mirrors: tuple[str, ...]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the table `origin`: what is known of the three."""
        if self.license is not None:
            yield LICENSE_ROW, self.license
        if self.url is not None:
            yield SOURCE_ROW, self.url
        if self.mirrors:
            yield MIRROR_ROW, " ".join(self.mirrors)


def data_source(
    *, has_pages: bool, has_installations: bool, urls: Collection[str | None]
) -> DataSource:
    """Return where data is from.

    Args:
        has_pages: whether it has pages, which only Spack's public cache publishes.
        has_installations: whether it has installations.
        urls: the different URLs of its mirrors; None for a mirror without one.
    """
    public = sorted(url for url in urls if url is not None and is_public_mirror(url))
    private = [url for url in urls if url is None or not is_public_mirror(url)]
    known = sorted(url for url in private if url is not None)
    if has_pages or len(public) > 1:
        public = [PUBLIC_MIRRORS]
    mirrors = (*public, *known)

    # Only installations.
    if has_installations and not has_pages and not urls:
        return DataSource(is_public=False, license=None, url=None, mirrors=())
    # Without a private mirror, it is the public cache, perhaps beside installations.
    if not private:
        if has_installations:
            return DataSource(is_public=False, license=None, url=None, mirrors=mirrors)
        return DataSource(
            is_public=True, license=PUBLIC_LICENSE, url=PUBLIC_SITE, mirrors=mirrors
        )
    url = None
    if len(private) == 1 and not public and not has_installations:
        url = _web_address(private[0])
    return DataSource(is_public=False, license=None, url=url, mirrors=mirrors)


def _web_address(url: str | None) -> str | None:
    """Return an address that a browser opens; None for others, such as `s3://cache`."""
    is_of_web = url is not None and url.startswith(("http://", "https://"))
    return url if is_of_web else None
