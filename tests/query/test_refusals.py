"""What a query means for what pages show, compared with Spack, and what is refused."""

import json
from functools import cache
from typing import Any

import pytest

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions import (
    UnsupportedQuery,
    check_answerable,
    compiler_of_pages,
    notes_on_pages,
)
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    SpecQuery,
    compiler_matches,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.normal_forms import normal_variant, parse_variant
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.versions import VersionRanges
from tests.configurations import HASH, HDF5
from tests.oracle import matches
from tests.paths import DATA

SPACK: dict[str, Any] = json.loads((DATA / "satisfies.json").read_text())
# The queries that ask about edges of the dependency graph, flags or all dependencies.
UNANSWERABLE = {
    "%[deptypes=link] gcc", "++pic", "hdf5 --fortran", "zlib cflags=-g",
    *(text for text in SPACK["answers"] if "^" in text),
}  # fmt: skip
# Spack looks at every direct dependency here, a page at the one compiler that it prints.
BY_COMPILER = {"%gcc@=12.2.0", "%nvhpc"}
# Spack looks at the languages that gcc compiles, which pages do not show.
BY_LANGUAGE = {"hdf5 %c,cxx=gcc"}


@cache
def records(normal: bool) -> tuple[tuple[str, Configuration], ...]:
    """Return hash and configuration of each spec, the variants as printed or in normal form."""
    sets = [
        tuple(normal_variant(text) if normal else text for text in texts)
        for texts in SPACK["variants"]
    ]
    return tuple(
        (dag_hash, Configuration._make((*words, sets[place])))
        for dag_hash, *words, place in SPACK["specs"]
    )


def answer(query: SpecQuery, normal: bool = True) -> set[int]:
    """Return the places of the specs that satisfy a query."""
    return {
        place
        for place, (dag_hash, spec) in enumerate(records(normal))
        if matches(query, spec, dag_hash)
    }


@pytest.mark.slow
@pytest.mark.parametrize("normal", [True, False], ids=["normal form", "as printed"])
def test_answers_are_spacks(normal: bool) -> None:
    """Over what pages show, each recorded query has exactly the answer that Spack gives."""
    asked = set(SPACK["answers"]) - UNANSWERABLE - BY_COMPILER - BY_LANGUAGE

    wrong = [
        text for text in asked if answer(parse_query(text), normal) != set(SPACK["answers"][text])
    ]

    assert wrong == []
    assert len(asked) == 191


@pytest.mark.parametrize("text", sorted(BY_LANGUAGE))
def test_languages_are_ignored(text: str) -> None:
    """A compiler for some languages is asked for as the compiler that pages print."""
    assert answer(parse_query(text)) == answer(parse_query("hdf5 %gcc")) > {*SPACK["answers"][text]}


