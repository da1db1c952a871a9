"""query.words.packages: the packages that words name, the best first."""

from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import Lookups, opened
from spack_cache_db.query.words.packages import FoundPackages, find_packages
from spack_cache_db.query.words.vocabulary import package_called
from tests.pagetexts import page, spec, write

PACKAGES = ("aflowy", "flowcept", "py-flow-meter", "py-tensorflow", "zlib")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one binary of each package."""
    folder = tmp_path_factory.mktemp("words")
    pages = {}
    for number, name in enumerate(PACKAGES):
        pages[f"page{number}"] = page(name, specs=[spec(number)])
    output = folder / "x.db"
    build([write(folder / "pages", **pages)], output)
    return output


def found(lookups: Lookups, *words: str) -> FoundPackages:
    """Return the packages of words that all may be names."""
    return find_packages(lookups, words, words)


def test_a_word_is_a_part_of_a_name(file: Path) -> None:
    """A whole part of a name comes first, then the beginning of one, then the end.

    Short words inside a part do not count, longer ones do.
    """
    with opened(file) as lookups:
        assert list(found(lookups, "flow").reasons) == [
            "py-flow-meter",
            "flowcept",
            "py-tensorflow",
        ]
        assert list(found(lookups, "ensor").reasons) == ["py-tensorflow"]


def test_an_unknown_word_is_named_beside_known_ones(file: Path) -> None:
    """Packages for one of several words are found, with the words that match none."""
    with opened(file) as lookups:
        answer = found(lookups, "zlib", "nonesuch")
        assert list(answer.reasons) == ["zlib"]
        assert answer.unmatched == ("nonesuch",)
        assert not answer.is_guess


def test_a_misspelled_word_is_a_guess(file: Path) -> None:
    """If no word is known, packages with similar names are the answer."""
    with opened(file) as lookups:
        answer = found(lookups, "zlibb")
        assert answer == FoundPackages({"zlib": ""}, is_guess=True)
        assert package_called(lookups, "zlibb") is None
