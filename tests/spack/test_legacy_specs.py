"""Specs as Spack before 1.0 reads them."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.spack.legacy import (
    UnknownSpackVersion,
    legacy_reading,
    parse_legacy_query,
    parser_of,
    todays_spec,
)
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("fftw@3.3.10%gcc@12.2.0~mpi", "fftw@3.3.10 ~mpi %gcc@12.2.0"),
        ("hdf5 %gcc @12 +mpi @1.14", "hdf5@1.14 +mpi %gcc@12"),
        ("zlib %gcc/abc", "zlib /abc %gcc"),
        (
            "a %gcc@9 ^b +x %clang@9 ~y os=rhel8 ^c",
            "a %gcc@9 ^b +x ~y os=rhel8 %llvm@9 ^c",
        ),
        ("a ^b %gcc+x", "a ^b +x %gcc"),
        ('x %gcc cflags="-O2 -g" target=zen3', "x cflags='-O2 -g' target=zen3 %gcc"),
        ("x %[virtuals=c] gcc@9 +y", "x +y %c=gcc@9"),
        ("x %c,cxx=gcc@13.3.0", "x %c,cxx=gcc@13.3.0"),
        ("x ^mpi", "x ^mpi"),
    ],
)
def test_conditions_after_a_compiler_are_the_packages(text: str, meant: str) -> None:
    """A compiler has a name and a version; all else is asked of what it compiles."""
    found = parse_legacy_query(text)
    assert found == parse_query(spec_text(parse_query(meant)))


def test_a_spec_that_both_read_alike_has_no_other_reading() -> None:
    """Specs of which Spack 1.0 asks the same are told from those that it reads
    otherwise.
    """
    for text in ("x %c,cxx=gcc@13.3.0", "x +a %gcc ^y +b %clang@9", "x", "x %+a"):
        assert legacy_reading(parse_query(text)) is None
    assert legacy_reading(parse_query("x ^y %gcc +b")) == parse_query("x ^y +b %gcc")


def test_the_documentation_shows_the_rules() -> None:
    """Each spec in the documentation of Spack 0.23's rules is read as the one beside
    it.
    """
    text = (ROOT / "docs" / "spack-semantics.md").read_text()
    section = text.partition("## Specs written before Spack 1.0")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \|$", section, re.MULTILINE)

    assert len(rows) > 6
    for written, meant in rows:
        assert parse_legacy_query(written) == parse_query(spec_text(parse_query(meant)))
        assert todays_spec(written, "0.23") == spec_text(parse_query(meant))
        assert todays_spec(written, "1.0") == written
    assert todays_spec("x %", "0.23") == "x %"


@pytest.mark.parametrize(
    "text", ["x +a %gcc +a", "x %gcc %", "x@1 %gcc@2 @3", "x %gcc y", "% +x"]
)
def test_specs_that_spack_refuses_are_refused(text: str) -> None:
    """What says something twice, or lacks a name, is no spec in Spack 0.23 either."""
    with pytest.raises(QuerySyntaxError):
        parse_legacy_query(text)


OWN = st.sampled_from(
    ["+a", "~b", "k=v", "os=rhel8", "target=zen3", "/abc", "cflags=-g"]
)


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(OWN, unique=True)), min_size=1, max_size=4
    ),
    st.randoms(use_true_random=False),
)
def test_the_place_of_a_compiler_says_nothing(
    nodes: list[tuple[bool, list[str]]], chance: Random
) -> None:
    """Wherever the compiler stands among what is asked of a package, the spec is the
    same.
    """
    anywhere = []
    behind = []
    for number, (is_compiled, own) in enumerate(nodes):
        name = f"^p{number}" if number else "p0"
        compiler = ["%gcc@12"] if is_compiled else []
        place = chance.randint(0, len(own))
        anywhere += [name, *own[:place], *compiler, *own[place:]]
        behind += [name, *own, *compiler]
    meant = spec_text(parse_query(" ".join(behind)))

    assert parse_legacy_query(" ".join(anywhere)) == parse_query(meant)


def test_a_version_of_spack() -> None:
    """Versions before 1.0 read compilers so, others as today; another text is none."""
    assert {parser_of(each) for each in ("0.23", "v0.17.1", "0")} == {
        parse_legacy_query
    }
    assert {parser_of(each) for each in (None, "1.0", "1.1.0", "1")} == {parse_query}
    for text in ("develop", "2.0", "0.", "0.x", "1 "):
        with pytest.raises(UnknownSpackVersion, match="not a version of Spack"):
            parser_of(text)
