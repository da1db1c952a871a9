"""`/robots.txt`, `/sitemap.xml` and `/opensearch.xml`, for crawlers and browsers."""

from __future__ import annotations

from functools import partial

from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.site.site import Site

FILES = {
    "llms.txt": "text",
    "opensearch.xml": "opensearch",
    "robots.txt": "text",
    "sitemap.xml": "xml",
}
"""Files for crawlers, browsers and assistants: templates, and their types."""


def file(site: Site, request: PageRequest, name: str) -> PageResponse:
    """Return one of `FILES`."""
    # Only the sitemap reads the names.
    names = partial(load_names, site.lookups)
    return site.page(request, name, kind=FILES[name], names=names)
