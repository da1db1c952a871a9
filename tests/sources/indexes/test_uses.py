"""sources.indexes.uses: how an edge uses its dependency, in every version's words."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from spack_cache_db.sources.columns import Interned, Use
from spack_cache_db.sources.indexes.spellings import NO_LANGUAGE, Uses, use_of


def said(**parameters: Any) -> bytes:
    """Return the text of an edge's `parameters`."""
    return json.dumps(parameters).encode()


def test_every_version_says_the_same() -> None:
    """Types are sorted; old edges have no virtuals, and need not have types."""
    assert use_of(said(deptypes=["run", "build"], virtuals=["mpi"], direct=True)) == Use(
        ("build", "run"), ("mpi",), True
    )
    assert use_of(("run", "build")) == Use(("build", "run"), (), None)
    assert use_of(UNSET) == Use((), (), None)


def test_what_says_the_same_has_one_number() -> None:
    """However it is spelled; the language is the first that Spack asks for."""
    interned = Interned[Use]()
    uses = Uses(interned)

    one = uses[said(deptypes=["build"], virtuals=["fortran", "cxx"])]
    two = uses[b'{"virtuals":["cxx", "fortran"],"deptypes":["build"]}']
    other = uses["build",]

    assert (one, two, other) == (1, 1, 2)
    assert (uses.language[one], uses.language[other]) == (1, NO_LANGUAGE)
    assert interned.things == [Use(("build",), ("cxx", "fortran"), None), Use(("build",), (), None)]


@pytest.mark.parametrize(
    "text",
    [b"1", b"{}", said(deptypes="build"), said(deptypes=[1]), said(deptypes=[], when="@2")],
)
def test_what_is_no_use_is_refused(text: bytes) -> None:
    """Other types, and keys that are not known."""
    with pytest.raises(msgspec.ValidationError):
        use_of(text)


@pytest.mark.parametrize("word", ["", "a,b", "x" * 201])
def test_words_must_fit_into_a_list(word: str) -> None:
    """The file writes types and virtuals with commas between them."""
    with pytest.raises(ValueError, match="type or virtual"):
        use_of((word,))
    with pytest.raises(ValueError, match="type or virtual"):
        use_of(said(deptypes=["link"], virtuals=[word]))
