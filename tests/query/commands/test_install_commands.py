"""The commands that install a binary or load an installed spec."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import ArgumentError
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.install import choose_example
from spack_cache_db.query.answers.retention import retention
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.commands.load import installations_of
from spack_cache_db.query.commands.model import Commands, short_spec
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.binary import ids_of_hashes
from spack_cache_db.query.stored.origin import Origin, read_origin
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash, write
from tests.trees import installed, write_tree

Mirrors = Callable[..., sqlite3.Connection]


@pytest.fixture
def mirrors(tmp_path: Path) -> Iterator[Mirrors]:
    """Build indexes, given as `release/stack`: (names of its specs, address), and
    pages.
    """
    connections: list[sqlite3.Connection] = []

    def make(
        indexes: dict[str, tuple[tuple[str, ...], str | None]], **pages: bytes
    ) -> sqlite3.Connection:
        for place, (names, url) in indexes.items():
            folder = tmp_path / "input" / place
            folder.mkdir(parents=True)
            outside = record(node("outside"), is_binary=False)
            held = [record(node(name)) for name in names]
            (folder / "index.json").write_bytes(index(outside, *held))
            if url:
                (folder / "mirror.json").write_text(json.dumps({"url": url}))
        write(tmp_path / "input", **pages)
        build([tmp_path / "input"], tmp_path / "mirrors.db")
        connections.append(sqlite3.connect(tmp_path / "mirrors.db"))
        return connections[-1]

    yield make
    for connection in connections:
        connection.close()


def commands_for(
    conn: sqlite3.Connection, name: str, release: str | None = None
) -> Commands | None:
    """Return the commands for the spec with the hash of a name, or with this hash."""
    lookups = read_lookups(conn)
    sql = "SELECT id FROM specs WHERE hash IN (?, ?)"
    ((spec,),) = conn.execute(sql, (hash_of(name), name)).fetchall()
    return commands_of(lookups, [spec], release).get(spec)


def lines(
    conn: sqlite3.Connection, name: str, release: str | None = None
) -> tuple[str, ...]:
    """Return the lines of the commands."""
    commands = commands_for(conn, name, release)
    assert commands is not None
    return commands.commands


def test_commands_are_safe_to_paste(mirrors: Mirrors) -> None:
    """A name or an address from a source cannot smuggle a second command into the
    shell.
    """
    conn = mirrors({"x; rm -rf ~/root": (("foo",), "https://here/$(id)")})

    assert lines(conn, "foo")[0] == "spack mirror add x-rm--rf 'https://here/$(id)'"


def test_a_mirror_says_where_it_is(mirrors: Mirrors) -> None:
    """The address is that of a mirror that has the spec, first of the one of all
    stacks.
    """
    conn = mirrors(
        {
            "mine/e4s": (("foo", "bar", "baz"), "https://e4s"),
            "mine/root": (("foo",), "https://root"),
            "other/root": (("foo",), "oci://other/x"),
            "half/root": (("foo",), None),
            "half/hep": (("foo",), "https://hep"),
        }
    )

    def url(name: str, release: str) -> str:
        return lines(conn, name, release)[0].rpartition(" ")[2]

    assert url("foo", "mine") == "https://root"
    assert url("bar", "mine") == "https://e4s"
    assert url("foo", "other") == "oci://other/x"
    assert url("foo", "half") == "https://hep"


def test_an_unknown_address_is_told(mirrors: Mirrors) -> None:
    """Where nothing says where a mirror is, words say so: it is not the public
    cache.
    """
    conn = mirrors(
        {"mine/e4s": (("foo",), None), "mine/hep": (("bar",), "https://hep")}
    )

    unknown = commands_for(conn, "foo")
    known = commands_for(conn, "bar")

    assert unknown is not None and known is not None
    assert unknown.commands[0] == "spack mirror add mine URL-of-your-mirror"
    assert unknown.note == (
        "The address of the mirror is not known: put it in place of URL-of-your-mirror."
    )
    assert known.commands[0] == "spack mirror add mine https://hep"
    assert known.note is None


def test_pages_beside_a_mirror(mirrors: Mirrors) -> None:
    """What only a page lists is where its tarball lies; its release's mirrors come
    next.
    """
    tarball = (
        "https://there/x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
        f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(1)}.spack"
    )
    indexes = {
        "mine/root": (("foo",), "https://root"),
        "local/root": (("foo",), None),
    }
    elsewhere = spec(1, tarball=tarball)
    conn = mirrors(
        indexes,
        a=page("zlib", "mine", [elsewhere, spec(2)]),
        b=page("zlib", "local", [spec(2)]),
        c=page("zlib", "develop", [spec(2)]),
        d=page("zlib", "v0.18", [elsewhere]),
    )

    def add(number: int, release: str) -> str:
        return lines(conn, spec_hash(number), release)[0].removeprefix(
            "spack mirror add "
        )

    assert add(1, "mine") == "mine https://there/x"
    assert add(2, "mine") == "mine https://root"
    assert add(2, "local") == "local URL-of-your-mirror"
    assert add(2, "develop") == "develop https://binaries.spack.io/develop"
    assert add(1, "v0.18") == "v0.18 https://there/x"


def test_the_mirror_of_a_binary_is_the_same_beside_others(tmp_path: Path) -> None:
    """A row of a list adds the mirror that the page of its binary adds, although an old
    snapshot has the address of the mirror of others.
    """

    def at(mirror: str, number: int) -> dict[str, Any]:
        tarball = (
            f"https://{mirror}/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
            f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(number)}.spack"
        )
        return spec(number, tarball=tarball)

    write(
        tmp_path / "input",
        a=page("zlib", "v1.0", [at("one", 1)]),
        b=page("zlib", "develop", [at("dev", 2)]),
        c=page("zlib", "develop-2025-01-05", [at("dev", 1)]),
    )
    build([tmp_path / "input"], tmp_path / "mirrors.db")
    with closing(sqlite3.connect(tmp_path / "mirrors.db")) as conn:
        lookups = read_lookups(conn)
        hashes = [spec_hash(1), spec_hash(2)]
        first, second = (ids_of_hashes(conn, hashes)[dag_hash] for dag_hash in hashes)
        alone = commands_of(lookups, [first])[first]
        beside = commands_of(lookups, [first, second])[first]

    assert alone.commands[0] == "spack mirror add v1.0 https://one"
    assert beside.commands == alone.commands


@pytest.mark.parametrize(
    ("scope", "release", "stack"),
    [
        ({}, "develop", "e4s"),
        ({"release": "v1"}, "v1", "root"),
        ({"stack": "hep"}, "v1", "hep"),
        ({"release": "develop", "stack": "e4s"}, "develop", "e4s"),
    ],
)
def test_cover_names_who_has_a_binary(
    mirrors: Mirrors, scope: dict[str, str], release: str, stack: str
) -> None:
    """It is the first release that lists it within what was asked, and the mirror that
    has it.
    """
    places = {
        "develop/root": "bar",
        "develop/e4s": "foo",
        "v1/root": "foo",
        "v1/hep": "foo",
    }
    conn = mirrors(
        {place: ((name,), f"https://here/{place}") for place, name in places.items()}
    )

    has, lacks = cover(conn, ["foo", "baz"], **scope).specs

    # Of the mirrors of a release that have it, that of all stacks is named.
    at = f"https://here/{release}/{'root' if release == 'v1' else stack}"
    assert (has.status, has.release, has.mirror) == ("binary", release, at)
    assert (lacks.release, lacks.mirror) == (None, None)


def test_an_example_is_something_that_the_release_has(mirrors: Mirrors) -> None:
    """A new user installs a well-known package that is there, or else the largest."""
    indexes = {
        "a/root": (("foo", "zlib", "hdf5"), None),
        "b/root": (("foo", "zlib"), None),
    }
    of_bar = page("bar", "c", [spec(1), spec(2, os="rhel8")])
    of_foo = page("foo", "c", [spec(3)])
    conn = mirrors(indexes, c=of_bar, d=of_foo)
    lookups = read_lookups(conn)
    examples = [
        choose_example(lookups, release)
        for release in lookups.releases.values()
        if release.name in ("a", "b", "c")
    ]

    last_lines = [example.commands.commands[-1] for example in examples if example]
    assert [line.rpartition("/")[0] for line in last_lines] == [
        "spack install --cache-only hdf5",
        "spack install --cache-only zlib",
        "spack install --cache-only bar",
    ]


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        ((), "abcdefg"),
        (("abcdefz",), "abcdefg"),
        (("abcdefgz", "abcdefgha"), "abcdefghi"),
    ],
)
def test_prefix_is_as_short_as_it_can_be(
    neighbours: tuple[str, ...], expected: str
) -> None:
    """The hash in a command has 7 characters, more only where 7 mean two specs."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE TABLE specs (hash)")
        conn.executemany("INSERT INTO specs VALUES (?)", zip(neighbours))
        assert short_spec(conn, "foo", "abcdefghij") == f"foo/{expected}"


