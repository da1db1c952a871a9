"""What configurations satisfy: SQL answers as the predicates do, whatever the lists
between.
"""

import re
import sqlite3
from collections.abc import Iterator

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    Word,
    configuration_conditions,
)
from spack_cache_db.query.match import selection
from spack_cache_db.query.match.selection import configuration_ids, with_other_variant
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.spack.parser import parse_query
from tests.conftest import Build
from tests.pagetexts import page, spec
from tests.spackrecords import SPACK, write_records


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to the database of the 905 records."""
    folder = tmp_path_factory.mktemp("records")
    build([str(write_records(folder / "pages"))], folder / "cache.db")
    connection = sqlite3.connect(folder / "cache.db", check_same_thread=False)
    yield connection
    connection.close()


def by_sql(cache: sqlite3.Connection, text: str) -> set[str] | str:
    """Return the hashes that the database finds, or the error."""
    try:
        found = find(cache, text, with_hashes=True)
    except ValueError as error:
        return str(error)
    return {dag_hash for answer in found for dag_hash in answer.hashes or ()}


# Spack looks at every direct dependency here, a page at the one compiler that it
# prints.
BY_COMPILER = {"%gcc@=12.2.0", "%nvhpc"}
# Spack looks at the languages that gcc compiles, which pages do not show.
BY_LANGUAGE = {"hdf5 %c,cxx=gcc"}


@pytest.mark.slow
def test_answers_are_spacks(cache: sqlite3.Connection) -> None:
    """Over what pages show, each recorded query has the answer of Spack, or is
    refused.
    """
    hashes = [dag_hash for dag_hash, *_ in SPACK["specs"]]
    found = {}
    spacks = {}
    for text, places in SPACK["answers"].items():
        found[text] = by_sql(cache, text)
        spacks[text] = {hashes[place] for place in places}
    refused = {text for text, answer in found.items() if isinstance(answer, str)}
    wrong = {text for text in found.keys() - refused if found[text] != spacks[text]}

    assert wrong == BY_COMPILER | BY_LANGUAGE
    assert all(set(found[text]) < spacks[text] for text in BY_COMPILER)
    assert found["hdf5 %c,cxx=gcc"] == by_sql(cache, "hdf5 %gcc")
    assert all(re.search(r"\^|deptypes|\+\+|--|flags", text) for text in refused)
    assert len(found) - len(refused) == 194


def ids_of(conn: sqlite3.Connection, text: str, scope: Conditions = ()) -> list[int]:
    """Return the configurations that satisfy a spec and more conditions."""
    conditions = (*configuration_conditions(parse_query(text)), *scope)
    return configuration_ids(read_lookups(conn), conditions)


def test_the_order_is_that_of_machines_names_and_versions(
    all_samples: sqlite3.Connection,
) -> None:
    """What most machines run comes first; of each, packages by name, the newest version
    first.
    """
    by_name = """
        SELECT configurations.id FROM configurations
        JOIN packages ON packages.id = configurations.package_id
        JOIN versions ON versions.id = configurations.version_id
        JOIN platforms ON platforms.id = configurations.platform_id
        JOIN targets ON targets.id = configurations.target_id
        ORDER BY platforms.name <> 'linux', platforms.name,
          targets.family <> 'x86_64', targets.family,
          packages.name, versions.position DESC, configurations.id
    """

    assert ids_of(all_samples, "*") == [row[0] for row in all_samples.execute(by_name)]


@pytest.mark.parametrize(
    "text", ["*", "@1:", "@1: build_system=python_pip", "py-mpi4py@3:"]
)
def test_long_lists_find_what_short_ones_find(
    all_samples: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Lists that are too long for SQLite find the same, in the same order."""
    whole = ids_of(all_samples, text)
    monkeypatch.setattr(selection, "IDS_AT_ONCE", 0)

    assert ids_of(all_samples, text) == whole != []


def test_other_values_of_a_variant(built: Build) -> None:
    """A configuration has another value if it has the variant, and not as asked."""
    variants = [["+x"], ["~x"], ["x=a,b"], ["+y"], []]
    conn = built(
        aa=page(
            "aa", specs=[spec(at, variants=each) for at, each in enumerate(variants)]
        )
    )

    def others(text: str) -> set[str]:
        (constraint,) = parse_query(text).variants
        ids = with_other_variant(conn, constraint)
        texts = (
            "SELECT text FROM variant_sets "
            "JOIN configurations ON variant_set_id = variant_sets.id"
        )
        return {
            conn.execute(f"{texts} WHERE configurations.id = ?", [each]).fetchone()[0]
            for each in ids
        }

    assert others("++x") == {"~x", "x=a,b"}
    assert others("x==a") == {"+x", "~x"}
    assert others("x==*") == others("++nothing") == set()


def test_a_word_is_that_very_word(all_samples: sqlite3.Connection) -> None:
    """A filter of a page asks for a word itself, and not for what Spack could mean by
    it.
    """
    lookups = read_lookups(all_samples)
    every = ids_of(all_samples, "*")
    words = {
        counted.id: counted.configuration
        for counted in configurations_by_id(lookups, every)
    }
    for kind, text in (
        ("version", "4.0.1"), ("version", "4"), ("compiler", "gcc"), ("target", "x86_64_v3"),
        ("target", ":zen3"), ("variant", "build_system=python_pip"), ("variant", "build_system=*"),
    ):  # fmt: skip
        condition = Condition(kind, text, Word(text))
        (column,) = COLUMNS[kind]
        expected = [
            key
            for key in every
            if condition.is_met_by(column, getattr(words[key], column))
        ]

        assert ids_of(all_samples, "*", (condition,)) == expected
        having = []
        for key in every:
            texts = words[key].variants
            if kind != "variant":
                texts = (getattr(words[key], column),)
            if text in texts:
                having.append(key)
        assert expected == having


def test_a_text_that_is_no_variant_satisfies_nothing(built: Build) -> None:
    """Pages may print what Spack would not read; the variants beside it are found as
    ever.
    """
    conn = built(a=page(specs=[spec(1, variants=["+cuda", "!cuda", "libs=a,b"])]))

    assert [len(ids_of(conn, text)) for text in ("+cuda", "libs=b", "cuda=*")] == [
        1,
        1,
        1,
    ]
    assert [ids_of(conn, text) for text in ("~cuda", "libs=c", "b=*")] == [[], [], []]
