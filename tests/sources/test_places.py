"""sources.places: the release and the stack of an index."""

from __future__ import annotations

import pytest

from spack_cache_db.sources import ANYWHERE, Place


@pytest.mark.parametrize(
    ("path", "view", "place"),
    [
        ("index.json", None, ("root", "root")),
        ("develop/index.json", None, ("develop", "root")),
        ("develop/e4s/index.json", None, ("develop", "e4s")),
        ("develop/e4s/more/index.json", None, ("develop", "e4s")),
        ("index.json", "hep", ("root", "hep")),
        ("develop/e4s/index.json", "hep", ("develop", "hep")),
    ],
)
def test_folders_say_it_where_nothing_else_does(
    path: str, view: str | None, place: tuple[str, str]
) -> None:
    """The first two; a view comes before them, and what is asked for before all."""
    assert ANYWHERE.of(path, view) == place
    assert Place("v1", "mine").of(path, view) == ("v1", "mine")
    assert Place("v1").of(path, view) == ("v1", place[1])
    assert Place(stack="mine").of(path, view) == (place[0], "mine")
