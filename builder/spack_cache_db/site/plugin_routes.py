"""The addresses that plugins of the site's owner have registered; these are open."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from datasette.plugins import pm

OWN_MODULES = ("datasette.", "spack_cache_db.")
"""Beginnings of the modules of plugins whose addresses the site itself opens or closes."""

_patterns: WeakKeyDictionary[Any, list[re.Pattern[str]]] = WeakKeyDictionary()


def is_of_plugin(datasette: Any, path: str) -> bool:
    """Return whether a plugin has registered an address, by `register_routes`."""
    if datasette not in _patterns:
        _patterns[datasette] = _read_patterns(datasette)
    return any(pattern.match(path) for pattern in _patterns[datasette])


def _read_patterns(datasette: Any) -> list[re.Pattern[str]]:
    own = [
        plugin
        for plugin in pm.get_plugins()
        if getattr(plugin, "__name__", "").startswith(OWN_MODULES)
    ]
    registered = pm.subset_hook_caller("register_routes", own)(datasette=datasette)
    return [re.compile(pattern) for routes in registered for pattern, _ in routes]
