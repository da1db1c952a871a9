"""static-site/words.js reads a search as the website does, over the same database.

The browser has the vocabulary, and no words of descriptions. Node runs the script that
browsers run.
"""

import gzip
import json
import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spack_cache_db.query.answers.spec_functions import parse
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.open.lookups import Lookups, opened
from spack_cache_db.query.words.reader import read_words
from spack_cache_db.site.filters import EVERYWHERE, Narrowing
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import Elsewhere, SearchPage
from spack_cache_db.site.pages.search_tokens import (
    Token,
    tokens_of_spec,
    tokens_of_words,
)
from spack_cache_db.site.static.vocabulary import search_vocabulary
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed
from tests.site.real_names import NAMED, generated, write_database

pytestmark = pytest.mark.slow

SCRIPT = """
import { readFileSync } from "node:fs";
import { fieldsOf, unchecked } from "./matches.js";
import { vocabularyOf } from "./vocabulary.js";
import { readable } from "./tokens.js";
import { read } from "./words.js";
const [data, texts] = JSON.parse(readFileSync(0, "utf8"));
const vocabulary = vocabularyOf(data);
const answers = texts.map((text) => {
  const found = read(text, vocabulary);
  const tokens = found.tokens.map(
    (token) => [vocabulary.labels[token.kind], readable(token, vocabulary)]);
  const fields = found.page === undefined ? null : fieldsOf(found.page, found.tokens, vocabulary);
  const notChecked = unchecked(found.tokens, vocabulary).map(({ text }) => text);
  return { ...found, tokens, fields, unchecked: notChecked };
});
console.log(JSON.stringify(answers));
"""
FIRST = 3
"""Number of packages whose order is compared."""
SHARE = 0.97
"""The least share of generated searches with the same answer."""


class Answer(NamedTuple):
    """What was understood, as pairs of a label and a text, and the first packages; None
    if the answer is a page of something else.
    """

    tokens: list[tuple[str, str]]
    packages: list[str] | None


