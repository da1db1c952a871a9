"""Loads the site's plugin for `datasette .` in a checkout that is not installed."""

from datasette.plugins import pm

from spack_cache_db.site import plugin

if not pm.is_registered(plugin):
    pm.register(plugin, "spack-cache-db")
