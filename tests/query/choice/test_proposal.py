"""query.proposal: the build that is proposed among the matches of a question."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.choice.options import BEST
from spack_cache_db.query.choice.proposal import best_specs, propose_among
from spack_cache_db.query.choice.proposed import Proposal
from spack_cache_db.query.choice.rule import Reason
from spack_cache_db.query.match.candidates import candidates_by_id
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.spack.parser import parse_query
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, write
from tests.trees import installed, write_tree

X86 = {"os": "ubuntu22.04", "compiler": "gcc@13.2.0", "target": "x86_64_v3"}
"""What most packages of the pages use."""


def _of_versions(*versions: str) -> list[dict[str, Any]]:
    """Return a binary of each version."""
    return [{"versions": [version]} for version in versions]


class Builds:
    """Pages of a release; each binary has the next number as its hash."""

    def __init__(self) -> None:
        self.count = 0

    def page(self, package: str, release: str, *binaries: dict[str, Any]) -> bytes:
        """Return a page of a package; a binary has the usual words unless it names
        others.
        """
        specs = []
        for binary in binaries:
            self.count += 1
            specs.append(spec(self.count, **{**X86, "variants": [], **binary}))
        return page(package, release, specs)


def _pages(folder: Path) -> None:
    builds = Builds()
    pages: dict[str, list[dict[str, Any]]] = {
        "versions": _of_versions("1.9", "develop", "1.10", "1.10-rc1"),
        "moving": [
            {"versions": ["develop"]},
            {"versions": ["git.main=3.0"]},
            {"versions": ["1.0"], "target": "zen3"},
        ],
        "moving-only": _of_versions("main", "git.v9=9"),
        "obsolete": _of_versions("develop", "1.0"),
        "tip": _of_versions("develop", "master", "1.0"),
        "preferred": _of_versions("3.0", "2.0", "1.0"),
        "deprecated": _of_versions("2.0", "1.0"),
        "defaults": [
            {"variants": ["+x", "~y"]},
            {"variants": ["+x", "~y"], "os": "rhel8"},
            {"variants": ["~x", "~y"]},
            {"variants": ["~x", "+y"]},
        ],
        "commonest": [
            {"variants": ["+x"]},
            {"variants": ["~x"]},
            {"variants": ["~x"], "target": "zen3"},
        ],
        "compilers": [
            {"compiler": "llvm@20.1.0"},
            {"compiler": "gcc@9.5.0"},
            {"compiler": "gcc@13.2.0"},
        ],
        "systems": [{"os": "amzn2"}, {"os": "ubuntu22.04"}, {"os": "rhel8"}],
        "targets": [
            {"target": "neoverse_v1"},
            {"target": "aarch64"},
            {"target": "zen3"},
            {"target": "x86_64_v4"},
            {"target": "x86_64_v3"},
            {"target": "zen2"},
        ],
        "graviton": [
            {"target": "neoverse_v1", "versions": ["2.0"]},
            {"target": "x86_64_v3", "versions": ["1.0"]},
        ],
        "cray": [
            {"compiler": "cce@18.0.0", "os": "rhel8", "versions": ["2.0"]},
            {"versions": ["1.0"]},
        ],
        "mac": [
            {
                "platform": "darwin",
                "os": "sonoma",
                "target": "aarch64",
                "versions": ["2.0"],
            },
            {"versions": ["1.0"]},
        ],
        "bundle": [{"compiler": "none"}],
        "rebuilt": [{}, {}, {}],
        # Most binaries of all.
        "largest": [{"variants": [f"k={number}"]} for number in range(9)],
    }
    for package, binaries in pages.items():
        write(
            folder / "develop" / package,
            specs=builds.page(package, "develop", *binaries),
        )
    old = builds.page("removed", "develop-2025-01-05", {"versions": ["2.0"]})
    write(folder / "snapshot", specs=old)
    write(
        folder / "release", specs=builds.page("removed", "v0.9", {"versions": ["1.0"]})
    )
    past = builds.page(
        "past", "develop-2025-01-05", {"versions": ["2.0"]}, {"versions": ["1.0"]}
    )
    write(folder / "past", specs=past)


def _package_data(folder: Path) -> None:
    options = [
        {"name": "x", "default": False, "description": ""},
        {"name": "y", "default": False, "description": ""},
    ]
    deprecated = published(
        "deprecated",
        "1.0",
        latest_version="",
        versions_deprecated=[{"name": "2.0", "sha256": "0"}],
    )
    obsolete = published(
        "obsolete",
        latest_version="develop",
        versions=[{"name": "develop", "branch": "develop"}],
        versions_deprecated=[{"name": "1.0", "sha256": "0"}],
    )
    tip = published(
        "tip",
        latest_version="develop",
        versions=[{"name": "develop", "branch": "develop"}, {"name": "1.0"}],
    )
    write_packages(
        folder,
        published("defaults", "1.0", variants=options),
        published("preferred", "3.0", "2.0", "1.0", latest_version="2.0"),
        deprecated,
        obsolete,
        tip,
    )


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of pages and package data."""
    folder = tmp_path_factory.mktemp("proposal")
    _pages(folder / "pages")
    _package_data(folder / "packages")
    build([folder / "pages", folder / "packages"], folder / "x.db")
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


