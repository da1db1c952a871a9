"""spack.normal_forms: every printed form of a variant, and the normal forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.spack.facts import UNSPLIT_NAMES
from spack_cache_db.spack.normal_forms import (
    Variant,
    VariantKind,
    normal_compiler,
    normal_variant,
    parse_variant,
    split_compiler,
)

NAMES = st.from_regex(r"[a-zA-Z0-9_][a-zA-Z0-9_.\-]{0,8}", fullmatch=True)


def is_plain(text: str) -> bool:
    """Return whether a text is one value of a variant that is not a switch."""
    return "," not in text and text != "*" and text.upper() not in ("TRUE", "FALSE")


VALUE = st.text(max_size=12).filter(is_plain)
BOOLS = st.builds(
    Variant,
    NAMES,
    st.sampled_from([("true",), ("false",)]),
    st.just("bool"),
    st.booleans(),
)
SINGLES = st.builds(Variant, NAMES, st.tuples(VALUE), st.just("single"), st.booleans())
MULTIS = st.builds(
    Variant,
    NAMES.filter(lambda name: name not in UNSPLIT_NAMES),
    st.lists(VALUE, max_size=4).map(lambda values: tuple(sorted(values))),
    st.just("multi"),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("text", "name", "values", "kind", "propagate"),
    [
        ("+cuda", "cuda", ("true",), "bool", False),
        ("~ipo", "ipo", ("false",), "bool", False),
        ("++pic", "pic", ("true",), "bool", True),
        ("~~pic", "pic", ("false",), "bool", True),
        ("mpi=True", "mpi", ("true",), "bool", False),
        ("build_type=Release", "build_type", ("Release",), "single", False),
        ("cxxstd=17", "cxxstd", ("17",), "single", False),
        ("libs=static,shared", "libs", ("shared", "static"), "multi", False),
        ("libs:=static", "libs", ("static",), "multi", False),
        ("k==v", "k", ("v",), "single", True),
        ("k:==b,a", "k", ("a", "b"), "multi", True),
        ("languages='c,c++'", "languages", ("c", "c++"), "multi", False),
        ("k=''", "k", ("",), "single", False),
        ("k='*'", "k", (), "multi", False),
        ("k=*", "k", (), "multi", False),
        ("k='x\"y'", "k", ('x"y',), "single", False),
        ('k:="a b,it\'s"', "k", ("a b", "it's"), "multi", False),
        (r'k="it\'s \"a\" \\ b"', "k", ('it\\\'s "a" \\\\ b',), "single", False),
        (r'''k="it's \"a\" \\ b"''', "k", ('it\'s "a" \\ b',), "single", False),
        (r"k='it\'s'", "k", ("it's",), "single", False),
        ("k=a b", "k", ("a b",), "single", False),
        ("k='half", "k", ("'half",), "single", False),
        ("dev_path=/a,b", "dev_path", ("/a,b",), "single", False),
        ("localstatedir=PREFIX/var", "localstatedir", ("PREFIX/var",), "single", False),
        ("patches:=f7d58d3,0abcdef", "patches", ("0abcdef", "f7d58d3"), "multi", False),
        ("k:=True", "k", ("True",), "multi", False),
    ],
)
def test_printed_forms(
    text: str, name: str, values: tuple[str, ...], kind: VariantKind, propagate: bool
) -> None:
    """Each form that a Spack release prints is read as the variant that it stands
    for.
    """
    assert parse_variant(text) == Variant(name, values, kind, propagate)


@pytest.mark.parametrize(
    "text", ["", "=x", "+", "k", "+k=v", "~ x", ":=x", "é=1", "a b=c"]
)
def test_bad_text(text: str) -> None:
    """A text that is no variant is refused by both readers, and shown."""
    with pytest.raises(ValueError, match="is not a variant"):
        parse_variant(text)
    with pytest.raises(ValueError, match="is not a variant"):
        normal_variant(text)


@pytest.mark.slow
@given(st.one_of(BOOLS, SINGLES, MULTIS))
def test_round_trip(variant: Variant) -> None:
    """The canonical text of any variant is read back as an equal variant."""
    assert parse_variant(variant.text) == variant


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("libs:=shared,static", "libs=shared,static"),
        ("libs=static,shared", "libs=shared,static"),
        ("k:==b,a", "k==a,b"),
        ("languages:='c++,c'", "languages='c,c++'"),
        ('k="b,a"', 'k="a,b"'),
        ("k='*'", "k='*'"),
        ("-ipo", "-ipo"),
        ("dev_path=/b,a", "dev_path=/b,a"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    """The colon goes and values are sorted; nothing else changes by a byte."""
    assert normal_variant(text) == normal


@given(st.one_of(BOOLS, SINGLES, MULTIS))
def test_normal_form_is_one(variant: Variant) -> None:
    """The normal form is its own normal form, and means the same values."""
    normal = normal_variant(variant.text)
    assert normal_variant(normal) == normal
    assert parse_variant(normal).name == variant.name
    assert sorted(parse_variant(normal).values) == sorted(variant.values)


@pytest.mark.parametrize(
    ("text", "normal", "parts"),
    [
        ("gcc@=13.2.0", "gcc@13.2.0", ("gcc", "13.2.0")),
        ("gcc@13.2.0", "gcc@13.2.0", ("gcc", "13.2.0")),
        (
            "gcc@13.2.0/abcdefghijklmnopqrstuvwxyz234567",
            "gcc@13.2.0",
            ("gcc", "13.2.0"),
        ),
        ("none", "none", ("none", None)),
        ("apple-clang@=15.0.0", "apple-clang@15.0.0", ("apple-clang", "15.0.0")),
        ("clang@=15.0.0-git", "clang@15.0.0-git", ("clang", "15.0.0-git")),
    ],
)
def test_compilers(text: str, normal: str, parts: tuple[str, str | None]) -> None:
    """A compiler of any era has one normal form, and splits into name and version."""
    assert normal_compiler(text) == normal
    assert normal_compiler(normal) == normal
    assert split_compiler(text) == parts


@pytest.mark.parametrize("text", ["", "@1.2", "gcc@", "gcc@=", "/abc"])
def test_bad_compilers(text: str) -> None:
    """A text without a compiler name, or with an empty version, is refused."""
    with pytest.raises(ValueError, match="is not a compiler"):
        normal_compiler(text)
