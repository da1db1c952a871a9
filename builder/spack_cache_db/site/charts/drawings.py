"""The functions that draw charts, by their names in templates.

Libraries that draw SVG on a server were tried for this. pygal 3.1 writes its colours
into a `<style>` element and adds a script, both of which our content security policy
forbids; its drawings have no roles, and their links open new windows. leather 0.4
writes colours, fonts and sizes into attributes, and has neither links nor titles.
vl-convert 1.9 names its marks for screen readers, but is 84 MB, takes 27 ms for a chart
of one bar (these functions: 3 ms for one of 36 columns), and draws for one width and
one colour scheme.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from markupsafe import Markup

from spack_cache_db.site.charts.bars import bars, diverging_bars, stacked_bar
from spack_cache_db.site.charts.grids import grid, heat, plain_heat
from spack_cache_db.site.charts.over_time import columns, diverging_columns, line

_WITH_LINKS = (bars, columns, diverging_bars, diverging_columns, grid, heat, line)


def charts_of(urls: Any) -> dict[str, Callable[..., Markup]]:
    """Return the drawing functions by their names; those with links have the site's
    addresses.

    `urls` has the method `path`: it is Datasette's, or `SiteSettings`.
    """
    drawings: dict[str, Callable[..., Markup]] = {
        "plain_heat": plain_heat,
        "stacked_bar": stacked_bar,
    }
    for draw in _WITH_LINKS:
        drawings[draw.__name__] = partial(draw, urls.path)
    return drawings
