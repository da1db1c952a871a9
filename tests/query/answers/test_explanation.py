"""Why nothing satisfies a query, held against `find` without each condition."""

import sqlite3
from contextlib import suppress
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.answers.why_not import why_corrected, why_not
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.site.filters import Narrowing
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from tests import contradictions, small_sources
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash


def conditions_by(
    cache: sqlite3.Connection, text: str, names: dict[str, Any]
) -> Conditions:
    """Return what a spec asks, and what names narrow."""
    lookups = read_lookups(cache)
    scope = Scope(**names).conditions(lookups)
    return Question(lookups, parse_query(text), scope).conditions


def meant_by(question: Question) -> str | None:
    """Return a query with what stands behind a compiler moved before it, as it is
    proposed.
    """
    why = why_corrected(question)
    return (why.corrected or why.read_as) if why else None


def explained(conn: sqlite3.Connection, text: str, **names: Any) -> WhyNot:
    """Return why there is no answer."""
    lookups = read_lookups(conn)
    scope = Scope(**names).conditions(lookups)
    return why_not(Question(lookups, parse_query(text), scope))


def misses_by_hash(
    conn: sqlite3.Connection, text: str, names: dict[str, Any]
) -> dict[str, tuple[Configuration, set[str]]]:
    """Return of each binary in a place its configuration and which conditions it
    misses.
    """
    place = {
        name: value for name, value in names.items() if name in ("release", "stack")
    }
    own = conditions_by(conn, text, {})
    package = next((each.text for each in own if each.kind == "package"), "*")
    missed: dict[str, tuple[Configuration, set[str]]] = {}
    for answer in find(conn, package, **place, with_hashes=True):
        for dag_hash in answer.hashes or ():
            missed[dag_hash] = (answer.configuration, set())
    asked: list[tuple[str, dict[str, Any], str]]
    asked = [
        (f"{package} {condition.text}", {}, condition.text)
        for condition in own
        if condition.kind != "package"
    ]
    if host := names.get("host"):
        asked.append((package, {"host": host}, f"host {host}"))
    if os := names.get("os"):
        asked.append((package, {"os": os}, f"os={os}"))
    for spec_asked, more, label in asked:
        found = find(conn, spec_asked, **place, **more, with_hashes=True)
        having = {dag_hash for answer in found for dag_hash in answer.hashes or ()}
        for dag_hash in missed.keys() - having:
            missed[dag_hash][1].add(label)
    return missed


def nearest_misses_least(
    conn: sqlite3.Connection, text: str, names: dict[str, Any]
) -> bool:
    """Compare what is nearest with all binaries; return whether something was."""
    why = explained(conn, text, **names)
    if why.nearest is None:
        return False
    configuration, labels = why.nearest
    text = why.read_as or text
    places = {name: names.get(name) for name in ("release", "stack") if names.get(name)}
    # As few of the release and the stack are left out as possible.
    for size in range(len(places) + 1):
        candidates: list[tuple[Configuration, set[str]]] = []
        for left_out in combinations(places, size):
            kept = {name: names[name] for name in names if name not in left_out}
            missed_places = {f"{name} {places[name]}" for name in left_out}
            for candidate, missed in misses_by_hash(conn, text, kept).values():
                candidates.append((candidate, missed | missed_places))
        if candidates:
            break

    assert len(labels) == min(len(missed) for _, missed in candidates)
    assert (configuration, set(labels)) in candidates
    return True


def test_what_is_needed_instead(real_index: sqlite3.Connection) -> None:
    """Without a dependency it is said which versions of it there are, or what provides
    it.
    """
    for text, instead in {
        "adios2 ^libxml2@:2.9": "there is 2.15.3",
        "hdf5 ^openmpi@3": "there are 5.0.10 and 4.1.6",
        "adios2 %gcc@7": "there is 13.2.0",
        "adios2 ^mpi=mpich": "there is openmpi 5.0.10",
        "adios2 ^cuda": "none needs cuda",
    }.items():
        (without,) = explained(real_index, text).without
        assert without.instead == (instead,)


