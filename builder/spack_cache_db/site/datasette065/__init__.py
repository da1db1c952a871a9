"""What only Datasette 0.65 needs: a plugin of its own, which `plugins/spack_cache.py` registers.

1.0 does all of this itself, or has no place for it: with 0.65 this room can go, and its tests and
`settings.json`. Datasette finds `templates/` here because it looks for them in plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spack_cache_db.site.datasette065 import (
    kept_facets,
    language,
    shared_metadata,
    tables,
    view_counts,
)
from spack_cache_db.site.hooks import hook
from spack_cache_db.site.identity import metadata_of
from spack_cache_db.site.wrapper import READING_POSTS, App, path_of


@hook
def startup(datasette: Any) -> None:
    """Count facets once and the large views never; spare Datasette copies of the metadata."""
    view_counts.tell(datasette)
    databases = datasette.metadata("databases") or {}
    kept_facets.take_over(databases)
    shared_metadata.share_databases(databases)


@hook
def get_metadata(datasette: Any) -> dict[str, str]:
    """Say whose data the site shows, where its metadata does not."""
    return metadata_of(datasette)


@hook
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool:
    """Take environments from a form without a token: the page only reads, and sets no cookie."""
    return READING_POSTS.fullmatch(path_of(scope, datasette.setting("base_url"))) is not None


@hook
def register_facet_classes() -> list[type]:
    """Count the facets that metadata.yml asks for once."""
    return [kept_facets.KeptFacet]


@hook
def extra_template_vars() -> dict[str, object]:
    """Give `_table.html` its rows in one piece."""
    return {"table_body": tables.table_body}


@partial(hook, tryfirst=True)
def asgi_wrapper() -> Callable[[App], App]:
    """Say the language of Datasette's pages, before the site's own wrapper compresses them."""
    return language.wrap
