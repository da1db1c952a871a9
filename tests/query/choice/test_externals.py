"""Externals of an installation are found, and counted as binaries nowhere."""

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from spack_cache_db.query.answers.binaries import binaries
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.answers.retention import retention
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.stored.package_data import newest_binary
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages.package import load_package
from tests.commands import run
from tests.examples import examples
from tests.indexes import edge, hash_of, index, node, record
from tests.trees import installed, write_tree

MPICH = {"path": "/opt/cray/mpich", "module": ["craype", "cray-mpich/8.1"]}


def records() -> list[dict[str, Any]]:
    """Return the records of a tree: two externals, what needs one, and one that is
    gone.
    """
    mpich = node("cray-mpich", version="8.1", external=MPICH)
    cmake = node("cmake", version="9.9", external={"path": "/usr"})
    gone = node("gone", external={"path": "/old"})
    hdf5 = node("hdf5", edge("cray-mpich", "link", virtuals=("mpi",)))
    return [
        installed(mpich, path="/opt/cray/mpich"),
        installed(cmake, path="/usr"),
        installed(gone, installed=False, path="/old"),
        installed(hdf5, explicit=True),
    ]


def write_mirror(folder: Path, *specs: dict[str, Any]) -> Path:
    """Write the index of a mirror `develop/e4s` with binaries of specs, and an
    external.
    """
    outside = record(node("cray-mpich", version="8.1", external=MPICH), is_binary=False)
    place = folder / "mirrors" / "develop" / "e4s"
    place.mkdir(parents=True)
    (place / "index.json").write_bytes(index(*map(record, specs), outside))
    return folder / "mirrors"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A tree with externals, and a mirror with another cmake, its hash that of nothing
    else.
    """
    folder = tmp_path_factory.mktemp("input")
    mirror = write_mirror(folder, node("cmake", version="3.0", hash=hash_of("cmake3")))
    return [write_tree(folder / "opt", records()), mirror]


@pytest.fixture(scope="module")
def both(paths: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of both."""
    output = tmp_path_factory.mktemp("both") / "x.db"
    build(paths, output)
    return output


def test_an_external_satisfies_a_spec(both: Path) -> None:
    """By name and behind `^` and `%`, with prefix and modules; what is gone is not
    found.
    """
    (found,) = find(both, "cray-mpich", with_hashes=True)
    place = (found.is_external, found.prefix, found.modules)

    assert place == (True, "/opt/cray/mpich", ("craype", "cray-mpich/8.1"))
    assert [found_spec.hash for found_spec in found.specs or ()] == [
        hash_of("cray-mpich")
    ]
    for spec in ("hdf5 ^cray-mpich", "hdf5 %cray-mpich@8", "hdf5 ^mpi"):
        (user,) = find(both, spec)
        assert user.is_external is False
        assert user.prefix == "/opt/sw/hdf5"
        assert user.modules == ()
    assert find(both, "gone") == find(both, "cray-mpich", release="develop") == []

    (binary,) = find(both, "cmake", release="develop")
    assert binary.version == "3.0"
    assert binary.is_external is False
    assert binary.prefix is None


def test_find_says_what_to_load(both: Path) -> None:
    """`--install` loads the modules that the index records, or what Spack can load."""
    done = run("find", "--install", "cray-mpich", both)
    assert "/opt/cray/mpich, module load craype cray-mpich/8.1" in done.stdout
    last = [
        "# provided by the system in /opt/cray/mpich",
        "module load craype cray-mpich/8.1",
    ]
    assert done.stdout.splitlines()[-4:-2] == last

    done = run("find", "--install", "cmake@9", both)
    assert done.stdout.splitlines()[-1] == f"spack load cmake/{hash_of('cmake')[:7]}"

    rows = json.loads(run("find", "--json", "--hashes", "cmake", both).stdout)
    assert {row["version"]: row["prefix"] for row in rows} == {
        "9.9": "/usr",
        "3.0": None,
    }
    assert run("find", "--csv", "cray-mpich", both).stdout.endswith(
        "craype cray-mpich/8.1,\n"
    )