def proposals_hold(cache: sqlite3.Connection, text: str, names: dict[str, Any]) -> None:
    """Ask each spec that is proposed in place of one that finds nothing."""
    lookups = read_lookups(cache)
    query = parse_query(text)
    question = Question(lookups, query, Scope(**names).conditions(lookups))
    everywhere = Question(lookups, query)

    # Ask why nothing is found.
    why: WhyNot | None
    try:
        question.check()
    except UnsupportedQuery:
        why = why_corrected(question)
    else:
        if question.count():
            return
        own = everywhere.conditions
        why = why_not(question)
    if why is None:
        return

    # A corrected spec asks for the same, as it was meant.
    meant = meant_by(everywhere) or spec_text(query)
    asked = {each.text for each in Question(lookups, parse_query(meant)).conditions}
    if why.corrected is not None:
        assert found_texts(cache, why.corrected, names) == asked

    # Another package changes nothing but the name.
    for spec_named, count in why.named:
        assert len(find(cache, spec_named, **names)) == count
        assert found_texts(cache, spec_named, names) - asked == {
            parse_query(spec_named).name
        }
        assert asked - found_texts(cache, spec_named, names) == {query.name}

    # Each proposal leaves out what it names, and nothing else.
    for without in why.without:
        left_out = {condition.text for condition in without.left_out}
        kept = {}
        for name, value in names.items():
            if name not in without.places and f"{name}={value}" not in left_out:
                kept[name] = value
        assert len(find(cache, without.spec, **kept)) == without.configurations
        replaced = {f"target={without.target}"} if without.target else set()
        read = asked if why.read_as else {one.text for one in own}
        assert found_texts(cache, without.spec, kept) == read - left_out | replaced


def names_in(conn: sqlite3.Connection) -> st.SearchStrategy[dict[str, Any]]:
    """Return what narrows an answer, by names of the file."""
    lookups = read_lookups(conn)
    releases = [release.name for release in lookups.releases.values()]
    stacks = [stack.name for stack in lookups.stacks.values()]
    return st.fixed_dictionaries(
        {
            "release": st.sampled_from([None, *releases]),
            "stack": st.sampled_from([None, *stacks]),
            "host": st.sampled_from([None, None, "zen3"]),
            "os": st.sampled_from([None, None, "rhel8"]),
        }
    )


def single_conditions_are_named(
    conn: sqlite3.Connection, text: str, names: dict[str, Any]
) -> None:
    """Compare what is found without one condition with all binaries, asked for each
    alone.
    """
    place = {
        name: value for name, value in names.items() if name in ("release", "stack")
    }
    every = misses_by_hash(conn, text, place)
    if "/" in text or any(not missed for _, missed in every.values()):
        return
    expected: dict[str, set[Configuration]] = {}
    for configuration, missed in every.values():
        if len(missed) == 1:
            (label,) = missed
            expected.setdefault(label, set()).add(configuration)
    why = explained(conn, text, **place)
    told = {}
    for without in why.without:
        if len(without.left_out) != 1 or without.places:
            continue
        text = without.left_out[0].text
        # Where another target is proposed, the number is of its configurations.
        told[text] = len(expected[text]) if without.target else without.configurations
    if why.read_as is None:
        assert told == {label: len(some) for label, some in expected.items()}, (
            text,
            place,
        )


@pytest.mark.slow
@settings(max_examples=8)
@given(st.data())
@pytest.mark.parametrize("kind", [contradictions, small_sources])
def test_what_is_said_of_any_file_holds(kind: Any, data: st.DataObject) -> None:
    """Proposals find what they say and keep the rest; what is nearest misses the
    least.
    """
    sources = kind.listings() if kind is contradictions else kind.sources()
    with kind.database_of(data.draw(sources)) as conn:
        for text in data.draw(st.lists(kind.QUERIES, min_size=8, max_size=8)):
            all_that_is_said_holds(conn, text, data.draw(names_in(conn)))


def all_that_is_said_holds(
    conn: sqlite3.Connection, text: str, names: dict[str, Any]
) -> None:
    """Hold all parts of an explanation against what `find` finds."""
    with suppress(UnsupportedQuery, QuerySyntaxError):
        proposals_hold(conn, text, names)
        nearest_misses_least(conn, text, names)
        single_conditions_are_named(conn, text, names)


