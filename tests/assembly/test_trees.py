"""Installed trees: known by their content, first in every list, with prefixes and
times.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from spack_cache_db.errors import ArgumentError, InputError
from spack_cache_db.query.open.info import info
from tests.commands import run
from tests.indexes import edge, index, node, record
from tests.pagetexts import page, spec, write
from tests.trees import installed, write_tree
from tests.trees import real_tree as real_tree_records

RELEASES = "SELECT name, kind FROM releases ORDER BY position"
INSTALLATIONS = """
SELECT hash, package, version, release, prefix, explicit, installed_at FROM installations
ORDER BY hash, release
"""


def built(output: Path, *paths: Path, **options: Any) -> sqlite3.Connection:
    """Build a database and connect to it."""
    build(paths, output, **options)
    return sqlite3.connect(output)


def expected_rows(
    records: Iterable[dict[str, Any]], release: str = "installed"
) -> list[tuple[Any, ...]]:
    """Return the rows of `installations` that records of a tree should have."""
    rows = []
    for entry in records:
        if not entry["installed"]:
            continue
        spec = entry["spec"]
        installed_at = datetime.fromtimestamp(entry["installation_time"], UTC)
        rows.append(
            (
                spec["hash"],
                spec["name"],
                spec["version"],
                release,
                entry["path"],
                int(entry["explicit"]),
                installed_at.strftime("%Y-%m-%d %H:%M:%S"),
            )
        )
    return sorted(rows)


def test_every_installed_spec_is_in_the_view(real_tree: sqlite3.Connection) -> None:
    """With its prefix, whether it is explicit, and the time of its installation in
    UTC.
    """
    rows = real_tree.execute(INSTALLATIONS).fetchall()
    assert rows == expected_rows(real_tree_records())
    assert rows[0][-1] >= "2023-12-06 00:00:00"


def test_an_installation_is_known_by_its_content(tmp_path: Path) -> None:
    """An index that is renamed is still one; a mirror in its place is none."""
    path = (
        write_tree(tmp_path / "opt", [installed(node("a"))])
        / ".spack-db"
        / "index.json"
    )
    path = path.rename(tmp_path / "backup.json")

    for options, name in (
        ({}, "installed"),
        ({"release": "big-machine"}, "big-machine"),
    ):
        with closing(built(tmp_path / f"{name}.db", path, **options)) as db:
            assert db.execute(RELEASES).fetchall() == [(name, "installed")]

    path.write_bytes(index(record(node("a"))))
    with closing(built(tmp_path / "x.db", path)) as db:
        assert ("installed", "installed") not in db.execute(RELEASES).fetchall()


def test_a_database_has_the_date_of_its_newest_source(tmp_path: Path) -> None:
    """`as_of` is the last day of a snapshot or an installation, also of a database of
    databases.
    """
    days = [(None, None), (1_700_000_000, "2023-11-14"), (1_600_000_000, "2023-11-14")]
    paths: list[Path] = []
    for at, (seconds, _) in enumerate(days):
        record = installed(node(f"a{at}"), installation_time=seconds)
        path = write_tree(tmp_path / f"opt{at}", [record])
        build(path, tmp_path / f"{at}.db")
        paths.append(tmp_path / f"{at}.db")
    pages = write(tmp_path / "pages", a=page("zlib", "develop-2023-12-24", [spec(1)]))
    found = []
    for end in (1, 2, 3):
        build(paths[:end], tmp_path / "x.db")
        found.append(info(tmp_path / "x.db")["as_of"])
    build([*paths, pages], tmp_path / "x.db")

    assert [*found, info(tmp_path / "x.db")["as_of"]] == [
        *(day for _, day in days),
        "2023-12-24",
    ]
    assert "as_of" not in info(tmp_path / "x.db")["origin"]


def test_trees_stand_before_releases(tmp_path: Path) -> None:
    """A tree beside a branch comes first, unless a release is named first; the file
    says which.
    """
    tree = write_tree(tmp_path / "opt", [installed(node("a"))])
    pages = write(
        tmp_path / "pages",
        a=page("a", "develop", [spec(1)]),
        b=page("a", "v1.0", [spec(2)]),
    )

    with closing(built(tmp_path / "x.db", tree, pages)) as db:
        assert [name for name, _ in db.execute(RELEASES)] == [
            "installed",
            "develop",
            "v1.0",
        ]
    with closing(built(tmp_path / "y.db", tree, pages, first="v1.0")) as db:
        assert [name for name, _ in db.execute(RELEASES)] == [
            "v1.0",
            "installed",
            "develop",
        ]
    assert info(tmp_path / "y.db")["origin"]["first"] == "v1.0"
    with pytest.raises(
        ArgumentError, match="first is 'v2', expected a release, such as inst"
    ):
        build([tree, pages], tmp_path / "y.db", first="v2")


def test_trees_that_use_each_other_are_one_release(tmp_path: Path) -> None:
    """Trees of one name are told together, each spec with all prefixes; a copy is
    passed over.
    """
    own = [
        installed(node("a", edge("b", "link"))),
        installed(node("b"), path="/upstream/b"),
    ]
    upstream = [installed(node("b")), installed(node("c"))]
    trees = [
        write_tree(tmp_path / "own", own),
        write_tree(tmp_path / "upstream", upstream),
    ]
    trees.append(write_tree(tmp_path / "copy", own))
    expected = sorted([*expected_rows(own, "here"), *expected_rows(upstream, "here")])

    with closing(built(tmp_path / "x.db", *trees, release="here")) as db:
        assert sorted(db.execute(INSTALLATIONS)) == expected

    for at, tree in enumerate(trees):
        build([], tmp_path / f"{at}.db", installations=[("here", tree)])
    build([], tmp_path / "y.db", installations=[("here", tree) for tree in trees])
    build([tmp_path / f"{at}.db" for at in range(3)], tmp_path / "z.db")
    build(tmp_path / "y.db", tmp_path / "again.db")

    assert (tmp_path / "y.db").read_bytes() == (tmp_path / "z.db").read_bytes()
    assert (tmp_path / "y.db").read_bytes() == (tmp_path / "again.db").read_bytes()
    with closing(sqlite3.connect(tmp_path / "y.db")) as db:
        assert sorted(db.execute(INSTALLATIONS)) == expected


@pytest.mark.parametrize(
    ("folder", "path", "release"),
    [
        ("derecho", "", "derecho"),
        ("derecho/opt/spack", "derecho", "derecho"),
        ("derecho/opt/spack", "derecho/opt/spack", "installed"),
        ("machines/derecho", "machines", "derecho"),
        ("machines/derecho/2024/opt", "machines", "derecho"),
        ("opt/software", "opt", "installed"),
        ("opt/software", "opt/software/.spack-db/index.json", "installed"),
        ("casper/.", "casper/.spack-db/index.json", "casper"),
    ],
)
def test_a_folder_names_an_installation(
    tmp_path: Path, folder: str, path: str, release: str
) -> None:
    """The first folder of the input that is not called as any installation, or else the
    input.
    """
    write_tree(tmp_path / "opt" / folder, [installed(node("a"))])
    build(tmp_path / "opt" / path, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        assert db.execute(RELEASES).fetchall() == [(release, "installed")]


def test_installations_are_not_merged_unless_both_are_named(tmp_path: Path) -> None:
    """Other trees of one name are an error that names both, from sources and from
    databases.
    """
    for at in "ab":
        write_tree(tmp_path / at / "derecho", [installed(node(f"of-{at}"))])
        build(tmp_path / at, tmp_path / f"{at}.db")

    for paths in (
        [tmp_path / "a", tmp_path / "b"],
        [tmp_path / "a.db", tmp_path / "b.db"],
    ):
        with pytest.raises(InputError) as raised:
            build(paths, tmp_path / "x.db")
        (fault,) = raised.value.faults
        assert {at for at in "ab" if f"{paths['ab'.index(at)]}/" in str(fault)} == set(
            "ab"
        )
        assert "--installation NAME=PATH" in fault.message


def test_an_installation_has_the_name_that_is_given(tmp_path: Path) -> None:
    """Before its folder and `--release`, which is that of the mirrors; PATH may be left
    out.
    """
    trees = [write_tree(tmp_path / at / "opt", [installed(node(at))]) for at in "ab"]
    (tmp_path / "index.json").write_bytes(index(record(node("c"))))
    named = [("casper", trees[1]), ("derecho", trees[0])]
    output = tmp_path / "x.db"
    build(tmp_path / "index.json", output, release="develop", installations=named)

    with closing(sqlite3.connect(output)) as db:
        rows = "SELECT release, package FROM build_listings ORDER BY release"
        assert db.execute(rows).fetchall() == [
            ("casper", "b"),
            ("derecho", "a"),
            ("develop", "c"),
        ]

    again = verify(
        output, tmp_path / "index.json", release="develop", installations=named
    )
    assert again.differences == ()
    options = [f"--installation={name}={path}" for name, path in named]
    output = tmp_path / "y.db"
    assert run("build", *options, "-o", output).exit_code == 0
    assert run("verify", output, *options).exit_code == 0
    assert run("diff", "derecho", "casper", output).exit_code == 1


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ([("a", "index.json")], "index.json: is not an installation"),
        ([("a", "opt"), ("b", "opt")], "is given as the installation a and as b"),
        ([("a", "none")], "none: no such file or folder"),
        ([("-a", "opt")], "installation is '-a', expected a name"),
    ],
)
def test_a_wrong_installation_is_an_error(
    tmp_path: Path, named: list[tuple[str, str]], error: str
) -> None:
    """Something else, one tree of two names, nothing, and what is no name."""
    write_tree(tmp_path / "opt", [installed(node("a"))])
    (tmp_path / "index.json").write_bytes(index(record(node("c"))))
    given = [(name, tmp_path / path) for name, path in named]
    with pytest.raises((InputError, ArgumentError), match=error):
        build([], tmp_path / "x.db", installations=given)


def test_a_tree_shares_its_release_with_nothing_else(tmp_path: Path) -> None:
    """A mirror or a page of the same name is refused, by name."""
    tree = write_tree(tmp_path / "opt", [installed(node("a"))])
    mirror = tmp_path / "mirrors" / "installed" / "e4s"
    mirror.mkdir(parents=True)
    (mirror / "index.json").write_bytes(index(record(node("b"))))
    pages = write(tmp_path / "pages", a=page("zlib", "installed", [spec(1)]))

    for other in (tmp_path / "mirrors", pages):
        with pytest.raises(InputError, match="as is the installed tree"):
            build([tree, other], tmp_path / "x.db")


def test_paths_are_left_out_for_a_public_site(tmp_path: Path) -> None:
    """No prefix is in the bytes of the file, which says so; all else is, and can be
    verified.
    """
    found: dict[str, Any] = {"compilers": {"c": "/secret/bin/gcc"}}
    outside = node(
        "gcc", external={"path": "/secret", "module": ["m"], "extra_attributes": found}
    )
    records = [installed(node("a", edge("gcc", "build")), path="/secret/a")]
    records += [installed(outside, path="/secret")]
    tree = write_tree(tmp_path / "opt", records)
    output = tmp_path / "x.db"

    with closing(built(output, tree, without_paths=True)) as db:
        rows = db.execute(INSTALLATIONS).fetchall()
        assert rows == sorted(
            (*row[:4], None, *row[5:]) for row in expected_rows(records)
        )
        (external,) = db.execute(
            "SELECT external FROM nodes WHERE external IS NOT NULL"
        ).fetchone()
        assert json.loads(external) == {"module": ["m"]}
    assert b"/secret" not in output.read_bytes()
    assert info(output)["origin"]["paths"] == "left out"
    assert verify(output, tree).differences == ()

    records[0]["explicit"] = True
    (tree / ".spack-db" / "index.json").unlink()
    (tree / ".spack-db").rmdir()

    assert {
        (difference.table, difference.column)
        for difference in verify(output, write_tree(tree, records)).differences
    } == {("installs", "explicit"), ("mirrors", "sha256")}


@pytest.mark.parametrize(
    "recipes",
    [
        {"ours": "ftp://a"},
        {"ours": "https://"},
        {"": "https://a"},
    ],
)
def test_recipes_are_addresses_by_namespace(tmp_path: Path, recipes: Any) -> None:
    """Anything else is refused before anything is read."""
    with pytest.raises(ArgumentError, match=r"recipes|expected a namespace"):
        build(tmp_path / "nothing", tmp_path / "x.db", recipes=recipes)
