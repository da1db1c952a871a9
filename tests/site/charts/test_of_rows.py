"""site.charts.of_rows: a chart for a canned query whose metadata describe one."""

from typing import Any

import pytest

from spack_cache_db.site.charts.of_rows import MOST_BARS, of_rows
from spack_cache_db.site.settings import SiteSettings
from tests.metadata import QUERIES

ADDRESS = SiteSettings().path
DAYS = [["2025-01-05", "12"], ["2025-01-12", "15"]]
NAMES = [[f"n{number}", str(number)] for number in range(30)]


def drawn(chart: Any, rows: list[list[str]]) -> str:
    """Return the chart of a query with the columns `x` and `y_count`."""
    query = {"title": "What?", "chart": chart}
    return str(of_rows(ADDRESS, query, ["x", "y_count"], rows))


def test_a_line_has_the_counts_of_all_days() -> None:
    """Rows without a day or a number are passed over."""
    chart = {"kind": "line", "x": "x", "y": "y_count"}
    text = drawn(chart, [*DAYS, ["", "7"], ["2025-01-19", "\xa0"]])
    assert "5 January 2025: 12 y count" in text or "12 y count" in text
    assert "15 y count" in text
    assert "7 y count" not in text


def test_bars_are_those_of_the_first_rows() -> None:
    """The caption says that there are more."""
    chart = {"kind": "bars", "x": "x", "y": "y_count"}
    text = drawn(chart, NAMES)
    assert text.count("<tr>") == MOST_BARS + 1
    assert f"Y count, of the first {MOST_BARS} rows" in text
    assert "first" not in drawn(chart, NAMES[:3])


@pytest.mark.parametrize(
    ("chart", "rows"),
    [
        ({"kind": "line", "x": "x", "y": "y_count"}, DAYS[:1]),
        ({"kind": "line", "x": "x", "y": "none"}, DAYS),
        ({"kind": "pie", "x": "x", "y": "y_count"}, DAYS),
        ({"kind": "bars", "x": "x", "y": "y_count"}, []),
        ({"kind": "bars", "x": "x", "y": "y_count"}, [["a", "-1"], ["b", "inf"]]),
        ("bars", DAYS),
        ({"x": 7}, DAYS),
        (None, DAYS),
    ],
)
def test_no_chart_is_no_error(chart: Any, rows: list[list[str]]) -> None:
    """What an owner wrote, and what a database has, may be anything."""
    assert drawn(chart, rows) == ""
    assert str(of_rows(ADDRESS, "SELECT 1", ["x"], [["1"]])) == ""
    assert str(of_rows(ADDRESS, None, ["x"], [["1"]])) == ""


def test_every_chart_names_columns_of_its_query() -> None:
    """A column that no row has would be no chart."""
    charts = {name: each["chart"] for name, each in QUERIES.items() if "chart" in each}

    assert len(charts) == 12
    for name, chart in charts.items():
        assert chart["kind"] in ("line", "bars")
        for column in (chart["x"], chart["y"]):
            assert column in QUERIES[name]["sql"], name