def proposal_for(conn: sqlite3.Connection, text: str, **scope: Any) -> Proposal | None:
    """Return the proposal for a spec and names such as `release` and `host`."""
    lookups = read_lookups(conn)
    question = Question(lookups, parse_query(text), Scope(**scope).conditions(lookups))
    return propose_among(lookups, question.results)


ANY = "chosen for any x86_64 machine: "


@pytest.mark.parametrize(
    ("text", "host", "built", "reason"),
    [
        (
            "versions",
            None,
            "versions@1.10, gcc",
            "chosen: stable version, newest version",
        ),
        ("versions@develop", None, "versions@develop", "the only build"),
        # A version that moves is left out, whatever it was built for.
        ("moving", None, "moving@1.0, gcc", "chosen: stable version"),
        (
            "moving",
            "x86_64_v3",
            "moving@develop, gcc",
            "chosen for x86_64_v3: newest version",
        ),
        ("moving@git.main=3.0", None, "moving@git.main=3.0", "the only build"),
        ("moving-only", None, "moving-only@main", "chosen: newest version"),
        # As in Spack: a branch that the recipe prefers, and no deprecated version.
        ("obsolete", None, "obsolete@develop", "chosen: preferred version"),
        ("tip", None, "tip@develop", "chosen: preferred version"),
        ("preferred", None, "preferred@2.0, gcc", "chosen: preferred version"),
        ("preferred@3:", None, "preferred@3.0, gcc", "the only build"),
        ("deprecated", None, "deprecated@1.0, gcc", "chosen: preferred version"),
        ("defaults", None, "defaults@1.0, gcc", "chosen: default options"),
        (
            "defaults+x",
            None,
            "defaults@1.0 +x, gcc",
            "chosen: ubuntu22.04 is the commonest system",
        ),
        ("defaults+y", None, "defaults@1.0 +y, gcc", "the only build"),
        ("commonest", None, "commonest@1.0 ~x, gcc", f"{ANY}commonest options"),
        (
            "compilers",
            None,
            "compilers@1.0, gcc 13.2.0, ubuntu22.04",
            "chosen: gcc 13.2.0",
        ),
        ("compilers%gcc@:12", None, "compilers@1.0, gcc 9.5.0", "the only build"),
        (
            "systems",
            None,
            "systems@1.0, gcc 13.2.0, ubuntu22.04",
            "chosen: ubuntu22.04 is the commonest system",
        ),
        (
            "targets",
            None,
            "targets@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            f"{ANY}x86_64_v3 runs on most machines",
        ),
        (
            "targets",
            "zen4",
            "targets@1.0, gcc 13.2.0, ubuntu22.04, zen3",
            "chosen for zen4: nearest target",
        ),
        # Every target, so no machine is chosen.
        (
            "targets target=:",
            None,
            "targets@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            f"{ANY}x86_64_v3 runs on most machines",
        ),
        (
            "targets target=:,zen4",
            None,
            "targets@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            f"{ANY}x86_64_v3 runs on most machines",
        ),
        # What runs on either of two machines.
        (
            "targets target=:zen4,:zen3",
            None,
            "targets@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            f"{ANY}x86_64_v3 runs on most machines",
        ),
        (
            "targets target=:skylake",
            None,
            "targets@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            "the only build",
        ),
        (
            "graviton",
            None,
            "graviton@1.0, gcc 13.2.0, ubuntu22.04, x86_64_v3",
            ANY[:-2],
        ),
        ("graviton", "neoverse_v1", "graviton@2.0, gcc", "the only build"),
        ("cray", None, "cray@1.0, gcc 13.2.0", ANY[:-2]),
        ("cray%cce", None, "cray@2.0, cce 18.0.0, rhel8", "the only build"),
        ("mac", None, "mac@1.0, gcc 13.2.0, ubuntu22.04", ANY[:-2]),
        ("mac platform=darwin", None, "mac@2.0, gcc 13.2.0, sonoma", "the only build"),
        ("removed", None, "removed@1.0", "chosen: listed by a branch or release"),
        ("past", None, "past@2.0", "chosen: newest version"),
        ("bundle", None, "bundle@1.0, ubuntu22.04, x86_64_v3", "the only build"),
        ("rebuilt", None, "rebuilt@1.0, gcc", "the first of equal builds"),
        ("*", None, "largest@1.0 k=", "chosen: largest has most binaries"),
    ],
)
def test_the_build_and_the_reason(
    public: sqlite3.Connection, text: str, host: str | None, built: str, reason: str
) -> None:
    """Each step of the rule decides where the steps before it do not, and the reason
    names it.
    """
    proposal = proposal_for(public, text, host=host)

    assert proposal is not None
    assert proposal.build.startswith(built)
    assert proposal.reason == reason


