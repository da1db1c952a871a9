"""The mark of a hook."""

from __future__ import annotations

from functools import partial

from datasette.plugins import pm

from spack_cache_db.site.hooks import hook


def test_datasette_knows_a_marked_function() -> None:
    """A marked function stays what it is, and Datasette finds the mark with its options."""

    class Plugin:
        @staticmethod
        @hook
        def startup() -> int:
            return 1

        @staticmethod
        @partial(hook, tryfirst=True)
        def asgi_wrapper() -> int:
            return 2

    late, early = (pm.parse_hookimpl_opts(Plugin, name) for name in ("startup", "asgi_wrapper"))

    assert (Plugin.startup(), Plugin.asgi_wrapper()) == (1, 2)
    assert late is not None and not late["tryfirst"]
    assert early is not None and early["tryfirst"]