def test_an_external_is_no_binary(both: Path, tmp_path: Path) -> None:
    """Of a badge, an environment, a keep list and all binaries only real binaries are
    part.
    """
    with opened(both) as lookups:
        assert newest_binary(lookups.conn, "cmake") == "3.0 on x86_64"
        assert newest_binary(lookups.conn, "cray-mpich") is None
    assert sorted(binary.configuration.package for binary in binaries(both)) == [
        "cmake",
        "hdf5",
    ]

    found = cover(both, ["cray-mpich", "cmake", "cmake@9", "hdf5"])
    assert [covered.status for covered in found.specs] == [
        "external",
        "binary",
        "external",
        "installed",
    ]
    assert (found.available, found.total) == (2, 2)
    assert [getattr(each, "external", "") for each in found.specs] == [
        "/opt/cray/mpich",
        "",
        "/usr",
        "",
    ]

    (tmp_path / "specs.txt").write_text("cray-mpich\nhdf5\n")
    kept = retention(both, [tmp_path / "specs.txt"], release="installed")
    assert kept.keep == (hash_of("hdf5"),)
    assert kept.prune == ()
    assert kept.missing == ()
    assert kept.unmet == ()


def test_a_database_with_externals_is_a_source(
    paths: list[Path], both: Path, tmp_path: Path
) -> None:
    """It verifies, gives itself again, and databases of its parts give the same
    bytes.
    """
    assert verify(both, paths).differences == ()

    build(both, tmp_path / "again.db")
    for at, path in enumerate(paths):
        build(path, tmp_path / f"{at}.db")
    build([tmp_path / "0.db", tmp_path / "1.db"], tmp_path / "parts.db")

    assert both.read_bytes() == (tmp_path / "again.db").read_bytes()
    assert both.read_bytes() == (tmp_path / "parts.db").read_bytes()


def test_find_names_each_machine(tmp_path: Path) -> None:
    """All installations that have a spec; the prefix is that of the machine that is
    asked.
    """
    named = []
    for name in ("casper", "derecho"):
        specs = [installed(node("hdf5"), path=f"/{name}/hdf5")]
        specs += [installed(node("only"), path="/only")] if name == "casper" else []
        named.append((name, write_tree(tmp_path / name / "opt", specs)))
    output = tmp_path / "x.db"
    build([], output, installations=named)

    assert "casper derecho" in run("find", "hdf5", output).stdout
    assert "derecho" not in run("find", "only", output).stdout
    for name in ("casper", "derecho"):
        (found,) = find(output, "hdf5", release=name)
        assert found.prefix == f"/{name}/hdf5"
        done = run("find", "hdf5", output, "--install", "--release", name)
        assert f"# on {name}: installed in /{name}/hdf5" in done.stdout.splitlines()

    both = run("find", "hdf5", output, "--install").stdout
    assert both.index("# on casper: installed in /casper/hdf5") < both.index(
        "# on derecho: "
    )
    assert both.count("spack load hdf5/") == 2
    assert find(output, "only", release="derecho") == []
    with opened(output) as lookups:
        page = load_package(lookups, "only", Filters())
        assert page is not None and page.installed is not None
        assert [column.name for column in page.installed.columns] == [
            "casper",
            "derecho",
        ]
        assert [cell.count for cell in page.installed.rows[0].cells] == [1, 0]


RELEASE = """
SELECT name, package_count, spec_count,
  (SELECT json_group_array(json_array(facet, value, spec_count)) FROM (
    SELECT * FROM facet_counts WHERE release = releases.name ORDER BY facet, value))
FROM releases WHERE kind <> 'installed'
"""


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(st.lists(st.sampled_from(["cmake", "cray-mpich", "hdf5", "zlib"]), unique=True))
def test_no_external_changes_what_a_mirror_has(names: list[str]) -> None:
    """Whatever the system provides: all counts of other releases stay, and `is_binary`
    says so.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        mirror = write_mirror(folder, node("cmake"), node("zlib", version="2"))
        outside = {"path": "/usr", "module": None}
        provided = [
            installed(node(name, hash=hash_of(f"x{name}"), external=outside))
            for name in names
        ]
        tree = write_tree(folder / "opt", [*provided, installed(node("own"))])
        build([mirror], folder / "a.db")
        build([mirror, tree], folder / "b.db")
        before, after = (sqlite3.connect(folder / name) for name in ("a.db", "b.db"))
        with closing(before), closing(after):
            assert (
                after.execute(RELEASE).fetchall() == before.execute(RELEASE).fetchall()
            )
            count = "SELECT count(*) FROM specs WHERE is_binary"
            assert (
                after.execute(count).fetchone()[0]
                == before.execute(count).fetchone()[0] + 1
            )
            rows = after.execute(
                "SELECT package FROM builds WHERE is_external ORDER BY package"
            )
            assert [name for (name,) in rows] == sorted(names)
