"""site.pages.charts: bars fill their space."""

from __future__ import annotations

from spack_cache_db.site.pages.charts import bar_chart, column_chart


def test_charts_fill_their_space() -> None:
    """The largest value fills the chart, and an empty one divides by nothing."""
    assert [bar.share for bar in bar_chart([("a", 4), ("b", 1)])] == [100.0, 25.0]
    assert [column.height for column in column_chart([("a", 4), ("b", 1)]).columns] == [120.0, 30.0]
    assert column_chart([]).columns == ()
    assert bar_chart([("a", 0)])[0].share == 0.0