def test_a_release_of_the_question(public: sqlite3.Connection) -> None:
    """A question about a snapshot gets a build of this snapshot, the newest one."""
    proposal = proposal_for(public, "removed", release="develop-2025-01-05")

    assert proposal is not None
    assert (proposal.configuration.version, proposal.decided) == ("2.0", ())
    assert proposal_for(public, "versions", release="v0.9") is None


def test_many_options_are_counted(tmp_path: Path) -> None:
    """The words of a build have six options, and the number of the others."""
    options = [f"+o{number}" for number in range(9)]
    many = Builds().page("many", "develop", {"variants": options}, {"variants": ["+p"]})
    build([write(tmp_path / "in", many=many)], tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        proposal = proposal_for(conn, "many+o1")
        first = proposal_for(conn, "many")

    # Without package data, only options that other matches do not share are told.
    assert proposal is not None
    assert proposal.build.startswith("many@1.0 +o1, gcc")
    assert first is not None
    assert first.build.startswith(
        "many@1.0 +o0 +o1 +o2 +o3 +o4 +o5 and 3 more options, gcc"
    )


def _write_mirror(
    folder: Path, *records: dict[str, Any], url: str | None = "https://m"
) -> None:
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index(*records))
    if url:
        (folder / "mirror.json").write_text(json.dumps({"url": url}))