EXAMPLE_QUERIES = """
aa@2, aa@1.10 ~x, bb +x, aa %gcc@13, aa %clang +x, aa %gcc target=zen3 ~x, aa k:=a os=rhel8,
bb@2 target=zen2 k=b, aaa +x, * s=one, aa %gcc@12 k=c, aa os=ubuntu22.04, bb %llvm@:14,
aa@9 ~x k=c os=none
""".replace("\n", " ").split(", ")


@pytest.mark.parametrize(
    "names", [{}, {"release": "v1.10", "host": "zen3"}, {"stack": "ml"}], ids=str
)
def test_what_is_said_of_an_example_holds(names: dict[str, Any]) -> None:
    """The same of one file, in the fast loop; conditions may stand behind a
    compiler.
    """
    with contradictions.database_of(contradictions.EXAMPLE) as conn:
        for text in (*EXAMPLE_QUERIES, f"aa /{spec_hash(3)[:31]}"):
            all_that_is_said_holds(conn, text, names)


def found_texts(
    cache: sqlite3.Connection, text: str, names: dict[str, Any]
) -> set[str]:
    """Return the conditions of a spec that finds something."""
    assert find(cache, text, **names)
    return {condition.text for condition in conditions_by(cache, text, {})}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "py-mpi4py target=zen4",
            ["with target=:zen4: 4 configurations; x86_64_v3 runs on zen4"],
        ),
        (
            "py-mpi4py@99",
            [
                "no version 99 of py-mpi4py: newest 4.0.1",
                "without @99: 7 configurations",
            ],
        ),
        (
            "py-mpi4py@4 +cuda",
            ["without +cuda: 6 configurations; none has a variant cuda"],
        ),
        (
            "py-mpi4py@3.1 os=sequoia",
            [
                "without @3.1: 1 configuration; newest 4.0.1",
                "without os=sequoia: 1 configuration; there is ubuntu20.04",
            ],
        ),
        (
            "py-mpi4py@99 +cuda ~rocm os=sequoia",
            [
                "no version 99 of py-mpi4py: newest 4.0.1",
                "nearest is py-mpi4py@4.0.1 apple-clang@16.0.0 sequoia aarch64, "
                "which misses @99, +cuda, ~rocm",
            ],
        ),
        ("mpi4py", ["mpi4py: no package has this name (near: py-mpi4py)"]),
        ("zzzz", ["zzzz: no package has this name"]),
    ],
)
def test_sentences(
    samples: sqlite3.Connection, text: str, sentences: list[str]
) -> None:
    """The counts without a condition are told, and what there is in its place."""
    assert list(explained(samples, text).sentences()) == sentences


@pytest.mark.parametrize(
    ("platform", "text", "host", "left_out", "instead"),
    [
        # Its target runs on the machine, which cannot have its platform.
        ("linux", "foo", "m2", "out host m2", "there is aarch64 for linux"),
        (
            "darwin",
            "foo",
            "neoverse_v2",
            "out host neoverse_v2",
            "there is aarch64 for darwin",
        ),
        # Its target does not run there in any case.
        ("linux", "foo", "zen3", "out host zen3", "there is aarch64"),
        # A range is proposed only if a build runs on the processor.
        (
            "linux",
            "foo target=neoverse_v2",
            None,
            " target=:neoverse_v2",
            "aarch64 runs on neoverse_v2",
        ),
        (
            "darwin",
            "foo target=neoverse_v2",
            None,
            "out target=neoverse_v2",
            "there is aarch64",
        ),
        ("darwin", "foo target=m2", None, " target=:m2", "aarch64 runs on m2"),
    ],
)
def test_another_platform_is_no_reason_to_run(
    built: Build,
    platform: str,
    text: str,
    host: str | None,
    left_out: str,
    instead: str,
) -> None:
    """Sentences name the platform if it is why a build does not run on a machine."""
    build = spec(1, target="aarch64", platform=platform)
    cache = built(a=page("foo", specs=[build]))
    sentences = explained(cache, text, host=host).sentences()
    assert list(sentences) == [f"with{left_out}: 1 configuration; {instead}"]


