"""Datasette's plugin manager, for the modules that our own plugin needs.

Datasette imports all installed plugins while `datasette.plugins` is imported. If one of
our modules imported it at its top, and was imported before Datasette, then our plugin
would import that same module half-finished.
"""

from __future__ import annotations

from typing import Any


def plugin_manager() -> Any:
    """Return the manager of all plugins, a `pluggy.PluginManager`."""
    from datasette.plugins import pm

    return pm
