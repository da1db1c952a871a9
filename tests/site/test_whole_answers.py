"""No answer is cut in silence: all rows of one that has many come, page by page."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.many import (
    EVERY_ANSWER,
    EVERY_DEPENDENCY_ANSWER,
    MANY,
    build_many_dependencies,
)
from tests.queries.asking import DEPENDENCY_QUERIES, QUERIES
from tests.site.conftest import site

EVERY_WHOLE = EVERY_ANSWER | EVERY_DEPENDENCY_ANSWER


@pytest.fixture(scope="module")
def asked(many: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The site that has many rows for a query: that of its file."""
    of_dependencies = site(build_many_dependencies(tmp_path_factory.mktemp("many")))
    return dict.fromkeys(EVERY_ANSWER, many) | dict.fromkeys(
        EVERY_DEPENDENCY_ANSWER, of_dependencies
    )


def test_no_query_is_left_out() -> None:
    """The test below asks each."""
    assert EVERY_ANSWER.keys() == QUERIES.keys()
    assert EVERY_DEPENDENCY_ANSWER.keys() == set(DEPENDENCY_QUERIES)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("query", EVERY_WHOLE)
@pytest.mark.parametrize("form", ["json", "csv"])
async def test_no_answer_is_cut_in_silence(query: str, form: str, asked: dict[str, Any]) -> None:
    """Page by page all rows come; the last row of all pages but the last names the next."""
    params, total, keys = EVERY_WHOLE[query]
    found: list[dict[str, Any]] = []
    for number in ("", "2"):
        response = await asked[query].client.get(
            f"/spack-cache/{query}.{form}", params=params | {"page": number, "_shape": "array"}
        )
        assert response.status_code == 200, response.text
        text = response.text
        answer = response.json() if form == "json" else list(csv.DictReader(io.StringIO(text)))
        if number == "":
            last = answer.pop()
            of = "" if total is None else f" of {total}"
            assert last.pop("error") == f"row 1000{of} is on page 2"
            assert not any(last.values())
            assert len(answer) == 999
        assert not any(row["error"] for row in answer)
        found += answer
    assert len(found) == len({tuple(map(row.get, keys)) for row in found}) == (total or MANY)
