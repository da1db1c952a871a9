"""What belongs to the plugins of the site's owner: their addresses, and the exceptions
that their code raises.

Addresses of such plugins are open, and their exceptions are reported as bugs.
"""

from __future__ import annotations

import re
from traceback import walk_tb
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from spack_cache_db.site.plugin_manager import plugin_manager

OWN_MODULES = ("datasette.", "spack_cache_db.")
"""Beginnings of the modules of Datasette's plugins and ours, not the owner's."""

_patterns: WeakKeyDictionary[Any, list[re.Pattern[str]]] = WeakKeyDictionary()
"""The patterns of addresses for each Datasette, which are read once."""


def is_of_plugin(datasette: Any, path: str) -> bool:
    """Return whether a plugin of the owner has registered an address, by the hook
    `register_routes`.
    """
    if datasette not in _patterns:
        _patterns[datasette] = _read_patterns(datasette)
    return any(pattern.match(path) for pattern in _patterns[datasette])


def _read_patterns(datasette: Any) -> list[re.Pattern[str]]:
    """Return the patterns of the addresses that plugins of the owner have."""
    manager = plugin_manager()
    not_owners = [plugin for plugin in manager.get_plugins() if not _is_owners(plugin)]
    # Calls the hook of all plugins but these.
    register_routes = manager.subset_hook_caller("register_routes", not_owners)
    patterns = []
    for routes in register_routes(datasette=datasette):
        for pattern, _handler in routes:
            patterns.append(re.compile(pattern))
    return patterns


def is_in_plugin(exception: BaseException) -> bool:
    """Return whether an exception was raised in the code of a plugin of the owner, or
    in what that code called.
    """
    packages = set()
    for plugin in plugin_manager().get_plugins():
        if _is_owners(plugin):
            packages.add(_package_of(_module_of(plugin)))
    for frame, _line in walk_tb(exception.__traceback__):
        if _package_of(frame.f_globals.get("__name__", "")) in packages:
            return True
    return False


def _is_owners(plugin: Any) -> bool:
    """Return whether a plugin is neither Datasette's nor ours."""
    return not _module_of(plugin).startswith(OWN_MODULES)


def _module_of(plugin: Any) -> str:
    """Return the module of a plugin, which is a module, a class or an object of one."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    return str(getattr(plugin, "__module__", ""))


def _package_of(module: str) -> str:
    """Return the top package of a module: `plugin` for `plugin.views`."""
    # Datasette names a file of `--plugins-dir` after the file, such as `mine.py`.
    if module.endswith(".py"):
        return module
    package, _, _ = module.partition(".")
    return package