@pytest.mark.parametrize("text", sorted(BY_COMPILER))
def test_compilers_are_those_that_pages_print(text: str) -> None:
    """What we find by compiler Spack finds too; what we miss has another compiler on its page."""
    constraint = compiler_of_pages(parse_query(text).dependencies[0])
    ours, spacks = answer(parse_query(text)), set(SPACK["answers"][text])

    missed = {records(True)[place][1].compiler for place in spacks - ours}

    assert ours
    assert ours < spacks
    assert not any(compiler_matches(constraint, compiler) for compiler in missed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hdf5", True),
        ("*", True),
        ("zlib", False),
        ("nonexistent@1", False),
        ("hdf5@1.14: +mpi~java target=zen2: os=debian12 %gcc@13", True),
        ("arch=linux-debian12-zen3", True),
        ("arch=linux-rhel8-zen3", False),
        ("platform=darwin", False),
        ("target=:x86_64_v4", False),
        ("target=zen4,:zen3", True),
        ("/abcdef", True),
        ("hdf5/abd", False),
        ("os=* platform=* target=*", True),
        ("arch=linux-*-zen3", True),
        ("arch=linux-*-zen4", False),
        ("os=* target=zen4", False),
        ("%gcc os=*", True),
        ("libs=shared", True),
        ("libs=static,shared", True),
        ("libs:=shared", False),
        ("libs:=static,shared", True),
        ("libs=*", True),
        ("mpi=*", True),
        ("mpi=True", True),
        ("mpi:=true", True),
        ("+api", False),
        ("api=True", False),
        ("foo=bar", False),
        ("~nothere", False),
        ("patches=f7d58", True),
        ("patches=f7d58d3" + "0" * 57, True),
        ("patches=f7d58d4" + "0" * 57, False),
        ("patches=f7d58d3~sph", False),
        ("patches=f7d58d3,0abcdef+mpi", False),
        ("patches=f7d58d3" + "0" * 58, False),
        ("patches=F7D58D3" + "0" * 57, False),
        ("patches=f7d58d3" + "F" * 57, False),
        ("patches:=f7d58d3" + "g" * 57 + ",0abcdef" + "0" * 57, False),
        ("patches:=f7d58d3,0abcdef", False),
        ("patches:=f7d58d3" + "0" * 57 + ",0abcdef" + "0" * 57, True),
        ("%gcc", True),
        ("%c,cxx=gcc@13", True),
        ("%[virtuals=c] gcc@=13.2.0", True),
        ("%gcc@12", False),
        ("%gcc %c=gcc@14", False),
        ("%clang", False),
    ],
)
def test_one_spec(text: str, expected: bool) -> None:
    """Each dimension of a query is compared with the same dimension of a spec."""
    assert matches(parse_query(text), HDF5, HASH) is expected


@pytest.mark.parametrize(
    ("asked", "printed", "expected"),
    [
        ("%clang", "llvm@17.0.6", True),
        ("%clang@17", "clang@=17.0.6", True),
        ("%llvm", "clang@17.0.6", True),
        ("%oneapi", "intel-oneapi-compilers@2024.2.1/abc", True),
        ("%intel", "oneapi@2024.2.1", False),
        ("%gcc", "none", False),
        ("%gcc", "gcc", True),
        ("%gcc@12", "gcc", False),
    ],
)
def test_compiler_names(asked: str, printed: str, expected: bool) -> None:
    """A compiler is the same under its old and its new name, in any printed form."""
    constraint = compiler_of_pages(parse_query(asked).dependencies[0])

    assert compiler_matches(constraint, printed) is expected


def test_a_compiler_constraint_may_use_either_name() -> None:
    """A constraint made by hand with an old name means the same as with the new one."""
    assert compiler_matches(CompilerConstraint("clang"), "llvm@17.0.6")


def test_predicates_without_a_constraint_hold() -> None:
    """Where a query says nothing of a dimension, everything satisfies it."""
    assert version_matches(None, "1.2")
    assert matches(parse_query("*"), HDF5, HASH)
    assert version_matches(VersionRanges.parse("1"), "1.2")


def test_variants_are_compared_by_text() -> None:
    """A multi-valued constraint asks for at least its values, quoted or not."""
    (constraint,) = parse_query("languages=c++").variants

    assert [
        variant_matches(constraint, parse_variant(text))
        for text in ("languages='c,c++'", "languages=c", "+languages")
    ] == [True, False, False]


def test_notes_on_pages() -> None:
    """An answer by compiler comes with what pages do not show; other answers need no remark."""
    assert notes_on_pages(parse_query("hdf5 +mpi")) == ()
    assert len(notes_on_pages(parse_query("hdf5 %gcc"))) == 1
    assert len(notes_on_pages(parse_query("hdf5 %c,cxx=gcc"))) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "this file") for text in sorted(UNANSWERABLE)),
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


def test_the_error_is_one_of_ours() -> None:
    """Who catches the errors of this package, or those of bad values, catches this one."""
    assert issubclass(UnsupportedQuery, BuilderError)
    assert issubclass(UnsupportedQuery, ValueError)
