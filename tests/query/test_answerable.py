"""query.answerable: what pages cannot answer is refused with the reason."""

from __future__ import annotations

import pytest

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answerable import UnsupportedQuery, check_answerable
from spack_cache_db.spack.parser import parse_query
from tests.query.test_asked import UNANSWERABLE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "here") for text in sorted(UNANSWERABLE)),
        ("hdf5 ^mpich", "no dependencies are known here"),
        ("hdf5 %cmake", "cmake is not known as one"),
        ("hdf5 %mpi=openmpi", "what provides mpi"),
        ("hdf5 %fortran=gcc", "the one for Fortran"),
        ("hdf5 %c", "which languages"),
        ("hdf5 %@12", "name a compiler"),
        ("hdf5 %[when='+mpi'] gcc", "how gcc is used"),
        ("hdf5 %%gcc", "wish for the solver"),
        ("hdf5 %gcc %clang", "one compiler per binary"),
        ("hdf5 %gcc target=zen3", "before the '%'"),
        ("hdf5 %gcc@git.main", "git repository"),
        ("hdf5@git.main", "git repository"),
        ("builtin.hdf5", "namespaces"),
        ("mpi", "virtual package"),
        ("blas +x", "virtual package"),
        ("hdf5 target=toaster:", "archspec does not know the target 'toaster'"),
        ("hdf5 os=default_os", "depends on a machine"),
        ("hdf5 target=frontend", "depends on a machine"),
        ("hdf5 api==v110", "asks its dependencies too"),
    ],
)
def test_what_pages_cannot_answer(text: str, reason: str) -> None:
    """A query that pages cannot answer is refused with the reason, not answered wrong."""
    with pytest.raises(UnsupportedQuery) as caught:
        check_answerable(parse_query(text))

    assert reason in str(caught.value)


def test_the_error_is_one_of_ours() -> None:
    """Who catches the errors of this package, or those of bad values, catches this one."""
    assert issubclass(UnsupportedQuery, BuilderError)
    assert issubclass(UnsupportedQuery, ValueError)
