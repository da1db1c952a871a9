"""Loads the site's plugin with `datasette .` in a checkout that is not installed.

Datasette loads the plugin of an installed package by its entry point.
"""

from datasette.plugins import pm

from spack_cache_db.site import plugin

if not pm.is_registered(plugin):
    pm.register(plugin, "spack-cache-db")
