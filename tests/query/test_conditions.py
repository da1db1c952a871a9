"""query.conditions: the answers of SQL are those of the predicates, whatever the lists between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build import build
from spack_cache_db.query.answerable import VIRTUALS
from spack_cache_db.query.conditions import asked_of, configuration_ids, package_id
from spack_cache_db.query.find import find
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.records import Configuration
from spack_cache_db.spack.parser import parse_query
from tests.matching import matches
from tests.spackrecords import SPACK, records, write_records


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
    return {dag_hash for each in found for dag_hash in each.hashes or ()}


def by_predicates(text: str) -> set[str] | str:
    """Return the hashes of the records that match, or the error."""
    try:
        query = parse_query(text)
        return {
            dag_hash for dag_hash, record in records().items() if matches(query, record, dag_hash)
        }
    except ValueError as error:
        return str(error)


@pytest.mark.slow
def test_recorded_queries_have_the_answers_of_the_predicates(cache: sqlite3.Connection) -> None:
    """Every query of which Spack's answer is known is answered alike by SQL and by `matches`."""
    wrong = [text for text in SPACK["answers"] if by_sql(cache, text) != by_predicates(text)]

    assert wrong == []
    assert len(SPACK["answers"]) == 210


RECORDS = [*records().values()]


def words_of_the_data() -> MappingProxyType[str, st.SearchStrategy[str]]:
    """Return strategies of the constraints that the data's own words can make."""

    def of(values: set[str], *forms: str) -> st.SearchStrategy[str]:
        return st.builds(
            lambda value, form: form.format(value),
            st.sampled_from(sorted(values)),
            st.sampled_from(forms),
        )

    variants = {text for texts in SPACK["variants"] for text in texts}
    return MappingProxyType(
        {
            # A virtual name is refused by the predicates, who do not know what the file holds.
            "name": of({each.package for each in RECORDS} - VIRTUALS | {"mpi", "not-here"}, "{}"),
            "version": of(
                {each.version for each in RECORDS}
                | {each.version.rpartition(".")[0] or "1" for each in RECORDS},
                *("@{}", "@={}", "@{}:", "@:{}", "@{},1:2", "@2:{}"),
            ),
            "variant": st.one_of(
                of({text for text in variants if "=" not in text}, " {}"),
                of({text[1:] for text in variants if "=" not in text}, "+{}", "~{}", " {}=*"),
                of({text for text in variants if "=" in text}, " {}"),
                of({text.replace(":=", "=") for text in variants if "=" in text}, " {}"),
            ),
            "place": st.one_of(
                of({each.target for each in RECORDS} | {"zen3", "zen5"}, " target={}"),
                of({each.target for each in RECORDS} | {"zen3"}, " target=:{}", " target={}:"),
                of({each.os for each in RECORDS} | {"rhel8"}, " os={}"),
                of({each.platform for each in RECORDS}, " platform={}"),
            ),
            "hash": st.builds(
                lambda dag_hash, size: f"/{dag_hash[:size]}",
                st.sampled_from([*records()]),
                st.integers(1, 32),
            ),
            "compiler": of(
                {each.compiler.partition("/")[0].partition("@")[0] for each in RECORDS}
                | {"clang", "cmake"},
                *("%{}", "%{}@12", "%{}@=12.2.0", "%{}@13:", " %c,cxx={}"),
            ),
        }
    )


WORDS = words_of_the_data()


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Make a query of any shape from the data's own words."""
    parts = [
        draw(st.just("") | WORDS["name"]),
        draw(st.just("") | WORDS["version"]),
        *draw(st.lists(WORDS["variant"], max_size=3)),
        *draw(st.lists(WORDS["place"], max_size=2)),
        draw(st.just("") | st.just("") | WORDS["hash"]),
        draw(st.just("") | WORDS["compiler"]),
    ]
    return "".join(parts)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(queries())
def test_any_query_has_the_answer_of_the_predicates(cache: sqlite3.Connection, text: str) -> None:
    """SQL and `matches` find the same specs, or refuse the query with the same words."""
    assert by_sql(cache, text) == by_predicates(text)


def itself(dag_hash: str, record: Configuration) -> str:
    """Write all that a page says of a spec as a query."""
    # Exactly these patches can be asked by full checksums only, and pages print seven characters.
    variants = " ".join(record.variants).replace("patches:=", "patches=")
    version = record.version if "=" in record.version else f"={record.version}"
    where = f"arch={record.platform}-{record.os}-{record.target}"
    return f"{record.package}@{version} {variants} {where} /{dag_hash}"


@pytest.mark.slow
def test_a_spec_finds_itself(cache: sqlite3.Connection) -> None:
    """All that a page says of a spec, written as a query, finds that spec, for every spec."""
    missed = [
        dag_hash
        for dag_hash, record in records().items()
        if by_sql(cache, itself(dag_hash, record)) != {dag_hash}
    ]

    assert missed == []


def ids_of(conn: sqlite3.Connection, text: str) -> list[int]:
    """Return the configurations that satisfy a spec."""
    return configuration_ids(conn, read_lookups(conn), asked_of(conn, parse_query(text)))


def test_the_order_is_that_of_names_and_versions(all_samples: sqlite3.Connection) -> None:
    """Packages stand by name, their versions newest first, though only ids are compared."""
    by_name = """
        SELECT configurations.id FROM configurations
        JOIN packages ON packages.id = configurations.package
        JOIN versions ON versions.id = configurations.version
        ORDER BY packages.name, versions.position DESC, configurations.id
    """

    assert ids_of(all_samples, "*") == [row[0] for row in all_samples.execute(by_name)]


def test_a_package_by_name(samples: sqlite3.Connection) -> None:
    """A name that the file does not have is None, and finds nothing."""
    assert package_id(samples, "py-mpi4py") is not None
    assert package_id(samples, "nothing") is None
    assert ids_of(samples, "nothing") == []