def answers_of_browser(vocabulary: Any, texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return what words.js reads in each text."""
    node = needed("node", "nodejs")
    given = json.dumps([vocabulary, list(texts)])
    done = completed(
        [node, "--input-type=module", "-e", SCRIPT],
        input=given,
        cwd=ROOT / "static-site",
        check=True,
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def answer_of_browser(answer: dict[str, Any]) -> Answer:
    """Return what can be compared of an answer of words.js."""
    tokens = sorted((label, text) for label, text in answer["tokens"])
    names = [package["name"] for package in answer["packages"]]
    return Answer(tokens, names[:FIRST])


def answer_of_site(lookups: Lookups, text: str) -> Answer:
    """Return what the website understands, and the packages that it lists first."""
    page = Search(lookups).result(text)
    tokens: tuple[Token, ...] = ()
    if isinstance(page, Elsewhere):
        reading = read_words(lookups, text)
        if reading is not None:
            tokens = tokens_of_words(lookups, text, reading, EVERYWHERE)
        is_package = page.path.startswith("/package/")
        name = page.path.removeprefix("/package/")
        if is_package and not tokens:
            tokens = tokens_of_spec(lookups, parse(name), EVERYWHERE)
        if not is_package:
            return _answer(tokens, None)
        return _answer(tokens, [name])

    if page.reading is not None and not page.is_of_compiler:
        tokens = tokens_of_words(lookups, text, page.reading, EVERYWHERE)
    elif page.spec:
        tokens = tokens_of_spec(lookups, parse(page.spec), EVERYWHERE)
    if page.packages is not None:
        found = page.packages
        names = [*(row.name for row in found.rows), *found.more, *found.unbuilt]
        return _answer(tokens, names)
    package = parse(page.spec).name if page.spec else None
    packages = [package] if package else []
    return _answer(tokens, packages)


def _answer(tokens: Iterable[Token], packages: list[str] | None) -> Answer:
    # Words that the full-text search of the website finds in configurations.
    pairs = [(token.label, token.text) for token in tokens if token.label != "words"]
    first_packages = None if packages is None else packages[:FIRST]
    return Answer(sorted(pairs), first_packages)


def is_same(of_browser: Answer, of_site: Answer) -> bool:
    """Return whether two answers agree, as far as both have packages."""
    if of_site.packages is None:
        return of_browser.tokens == of_site.tokens
    return of_browser == of_site


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with real names of packages."""
    return write_database(tmp_path_factory.mktemp("real-names"))


def vocabulary_of(file: Path) -> dict[str, Any]:
    """Return the vocabulary of a database as a browser gets it."""
    with sqlite3.connect(file) as connection:
        found = search_vocabulary(connection)
    connection.close()
    return found


def test_named_searches_have_the_answer_of_the_site(file: Path) -> None:
    """Each of the searches that people type has the same parts and the same packages
    first.
    """
    answers = answers_of_browser(vocabulary_of(file), NAMED)

    with opened(file) as lookups:
        for text, answer in zip(NAMED, answers, strict=True):
            of_site = answer_of_site(lookups, text)
            of_browser = answer_of_browser(answer)
            assert is_same(of_browser, of_site), f"{text}: {of_browser}, {of_site}"


@pytest.mark.parametrize("kind", ["real names", "index"])
def test_most_generated_searches_have_the_answer_of_the_site(
    kind: str, file: Path, real_index_file: Path
) -> None:
    """In a database of pages, and in one with dependencies."""
    database = file if kind == "real names" else real_index_file
    vocabulary = vocabulary_of(database)
    names = [package[0] for package in vocabulary["packages"] if len(package) > 1]
    texts = list(generated(names, 300))
    answers = answers_of_browser(vocabulary, texts)
    different = []
    with opened(database) as lookups:
        for text, answer in zip(texts, answers, strict=True):
            of_site = answer_of_site(lookups, text)
            of_browser = answer_of_browser(answer)
            if not is_same(of_browser, of_site):
                different.append(f"{text}: {of_browser}, {of_site}")
    share = 1 - len(different) / len(texts)

    assert share >= SHARE, "\n".join(different)


def test_no_word_is_dropped_silently(file: Path) -> None:
    """Each word is a part of what was understood, or is said to be left out."""
    vocabulary = vocabulary_of(file)
    left_out = {
        "hdf5 nonesuch": ["nonesuch"],
        "nonesuch": ["nonesuch"],
        "hdf5 /abcdefg": ["/abcdefg"],
        "hdf5 +": ["+"],
        "qqqq;wwww zlib": ["qqqq", "wwww"],
        "https://example.org/x": ["https://example.org/x"],
        " ".join(["hdf5", *("qq",) * 12]): ["qq"] * 12,
    }

    for text, answer in zip(
        left_out, answers_of_browser(vocabulary, left_out), strict=True
    ):
        assert answer["dropped"] == left_out[text], text
    for text, answer in zip(NAMED, answers_of_browser(vocabulary, NAMED), strict=True):
        assert answer["packages"] or answer["tokens"] or answer["dropped"], text


def test_any_text_has_an_answer(file: Path) -> None:
    """No text breaks the script, and none means all packages."""
    rng = random.Random(4)
    parts = ["hdf5", "gcc", "13", "mpi", "zen3", "__proto__", "toString", "é", "Ω"]
    parts += [*"+~@%^=:/-_.,;?!()[]{}*\\'\"#&<>| \n\t"]
    texts = ["".join(rng.choices(parts, k=rng.randint(1, 9))) for _ in range(600)]
    vocabulary = vocabulary_of(file)

    for text, answer in zip(texts, answers_of_browser(vocabulary, texts), strict=True):
        is_said = answer["tokens"] or answer["dropped"] or answer["unmatched"]
        assert is_said or answer["packages"], text
        if not answer["tokens"]:
            assert len(answer["packages"]) < len(vocabulary["packages"]), text


@pytest.mark.parametrize(
    ("text", "package", "fields"),
    [
        ("hdf5", "hdf5", []),
        ("parallel hdf5", "hdf5", [["variant", "+mpi"]]),
        ("hdf5 zen3 ubuntu", "hdf5", [["os", "ubuntu24.04"], ["host", "zen3"]]),
        ("tensorflow gpu", "py-tensorflow", [["variant", "+cuda"]]),
    ],
)
def test_a_whole_answer_is_on_the_page_of_the_package(
    file: Path, text: str, package: str, fields: list[list[str]]
) -> None:
    """The choice is in its address, as on the website."""
    (answer,) = answers_of_browser(vocabulary_of(file), [text])
    assert answer["page"] == package
    assert sorted(answer["fields"]) == sorted(fields)


def test_a_page_cannot_choose_what_no_binary_has(file: Path) -> None:
    """An answer without a binary is on the page of the search, which says so."""
    texts = ["hdf5 +mpi %gcc@12 sequoia", "hdf5@1.99", "hdf5 rhel8"]
    for answer in answers_of_browser(vocabulary_of(file), texts):
        assert "page" not in answer
        assert [package["count"] for package in answer["packages"]] == [0]


COUNTED = (
    "hdf5 +mpi", "hdf5 %gcc@13", "hdf5 target=:zen4 %gcc@12:13", "hdf5 %gcc@:12",
    "kokkos +cuda cuda_arch=80", "kokkos amdgpu_target=gfx90a platform=linux",
    "kokkos target=aarch64:", "kokkos target=x86_64_v3,x86_64_v4", "kokkos %gcc@=13",
)  # fmt: skip


def test_the_counts_are_those_of_the_database(file: Path) -> None:
    """Options, systems, targets and compilers are counted together."""
    answers = answers_of_browser(vocabulary_of(file), COUNTED)

    with opened(file) as lookups:
        for text, answer in zip(COUNTED, answers, strict=True):
            question = Question(lookups, parse(text))
            configurations = question.configurations(slice(None))
            expected = sum(found.spec_count for found in configurations)
            (package,) = answer["packages"]
            assert package["count"] == expected, text


VERSIONS = (
    "1",
    "1.14",
    "1.1",
    "=1.14",
    "=1.14.6",
    "1.13:",
    ":1.12",
    ":1.12.1",
    "1.15:",
)
"""Constraints on the versions 1.14.6 and 1.12.3 of hdf5."""


def test_versions_are_those_that_spack_allows(file: Path) -> None:
    """A package without a binary of the version has none, and a choice is the newest
    that it has.
    """
    texts = [f"hdf5@{constraint} %gcc" for constraint in VERSIONS]
    answers = answers_of_browser(vocabulary_of(file), texts)

    with opened(file) as lookups:
        for text, answer in zip(texts, answers, strict=True):
            is_found = Question(lookups, parse(text)).count() > 0
            (package,) = answer["packages"]
            assert (package["count"] > 0) == is_found, text


def test_a_version_that_the_counts_leave_aside_is_told(file: Path) -> None:
    """The counts are of all versions, unless there is only one, or none that fits."""
    expected = {
        "hdf5@1.14 openblas": ["hdf5@1.14"],
        "hdf5@1.14 %gcc": ["hdf5@1.14"],
        "hdf5@1.99 openblas": [],
        "zlib@1.0 %gcc": [],
        "hdf5 openblas": [],
    }
    answers = answers_of_browser(vocabulary_of(file), expected)

    for text, answer in zip(expected, answers, strict=True):
        assert answer["unchecked"] == expected[text], text


def test_a_chosen_machine_is_a_part_that_the_text_replaces(file: Path) -> None:
    """A machine in the text is asked for in place of the chosen one; a target that runs
    on the chosen one narrows the answer.
    """
    script = SCRIPT.replace("read(text, vocabulary)", 'read(text, vocabulary, "zen4")')
    texts = [
        "cmake %gcc",
        "cmake %gcc graviton3",
        "cmake target=x86_64_v3",
        "cmake target=neoverse_v1",
    ]
    given = json.dumps([vocabulary_of(file), texts])
    node = needed("node", "nodejs")
    done = completed(
        [node, "--input-type=module", "-e", script],
        input=given,
        cwd=ROOT / "static-site",
        check=True,
    )
    chosen, typed, narrower, other = json.loads(done.stdout)

    assert ["machine", "zen4"] in chosen["tokens"]
    assert ["machine", "zen4"] not in typed["tokens"]
    assert ["machine", "neoverse_v1"] in typed["tokens"]
    assert ["machine", "zen4"] in narrower["tokens"]
    assert ["machine", "zen4"] not in other["tokens"]
    with opened(file) as lookups:
        for text, answer in ((texts[2], narrower), (texts[3], other)):
            found = Search(lookups, Narrowing(host="zen4")).result(text)
            assert isinstance(found, SearchPage)
            is_used = ["machine", "zen4"] in answer["tokens"]
            assert (found.narrowing.host == "zen4") == is_used


def test_the_vocabulary_is_small(file: Path) -> None:
    """A visitor downloads it before the first answer."""
    data = json.dumps(vocabulary_of(file), separators=(",", ":")).encode()
    assert len(gzip.compress(data)) < 20_000