def _versioned(name: str, version: str, *edges: dict[str, Any]) -> dict[str, Any]:
    return node(f"{name}-{version}", *edges) | {"name": name, "version": version}


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of mirrors, one without an address, and of an installation."""
    folder = tmp_path_factory.mktemp("mirrors")
    lost = record(node("lost"), is_binary=False)
    outside = node("outside", external={"path": "/opt/cray/outside"})
    _write_mirror(
        folder / "in" / "mine" / "root",
        lost,
        record(outside, is_binary=False),
        record(_versioned("partial", "2.0", edge("lost", "link"))),
        record(_versioned("partial", "1.0")),
        record(_versioned("broken", "2.0", edge("lost", "link"))),
        record(_versioned("broken", "1.0", edge("lost", "run"))),
        record(_versioned("site", "2.0", edge("outside", "link"))),
        record(_versioned("site", "1.0")),
        record(_versioned("tool", "2.0", edge("lost", "build"))),
        record(_versioned("tool", "1.0")),
        record(_versioned("placed", "1.0")),
        record(_versioned("used", "2.0")),
    )
    nowhere = record(_versioned("placed", "2.0"))
    _write_mirror(folder / "in" / "nowhere" / "root", nowhere, url=None)
    write_tree(
        folder / "in" / "opt",
        [
            installed(_versioned("used", "1.0"), explicit=True),
            installed(_versioned("used", "1.5")),
        ],
    )
    build([folder / "in"], folder / "x.db")
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


@pytest.mark.parametrize(
    ("text", "version", "reason", "is_complete"),
    [
        ("partial", "1.0", "chosen: with all dependencies", True),
        ("broken", "2.0", "chosen: newest version", False),
        ("site", "1.0", "chosen: needs nothing of the system", True),
        ("tool", "2.0", "chosen: newest version", True),
        ("placed", "1.0", "chosen: in a mirror with a known address", True),
        ("used", "1.0", "chosen: installed", True),
        ("used@2:", "2.0", "the only build", True),
    ],
)
def test_what_can_be_installed_comes_first(
    mirrors: sqlite3.Connection, text: str, version: str, reason: str, is_complete: bool
) -> None:
    """A complete binary comes before a newer one whose dependencies are missing."""
    proposal = proposal_for(mirrors, text)

    assert proposal is not None
    assert (proposal.configuration.version, proposal.reason) == (version, reason)
    assert proposal.is_complete is is_complete


def test_no_address_is_missed_if_no_mirror_has_one(tmp_path: Path) -> None:
    """The first binary that can be installed is the best: no others are compared."""
    older = _versioned("foo", "1.0")
    newer = _versioned("foo", "2.0")
    _write_mirror(tmp_path / "in" / "root", record(older), record(newer), url=None)
    build([tmp_path / "in"], tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        lookups = read_lookups(connection)
        (ids,) = zip(*connection.execute("SELECT id FROM configurations"), strict=True)
        best = best_specs(lookups, candidates_by_id(lookups, ids))
        proposal = proposal_for(connection, "foo")

    assert {item.standing for item in best.values()} == {BEST}
    assert proposal is not None
    assert proposal.configuration.version == "2.0"
    assert proposal.reason == "chosen: newest version"


def test_a_mirror_of_the_question(mirrors: sqlite3.Connection) -> None:
    """A question about a mirror does not get what is installed."""
    proposal = proposal_for(mirrors, "used", release="mine")

    assert proposal is not None
    assert proposal.hash == hash_of("used-2.0")


def test_a_gone_binary_is_not_proposed(tmp_path: Path) -> None:
    """A binary that only a copy of a mirror lists is never proposed, even if it is the
    only one.
    """
    folder = tmp_path / "in" / "mine" / "root"
    _write_mirror(
        folder, record(_versioned("a", "2.0")), record(_versioned("b", "1.0"))
    )
    build([tmp_path / "in"], tmp_path / "x.db", snapshot="2026-01-02")
    (folder / "index.json").write_bytes(index(record(_versioned("a", "1.0"))))
    build(
        [tmp_path / "in", tmp_path / "x.db"], tmp_path / "y.db", snapshot="2026-01-03"
    )

    with closing(sqlite3.connect(tmp_path / "y.db")) as conn:
        proposal = proposal_for(conn, "a")
        assert proposal_for(conn, "b") is None

    assert proposal is not None
    assert (proposal.configuration.version, proposal.decided) == ("1.0", ())


def test_reasons_are_in_the_order_of_the_rule(public: sqlite3.Connection) -> None:
    """Several steps may decide; each is named, in order."""
    proposal = proposal_for(public, "*", host="zen4")

    assert proposal is not None
    assert list(proposal.decided) == sorted(proposal.decided, key=list(Reason).index)
    assert proposal.decided[0] == Reason.PACKAGE