def test_what_can_be_installed_comes_first(mirrors: Mirrors) -> None:
    """Of the releases that list a spec, one whose mirror has a known address is
    taken.
    """
    conn = mirrors(
        {"develop/root": (("foo",), None), "v1.0/root": (("foo",), "https://v1")}
    )
    chosen = commands_for(conn, "foo", "develop")

    assert lines(conn, "foo")[0] == "spack mirror add v1.0 https://v1"
    assert chosen is not None and chosen.release == "develop" and not chosen.is_known


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a tree with versions 1 to 3 of a, and a mirror with versions 2 to
    4.
    """
    folder = tmp_path_factory.mktemp("both")

    def of(version: int) -> dict[str, object]:
        return node("a", version=f"{version}.0", hash=hash_of(f"a{version}"))

    ours = [
        installed(of(at), explicit=at == 1, path=f"/opt/a-{at}") for at in (1, 2, 3)
    ]
    needs = installed(node("top", {**edge("a3", "link"), "name": "a"}), explicit=True)
    tree = write_tree(folder / "opt", [*ours, needs])
    mirror = folder / "mirrors" / "develop" / "e4s"
    mirror.mkdir(parents=True)
    theirs = [record(of(at)) for at in (2, 3, 4)]
    (mirror / "index.json").write_bytes(index(*theirs, record(node("other"))))
    build([tree, folder / "mirrors"], folder / "x.db")
    return folder / "x.db"


def test_what_is_installed_is_found_first(both: Path) -> None:
    """First what somebody asked for, then what else is installed, then what could be
    installed.
    """
    assert [answer.version for answer in find(both, "a")] == [
        "1.0",
        "3.0",
        "2.0",
        "4.0",
    ]
    assert [each.version for each in find(both, "a", release="develop")] == [
        "3.0",
        "2.0",
        "4.0",
    ]


def test_only_what_was_asked_for_is_found(both: Path) -> None:
    """`explicit` leaves out dependencies and what could be had; other conditions hold
    as well.
    """
    assert [
        (answer.package, answer.version) for answer in find(both, "*", explicit=True)
    ] == [
        ("a", "1.0"),
        ("top", "1.0"),
    ]
    assert [each.package for each in find(both, "* ^a", explicit=True)] == ["top"]
    assert find(both, "* ^top", explicit=True) == find(both, "a@4", explicit=True) == []
    assert find(both, "a", explicit=True, release="develop") == []
    assert (
        run("find", "--explicit", "a", both, "--csv")
        .stdout.splitlines()[1]
        .startswith("a,1.0")
    )
    assert run("find", "--explicit", "a@4", both).exit_code == 1


def test_an_installed_spec_is_loaded(both: Path) -> None:
    """The command, the prefix, whether it was asked for, and when; a mirror's is
    installed.
    """
    with closing(sqlite3.connect(both)) as conn:
        first = commands_for(conn, "a1")
        (same,) = installations_of(conn, "a", hash_of("a1"))
        newest = commands_for(conn, "a4")
        mirrored = commands_for(conn, "a3", "develop")
        lookups = read_lookups(conn)
        tree = lookups.release("installed")
        assert tree is not None
        example = choose_example(lookups, tree)

    load = f"spack load a/{hash_of('a1')[:7]}"
    assert (
        first
        == same
        == Commands(
            (load,),
            "installed",
            load=load,
            prefix="/opt/a-1",
            is_explicit=True,
            installed_at="2023-12-06 00:00:00",
        )
    )
    assert same.commands == (load,)
    assert newest is not None and newest.commands[-1].startswith(
        "spack install --cache-only a/"
    )
    assert mirrored is not None
    assert mirrored.commands[-1].startswith("spack install --cache-only a/")
    assert example is not None
    assert (example.commands, example.build) == (first, "a@1.0, debian12, x86_64_v3")


@pytest.mark.parametrize(
    ("release", "statuses"),
    [
        (None, ["installed", "installed", "binary", "none", "binary"]),
        ("installed", ["installed", "installed", "near", "none", "near"]),
        ("develop", ["binary", "near", "binary", "none", "binary"]),
    ],
)
def test_what_is_installed_needs_no_binary(
    both: Path, release: str | None, statuses: list[str]
) -> None:
    """`installed` comes before `binary`; within a release only what that one has
    counts.
    """
    specs = ["a", "a@1", "a@4", "b", "other"]
    found = cover(both, specs, release=release)
    if release == "installed":
        statuses = [*statuses[:4], found.specs[4].status]

    assert [covered.status for covered in found.specs] == statuses
    assert found.available == sum(
        status in ("installed", "binary") for status in statuses
    )


def test_a_catalogue_says_that_it_is_of_installed_software(
    both: Path, tmp_path: Path
) -> None:
    """Trees alone are no build cache; beside a mirror, both are named."""
    build(write_tree(tmp_path / "opt", [installed(node("a"))]), tmp_path / "x.db")
    tree = "the installation installed"

    for path, origin in (
        (tmp_path / "x.db", Origin("Installed software", tree, None, False)),
        (both, Origin("Build cache", f"{tree} and a mirror", None, False)),
    ):
        with closing(sqlite3.connect(path)) as conn:
            assert read_origin(conn) == origin


def test_an_installed_tree_keeps_no_binary_of_a_mirror(
    both: Path, tmp_path: Path
) -> None:
    """Answers name what is installed first, so a mirror beside a tree has to be
    named.
    """
    path = tmp_path / "specs.txt"
    path.write_text("a@2:\n")
    with pytest.raises(ArgumentError, match="give the mirror's release"):
        retention(both, [path])
    done = run("cover", path, both, "--keeplist")
    assert (done.exit_code, done.stdout) == (2, "")

    # Of the mirror's binaries the newest is kept, whatever is installed.
    assert retention(both, [path], release="develop").keep == (hash_of("a4"),)
    done = run("cover", path, both, "--keeplist", "--release", "develop")
    assert (done.exit_code, done.stdout.split()) == (0, [hash_of("a4")])