def test_many_conditions_take_no_longer(samples: sqlite3.Connection) -> None:
    """A spec of hundreds of conditions is told what is nearest, without trying all
    pairs.
    """
    text = "py-mpi4py " + " ".join(f"+x{number}" for number in range(500))
    why = explained(samples, text)

    assert why.without == ()
    assert why.nearest is not None and len(why.nearest[1]) == 500


DEVELOP = "develop"


def said(conn: sqlite3.Connection, text: str, where: Narrowing) -> tuple[str, ...]:
    """Return the notes on a query of which nothing is found, and what is known of its
    name.
    """
    assert (
        find(conn, text, release=where.release, stack=where.stack, host=where.host)
        == []
    )
    why = explained(
        conn, text, release=where.release, stack=where.stack, host=where.host
    )
    return ((why.known.sentence,) if why.known else ()) + why.notes


def test_what_is_known_as_a_dependency_only(real_index: sqlite3.Connection) -> None:
    """What no release lists is no binary: that is said, in an environment as well."""
    note = "such a spec is external, no binary of it is in this database"
    (dag_hash,) = real_index.execute(
        "SELECT hash FROM specs WHERE release_count = 0 ORDER BY hash LIMIT 1"
    ).fetchone()

    name = "glibc: external, no binary of it is in this database"
    assert said(real_index, "glibc", Narrowing()) == (name,)
    assert said(real_index, "glibc", Narrowing(release=DEVELOP, stack="e4s")) == (name,)
    assert said(real_index, f"/{dag_hash}", Narrowing()) == (note,)
    assert said(real_index, "zlib os=nothing", Narrowing()) == ()
    (answer,) = cover(real_index, ["glibc"]).specs
    assert (answer.status, answer.reasons) == ("none", (name,))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("py-x %gcc@13 target=zen3", "py-x target=zen3 %gcc@13"),
        (
            "py-x +a %gcc@13 target=zen3 os=rhel8 +b",
            "py-x +a +b os=rhel8 target=zen3 %gcc@13",
        ),
        ("py-x %gcc /abc", "py-x /abc %gcc"),
        ("py-x target=zen3 %gcc@13", None),
        ("py-x %gcc@13", None),
        ("py-x ~b %gcc +b", None),
        ("py-x ^zlib +b %gcc +c", None),
        ("py-x", None),
    ],
)
def test_what_was_meant(
    samples: sqlite3.Connection, typed: str, meant: str | None
) -> None:
    """What pages cannot answer either, or contradicts the rest, is not offered."""
    question = Question(read_lookups(samples), parse_query(typed))

    assert meant_by(question) == meant


SAME_NAMES = [
    "cmake ~ncurses %ncurses@6",
    "cmake ~ncurses ^ncurses@6",
    "cmake +nosuch %ncurses@6 ~ownlibs",
    "hdf5 +mpi ~mpi_x %gcc@13",
    "hdf5 +gcc %gcc@13",
    "hdf5@1.14.6 +zlib ^zlib-ng@99",
    "hdf5 fflags=-O2 cflags=-g %gcc@13",
    "hdf5 fflags=-O2 ^openmpi ~cuda",
    "hdf5 %c,cxx=gcc@13 %fortran=llvm@99",
    "openmpi +cuda ^cuda@99",
    "* +cuda ^cuda@99 os=rhel9",
    "hdf5 target=zen3 os=rhel9 +nosuch",
]


@pytest.mark.parametrize("text", SAME_NAMES)
def test_a_proposed_spec_drops_only_what_it_names(
    real_index: sqlite3.Connection, text: str
) -> None:
    """A variant, a compiler and a dependency of one name are three conditions.

    The number beside a proposed spec is the number that `find` gives for it.
    """
    lookups = read_lookups(real_index)
    query = parse_query(text)
    why = why_not(Question(lookups, query))
    read_as = parse_query(why.read_as) if why.read_as else query
    every = [condition.text for condition in Question(lookups, read_as, ()).conditions]

    assert why.without
    for answer in why.without:
        proposed = Question(lookups, parse_query(answer.spec), ()).conditions
        if answer.target is None:
            left_out = {condition.text for condition in answer.left_out}
            kept = [part for part in every if part not in left_out]
            assert sorted(condition.text for condition in proposed) == sorted(kept)
        assert len(matching(lookups, proposed).ids) == answer.configurations
