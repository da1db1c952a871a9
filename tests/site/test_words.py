"""site.words: the same sentences about binaries and about what is installed."""

from dataclasses import fields, replace

import pytest

from spack_cache_db.site.links import links_to
from spack_cache_db.site.names_for_people import (
    compiler_name,
    listed,
    sentence,
    system_name,
)
from spack_cache_db.site.pages.list_page import ListFilters, ListPage
from spack_cache_db.site.settings import SiteSettings
from spack_cache_db.site.words import BINARIES, INSTALLED, Vocabulary

VOCABULARIES = pytest.mark.parametrize(
    "words", [BINARIES, INSTALLED], ids=["binaries", "installed"]
)


def test_each_vocabulary_has_its_own_words() -> None:
    """No text of one is used in the other."""
    for field in fields(Vocabulary):
        assert getattr(BINARIES, field.name) != getattr(INSTALLED, field.name)


@VOCABULARIES
def test_one_is_singular(words: Vocabulary) -> None:
    """Numbers have separators for people."""
    assert words.counted(1) == f"1 {words.one}"
    assert words.counted(0) == f"0 {words.many}"
    assert words.counted(2_000) == f"2,000 {words.many}"


def test_sentences_about_binaries() -> None:
    """Binaries are installed."""
    assert BINARIES.description == (
        "Prebuilt Spack packages, by version, compiler, target and variant, "
        "with the commands that install them."
    )
    assert BINARIES.cover_question == "Which specs of my environment have a binary?"
    assert BINARIES.lead(1_281, 1, "a cache") == (
        "1,281 Spack packages, prebuilt for 1 kind of processor. "
        "Install in seconds instead of compiling for hours."
    )
    assert BINARIES.home_title("My cache") == (
        "My cache: is there a binary for my machine?"
    )
    assert BINARIES.release_description("v1.0", 1) == (
        "The 1 binary of v1.0 in a Spack build cache: "
        "packages, targets, compilers, stacks."
    )


def test_sentences_about_what_is_installed() -> None:
    """Installed specs are loaded."""
    assert INSTALLED.description == (
        "Installed Spack packages, by version, compiler, target and variant, "
        "with the commands that load them."
    )
    assert INSTALLED.cover_question == "Which specs of my environment are installed?"
    assert INSTALLED.lead(1, 5, "the installation site") == (
        "1 package of the installation site. "
        "Find one, and copy the command that loads it."
    )
    assert INSTALLED.home_title("My cluster") == "My cluster"
    assert INSTALLED.release_description("site", 2_000) == (
        "The 2,000 specs that Spack has installed in site: "
        "packages, targets, compilers, stacks."
    )


PACKAGES = ListPage(
    "packages", ListFilters(), ({"specs": 1_000}, {"specs": 1}), 281, ()
)


@pytest.mark.parametrize(
    ("page", "binaries", "installed"),
    [
        (
            PACKAGES,
            "2 of 281 packages, 1,001 binaries.",
            "2 of 281 packages, 1,001 specs.",
        ),
        (
            replace(PACKAGES, filters=ListFilters(missing="1")),
            "2 of Spack's 281 packages have no binary.",
            "2 of Spack's 281 packages have no spec.",
        ),
        (replace(PACKAGES, kind="stacks", total=2), "2 stacks.", "2 stacks."),
        (
            replace(PACKAGES, kind="releases", total=1, rows=({},)),
            "1 release.",
            "1 installation.",
        ),
    ],
)
def test_a_list_says_how_many_it_has(
    page: ListPage, binaries: str, installed: str
) -> None:
    """All rows are not called a part of them."""
    assert BINARIES.list_answer(page) == binaries
    assert INSTALLED.list_answer(page) == installed


@VOCABULARIES
def test_every_filter_of_a_list_has_words(words: Vocabulary) -> None:
    """A filter has a phrase with its value, or words of its own."""
    for name in ListFilters.names():
        flag = words.flag(name)
        assert (flag is not None) is (name in ("behind", "missing", "stable"))
        assert words.filter(name, "zen3").endswith("zen3")
    assert words.filter("has", "zen3") == f"has a {words.one} for zen3"
    assert words.filter("host", "zen3") == "zen3"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("gone from its mirror", "Gone from its mirror"),
        ("hdf5@1.14 has no binary", "hdf5@1.14 has no binary"),
        ("hdf5/abc is gone", "hdf5/abc is gone"),
        ("1 binary of hdf5@1.14", "1 binary of hdf5@1.14"),
    ],
)
def test_a_sentence_begins_with_a_capital(text: str, expected: str) -> None:
    """Specs keep their spelling."""
    assert sentence(text) == expected


def test_lists_are_links_and_commas() -> None:
    """Names are escaped."""
    link = links_to(SiteSettings())["package"]
    assert listed(["a", "<b>"], link) == (
        '<a href="/package/a">a</a>, <a href="/package/%3Cb%3E">&lt;b&gt;</a>'
    )
    assert listed([], link) == ""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("os", "ubuntu24.04", "Ubuntu 24.04"),
        ("os", "amzn2", "Amazon Linux 2"),
        ("os", "sequoia", "sequoia"),
        ("compiler", "gcc@13.2.0", "gcc 13.2.0"),
        ("compiler", "intel-oneapi-compilers@2025.1.0", "oneAPI 2025.1.0"),
        ("compiler", "none", "no compiler"),
    ],
)
def test_words_of_builds_are_for_people(name: str, text: str, expected: str) -> None:
    """A name that is not known stays as Spack has it."""
    name_of = {"os": system_name, "compiler": compiler_name}[name]
    assert name_of(text) == expected


@VOCABULARIES
def test_what_excludes_a_value_is_named(words: Vocabulary) -> None:
    """All filters that do, or that the package has no such binary at all."""
    filters = [("host", "zen3"), ("variant", "+cuda"), ("os", "rhel8")]
    assert words.none(filters) == "none for zen3 with +cuda on RHEL 8"
    assert words.none([]) == f"no {words.one}"
