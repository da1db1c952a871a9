"""The commands that install a spec."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.installation import (
    install_binary,
    install_example,
    install_spec,
    mirror_url,
    short_spec,
)
from tests.indexes import hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash, write

Mirrors = Callable[..., sqlite3.Connection]


@pytest.fixture
def mirrors(tmp_path: Path) -> Iterator[Mirrors]:
    """Build indexes, given as `release/stack`: (names of its specs, address), and pages."""
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


def test_commands_are_safe_to_paste(mirrors: Mirrors) -> None:
    """A name or an address from a source cannot smuggle a second command into the shell."""
    conn = mirrors({"x; rm -rf ~/root": (("foo",), "https://here/$(id)")})

    assert install_example(conn, "x; rm -rf ~").commands[0] == (
        "spack mirror add 'x; rm -rf ~' 'https://here/$(id)'"
    )


def test_a_mirror_says_where_it_is(mirrors: Mirrors) -> None:
    """The address is that of a mirror that has the spec, first of the one of all stacks."""
    conn = mirrors(
        {
            "mine/e4s": (("foo", "bar", "baz"), "https://e4s"),
            "mine/root": (("foo",), "https://root"),
            "mine/a": (("outside",), "https://a"),
            "other/root": (("foo",), "oci://other/x"),
            "half/root": (("foo",), None),
            "half/hep": (("foo",), "https://hep"),
        }
    )

    assert mirror_url(conn, "mine", hash_of("foo")) == "https://root"
    assert mirror_url(conn, "mine", hash_of("bar")) == "https://e4s"
    assert mirror_url(conn, "mine", hash_of("outside")) == "https://a"
    assert mirror_url(conn, "other", hash_of("foo")) == "oci://other/x"
    assert mirror_url(conn, "half", hash_of("foo")) == "https://hep"
    assert mirror_url(conn, "mine") == "https://root"


def test_an_unknown_address_is_told(mirrors: Mirrors) -> None:
    """Where nothing says where a mirror is, words say so: it is not the public cache."""
    conn = mirrors({"mine/e4s": (("foo",), None), "mine/hep": (("bar",), "https://hep")})

    unknown = install_spec(conn, "foo", hash_of("foo"), "mine")
    known = install_spec(conn, "bar", hash_of("bar"), "mine")

    assert unknown.commands[0] == "spack mirror add mine URL-of-your-mirror"
    assert unknown.note == (
        "The address of the mirror is not known: put it in place of URL-of-your-mirror."
    )
    assert (known.commands[0], known.note) == ("spack mirror add mine https://hep", None)


def test_pages_beside_a_mirror(mirrors: Mirrors) -> None:
    """What only a page lists is where its tarball lies; its release's mirrors come next."""
    tarball = (
        "https://there/x/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/zlib-1.0/"
        f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-zlib-1.0-{spec_hash(1)}.spack"
    )
    conn = mirrors(
        {"mine/root": (("foo",), "https://root"), "local/root": (("foo",), None)},
        a=page("zlib", "mine", [spec(1, tarball=tarball), spec(2)]),
        b=page("zlib", "local", [spec(2)]),
        c=page("zlib", "develop", [spec(2)]),
        d=page("zlib", "v0.18", [spec(1, tarball=tarball)]),
    )

    assert mirror_url(conn, "mine", spec_hash(1)) == "https://there/x"
    assert mirror_url(conn, "mine", spec_hash(2)) == "https://root"
    assert mirror_url(conn, "local", spec_hash(2)) is None
    assert mirror_url(conn, "develop", spec_hash(2)) == "https://binaries.spack.io/develop"
    assert mirror_url(conn, "develop") == "https://binaries.spack.io/develop"
    assert mirror_url(conn, "v0.18") == "https://there/x"


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
    """It is the first release that lists it within what was asked, and the mirror that has it."""
    places = {"develop/root": "bar", "develop/e4s": "foo", "v1/root": "foo", "v1/hep": "foo"}
    conn = mirrors({place: ((name,), f"https://here/{place}") for place, name in places.items()})

    has, lacks = cover(conn, ["foo", "baz"], **scope).specs

    # Of the mirrors of a release that have it, that of all stacks is named.
    at = f"https://here/{release}/{'root' if release == 'v1' else stack}"
    assert (has.status, has.release, has.mirror) == ("binary", release, at)
    assert (lacks.release, lacks.mirror) == (None, None)


def test_an_example_is_something_that_the_release_has(mirrors: Mirrors) -> None:
    """A new user installs a well-known package that is there, or else the largest."""
    conn = mirrors(
        {"a/root": (("foo", "zlib", "hdf5"), None), "b/root": (("foo", "zlib"), None)},
        c=page("bar", "c", [spec(1), spec(2, os="rhel8")]),
        d=page("foo", "c", [spec(3)]),
    )

    assert [install_example(conn, release).commands[-1] for release in "abc"] == [
        "spack install --cache-only hdf5",
        "spack install --cache-only zlib",
        "spack install --cache-only bar",
    ]


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [((), "abcdefg"), (("abcdefz",), "abcdefg"), (("abcdefgz", "abcdefgha"), "abcdefghi")],
)
def test_prefix_is_as_short_as_it_can_be(neighbours: tuple[str, ...], expected: str) -> None:
    """The hash in a command has 7 characters, more only where 7 mean two specs."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE TABLE specs (hash)")
        conn.executemany("INSERT INTO specs VALUES (?)", zip(neighbours))
        assert short_spec(conn, "foo", "abcdefghij") == f"foo/{expected}"


def test_what_can_be_installed_comes_first(mirrors: Mirrors) -> None:
    """Of the releases that list a spec, one whose mirror has a known address is taken."""
    conn = mirrors({"develop/root": (("foo",), None), "v1.0/root": (("foo",), "https://v1")})
    install = install_binary(conn, "foo", hash_of("foo"))
    chosen = install_binary(conn, "foo", hash_of("foo"), "develop")

    assert install is not None and install.commands[0] == "spack mirror add v1.0 https://v1"
    assert chosen is not None and chosen.release == "develop" and not chosen.is_known
