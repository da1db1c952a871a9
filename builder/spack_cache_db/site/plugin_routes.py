"""The plugins of the site's owner: their addresses, which are open, and their
exceptions.
"""

from __future__ import annotations

import re
from traceback import walk_tb
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from spack_cache_db.site.plugin_manager import plugin_manager

OWN_MODULES = ("datasette.", "spack_cache_db.")
"""Beginnings of the modules of plugins whose addresses the site itself opens or
closes.
"""

_patterns: WeakKeyDictionary[Any, list[re.Pattern[str]]] = WeakKeyDictionary()


def is_of_plugin(datasette: Any, path: str) -> bool:
    """Return whether a plugin has registered an address, by `register_routes`."""
    if datasette not in _patterns:
        _patterns[datasette] = _read_patterns(datasette)
    return any(pattern.match(path) for pattern in _patterns[datasette])


def is_in_plugin(exception: BaseException) -> bool:
    """Return whether an exception was raised in a plugin's code, or in what that code
    called.
    """
    packages = set()
    for plugin in plugin_manager().get_plugins():
        module = _module_of(plugin)
        if not module.startswith(OWN_MODULES):
            packages.add(_package_of(module))
    for frame, _ in walk_tb(exception.__traceback__):
        if _package_of(frame.f_globals.get("__name__", "")) in packages:
            return True
    return False


def _read_patterns(datasette: Any) -> list[re.Pattern[str]]:
    """Return the patterns of the addresses that plugins of the owner have."""
    own = [
        plugin
        for plugin in plugin_manager().get_plugins()
        if _module_of(plugin).startswith(OWN_MODULES)
    ]
    # Calls the hook of all plugins but these.
    register_routes = plugin_manager().subset_hook_caller("register_routes", own)
    patterns = []
    for routes in register_routes(datasette=datasette):
        for pattern, _ in routes:
            patterns.append(re.compile(pattern))
    return patterns


def _module_of(plugin: Any) -> str:
    """Return the module of a plugin, which is a module, a class or an object of one."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    return str(getattr(plugin, "__module__", ""))


def _package_of(module: str) -> str:
    """Return the top package of a module; Datasette names a file of `--plugins-dir`
    `mine.py`.
    """
    return module if module.endswith(".py") else module.partition(".")[0]
