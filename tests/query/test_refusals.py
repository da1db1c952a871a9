"""Queries that pages cannot answer, and notes on those that they answer by compilers."""

import pytest

from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.records import check_answerable, notes_on_pages
from spack_cache_db.spack.parser import parse_query


def test_notes_on_pages() -> None:
    """An answer by compiler comes with what pages do not show; other answers need no remark."""
    assert notes_on_pages(parse_query("hdf5 +mpi").dependencies) == ()
    assert len(notes_on_pages(parse_query("hdf5 %gcc").dependencies)) == 1
    assert len(notes_on_pages(parse_query("hdf5 %c,cxx=gcc").dependencies)) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%[deptypes=link] gcc", "this file"),
        ("++pic", "this file"),
        ("hdf5 --fortran", "this file"),
        ("zlib cflags=-g", "this file"),
        ("hdf5 ^mpich", "this file has no dependency data"),
        ("hdf5 %cmake", "cmake is not known as a compiler"),
        ("hdf5 %mpi=openmpi", "what provides mpi"),
        ("hdf5 %fortran=gcc", "the one for Fortran"),
        ("hdf5 %c", "which languages"),
        ("hdf5 %@12", "name a compiler"),
        ("hdf5 %[when='+mpi'] gcc", "how gcc is used"),
        ("hdf5 %%gcc", "only guides Spack's solver"),
        ("hdf5 %gcc %clang", "one compiler per binary"),
        ("hdf5 %gcc target=zen3", "before the '%'"),
        ("hdf5 %gcc namespace=builtin", "before the '%'"),
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
