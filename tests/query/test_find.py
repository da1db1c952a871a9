"""query.find: the answers of SQL are those of the predicates, record by record."""

from __future__ import annotations

import doctest
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.build.steps import build
from spack_cache_db.query.answerable import VIRTUALS, UnsupportedQuery
from spack_cache_db.query.asked import matches
from spack_cache_db.query.find import Found, UnknownNameError, find
from spack_cache_db.records import Configuration
from spack_cache_db.spack.query import QuerySyntaxError, parse_query
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash
from tests.paths import ROOT
from tests.spackrecords import SPACK, records, write_records

DOCS = ROOT / "docs"


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


def test_recorded_queries_have_the_answers_of_the_predicates(cache: sqlite3.Connection) -> None:
    """Every query of which Spack's answer is known is answered alike by SQL and by `matches`."""
    wrong = [text for text in SPACK["answers"] if by_sql(cache, text) != by_predicates(text)]

    assert wrong == []
    assert len(SPACK["answers"]) == 198


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


@settings(max_examples=500, deadline=None)
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


def test_a_spec_finds_itself(cache: sqlite3.Connection) -> None:
    """All that a page says of a spec, written as a query, finds that spec, for every spec."""
    missed = [
        dag_hash
        for dag_hash, record in records().items()
        if by_sql(cache, itself(dag_hash, record)) != {dag_hash}
    ]

    assert missed == []


TWO_RELEASES = {
    "a": page(
        "hdf5",
        "develop-2025-01-05",
        [spec(1, versions=["1.9"]), spec(2, versions=["1.10"], stacks=["e4s", "root"])],
    ),
    "b": page(
        "hdf5",
        "develop-2025-02-02",
        [spec(2, versions=["1.10"], stacks=["ml", "root"]), spec(3, versions=["1.10"])],
    ),
    "c": page("hdf5-tools", "develop", [spec(4, target="zen3"), spec(5, os="rhel8", target="m1")]),
    "d": page("iconv", "develop", [spec(6)]),
}


def summary(found: list[Found]) -> list[tuple[str, str, int]]:
    """Return what tells the records apart."""
    return [(each.package, each.version, each.spec_count) for each in found]


def test_the_records(built: Build) -> None:
    """A record tells names, counts, releases in the file's order, stacks and days."""
    newest, oldest = find(built(**TWO_RELEASES), "hdf5", with_hashes=True)

    assert newest == Found(
        configuration=Configuration(
            package="hdf5",
            version="1.10",
            compiler="gcc@13.2.0",
            os="ubuntu24.04",
            platform="linux",
            target="x86_64_v3",
            variants=("build_system=cmake", "~cuda"),
        ),
        spec_count=2,
        releases=("develop-2025-02-02", "develop-2025-01-05"),
        stacks=("e4s", "ml"),
        first_seen="2025-01-05",
        last_seen="2025-02-02",
        hashes=(spec_hash(2), spec_hash(3)),
    )
    assert (oldest.version, oldest.spec_count, oldest.hashes) == ("1.9", 1, (spec_hash(1),))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"release": "develop-2025-01-05"}, [("hdf5", "1.10", 1), ("hdf5", "1.9", 1)]),
        ({"stack": "ml"}, [("hdf5", "1.10", 1)]),
        ({"release": "develop-2025-01-05", "stack": "ml"}, []),
        ({"release": "develop-2025-01-05", "stack": "e4s", "limit": 1}, [("hdf5", "1.10", 1)]),
        ({"limit": 1}, [("hdf5", "1.10", 2)]),
    ],
)
def test_what_narrows_an_answer(
    built: Build, options: dict[str, Any], expected: list[tuple[str, str, int]]
) -> None:
    """Release, stack and limit narrow what is found, and counts are of what is left."""
    assert summary(find(built(**TWO_RELEASES), "hdf5", **options)) == expected


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        ({"host": "zen4"}, ["zen3"]),
        ({"host": "m2"}, ["m1"]),
        ({"host": "haswell"}, []),
        ({"os": "rhel8"}, ["m1"]),
        ({"os": "rhel9"}, []),
        ({"platform": "darwin"}, []),
        ({"host": "zen3", "os": "ubuntu24.04", "platform": "linux"}, ["zen3"]),
    ],
)
def test_what_runs_on_a_machine(built: Build, options: dict[str, Any], targets: list[str]) -> None:
    """A machine keeps what archspec says it can run, and its own system and platform."""
    found = find(built(**TWO_RELEASES), "hdf5-tools", **options)

    assert [each.target for each in found] == targets


def test_a_machine_and_a_query_must_both_agree(built: Build) -> None:
    """A query for one system on a machine with another has no answer."""
    assert find(built(**TWO_RELEASES), "hdf5-tools os=rhel8", os="ubuntu24.04") == []


def test_a_hash_is_told_of_itself_alone(built: Build) -> None:
    """Counts, releases, stacks and days are those of the one spec, not of its siblings."""
    (found,) = find(built(**TWO_RELEASES), f"/{spec_hash(3)}")

    assert (found.version, found.spec_count) == ("1.10", 1)
    assert (found.releases, found.stacks) == (("develop-2025-02-02",), ("e4s",))
    assert (found.first_seen, found.last_seen) == ("2025-02-02", "2025-02-02")


def test_packages_stand_in_order(built: Build) -> None:
    """An anonymous query gives packages by name, each with its newest version first."""
    found = find(built(**TWO_RELEASES), "*")

    assert [(each.package, each.version) for each in found] == [
        ("hdf5", "1.10"),
        ("hdf5", "1.9"),
        ("hdf5-tools", "1.0"),
        ("hdf5-tools", "1.0"),
        ("iconv", "1.0"),
    ]


def test_a_virtual_name_that_is_a_package_is_found(built: Build) -> None:
    """A name that is virtual in Spack is refused, unless the file has such a package."""
    assert len(find(built(**TWO_RELEASES), "iconv@1: ~cuda")) == 1
    with pytest.raises(UnsupportedQuery, match="virtual package"):
        find(built(**TWO_RELEASES), "mpi")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"release": "develop-2025-01-06"}, "no release is called .* close: .*develop-2025-01-05"),
        ({"stack": "e4z"}, "no stack is called 'e4z'; close: e4s"),
        ({"stack": "root"}, "no stack is called 'root'"),
        ({"host": "toaster"}, "archspec knows no target 'toaster'"),
    ],
)
def test_unknown_names(built: Build, options: dict[str, Any], reason: str) -> None:
    """An unknown release, stack or machine is an error that names what is close."""
    with pytest.raises(UnknownNameError, match=reason):
        find(built(**TWO_RELEASES), "hdf5", **options)


def test_a_path_will_do(samples_file: Path) -> None:
    """A file is opened and closed; text and path are alike."""
    assert find(samples_file, "py-mpi4py") == find(str(samples_file), "py-mpi4py") != []


def test_syntax_errors_are_those_of_the_parser(samples: sqlite3.Connection) -> None:
    """A text that is no spec raises the parser's own error, with its caret."""
    with pytest.raises(QuerySyntaxError, match=r"\n +\^\n"):
        find(samples, "hdf5@@1")


def test_the_example_in_the_guide(samples_file: Path) -> None:
    """The example of the Python call in the guide runs and prints what the guide says."""
    text = (DOCS / "spec-language.md").read_text().replace("dist/spack-cache.db", str(samples_file))

    outcome = doctest.DocTestRunner().run(
        doctest.DocTestParser().get_doctest(text, {}, "spec-language.md", None, 0)
    )

    assert outcome.attempted > 0
    assert outcome.failed == 0
