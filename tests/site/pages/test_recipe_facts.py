"""Maintainers, licenses and tags: on pages, in lists, in feeds and in `behind`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.api import behind, package_data
from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import BuilderError
from tests.commands import run
from tests.package_data import catalogued, listed, write_packages
from tests.pagetexts import SAMPLES
from tests.site.conftest import asked_of, open_site

KINDS = ("maintainer", "license", "tag")
HOSTILE = "<img src=x>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample pages, with facts of two packages that have binaries and of one that
    has none.
    """
    folder = tmp_path_factory.mktemp("facts")
    mpi4py = {
        "name": "py-mpi4py",
        "version": [{"version": "4.1.1"}],
        "maintainers": ["Ada", "grace-h"],
        "licenses": ["BSD-3-Clause", "BSD-2-Clause when @:3"],
        "categories": ["e4s"],
    }
    hdf5 = {
        "name": "hdf5",
        "version": [{"version": "1.0"}],
        "maintainers": ["grace-h"],
        "licenses": ["BSD-3-Clause"],
    }
    absent = {
        "name": "absent",
        "maintainers": ["Ada", HOSTILE],
        "licenses": ["MIT"],
        "categories": ["e4s", "detectable"],
    }
    repology = catalogued(mpi4py, hdf5, absent)
    packages = write_packages(folder / "in", repology=repology)
    build([SAMPLES, packages], folder / "x.db")
    return folder / "x.db"


def answer(file: Path, address: str) -> tuple[int, str]:
    """Return the status and the text of an answer of the site."""
    response = asked_of(open_site(file), address)
    return response.status, bytes(response.body).decode()


def test_a_package_has_its_facts(file: Path) -> None:
    """In Python, as JSON and on its page, with links to packages like it."""
    data = package_data(file, "py-mpi4py")
    assert data is not None
    assert data.maintainers == ("Ada", "grace-h")
    assert data.tags == ("e4s",)

    found = json.loads(answer(file, "/package/py-mpi4py.json")[1])
    assert found["licenses"] == [
        {"license": "BSD-2-Clause", "condition": "@:3"},
        {"license": "BSD-3-Clause", "condition": None},
    ]
    assert found["maintainers"] == ["Ada", "grace-h"]
    assert found["tags"] == ["e4s"]

    _, page = answer(file, "/package/py-mpi4py")
    assert (
        'href="/packages?license=BSD-2-Clause">BSD-2-Clause</a> for <code>@:3</code>'
        in page
    )
    assert 'href="/packages?maintainer=grace-h">grace-h</a>' in page
    assert 'href="/packages?tag=e4s">e4s</a>' in page

    _, page = answer(file, "/package/absent")
    assert "Recipe maintained by" in page
    assert HOSTILE not in page
    # A package without facts has no empty line of them.
    assert "Recipe maintained by" not in answer(file, "/package/py-ml-dtypes")[1]


def test_a_list_has_the_packages_of_a_name(file: Path) -> None:
    """Of each name of each kind: those with a binary, and with `missing` the others;
    the command and Python have the same.
    """
    with closing(sqlite3.connect(file)) as connection:
        rows = []
        for kind in KINDS:
            sql = f"SELECT DISTINCT [{kind}] FROM known_{kind}s"
            for (name,) in connection.execute(sql).fetchall():
                of_name = (
                    f"SELECT DISTINCT package FROM known_{kind}s WHERE [{kind}] = ?"
                )
                found = connection.execute(of_name, [name]).fetchall()
                rows.append((kind, name, {package for (package,) in found}))

    assert len(rows) == 3 + 3 + 2
    for kind, name, packages in rows:
        listed_packages: set[str] = set()
        for more in ("", "&missing=1"):
            status, text = answer(file, f"/packages.json?{kind}={name}{more}")
            if status == 200:
                names = {row["name"] for row in json.loads(text)}
                assert more or "absent" not in names
                listed_packages |= names
        assert listed_packages == packages, name
        if kind != "license":
            of_python = {package.name for package in behind(file, **{kind: name})}
            assert of_python == packages & {"py-mpi4py"}
    assert run("behind", file, "--maintainer", "ADA", "--csv").stdout.count("\n") == 2


def test_the_filters_of_a_list_add_up(file: Path) -> None:
    """Each is a choice of the form and a chip; CSV has the same rows."""
    address = "/packages?maintainer=grace-h&license=BSD-3-Clause&tag=e4s"
    _, page = answer(file, address)

    assert "1 of " in page
    assert "maintained by grace-h" in page
    assert "<option selected>BSD-3-Clause</option>" in page

    _, csv = answer(file, address.replace("?", ".csv?"))
    assert [line.split(",")[0] for line in csv.splitlines()] == ["name", "py-mpi4py"]

    _, csv = answer(file, "/packages.csv?maintainer=grace-h&target=x86_64_v3")
    assert "py-ml-dtypes" not in csv


@pytest.mark.parametrize(
    ("kind", "text", "near"),
    [
        ("maintainer", "grace", "close: grace-h"),
        ("license", "BSD3", "close: BSD-3-Clause"),
        ("tag", "e4", "close: e4s"),
    ],
)
def test_a_typo_names_the_nearest(file: Path, kind: str, text: str, near: str) -> None:
    """On the page, as JSON, in the feed, in Python and in the command."""
    status, refused = answer(file, f"/packages.json?{kind}={text}")
    assert status == 400
    assert near in refused
    assert near in answer(file, f"/packages?{kind}={text}")[1]

    status, refused = answer(file, f"/feed.atom?{kind}={text}")
    assert status == 400
    assert near in refused
    if kind != "license":
        with pytest.raises(BuilderError, match=near):
            behind(file, **{kind: text})
        refused = run("behind", file, f"--{kind}", text).stderr
        assert near in refused


def test_another_spelling_leads_to_the_name(file: Path) -> None:
    """`ada` is `Ada`."""
    response = asked_of(open_site(file), "/packages?maintainer=ada")
    assert response.status == 301
    assert ("location", "/packages?maintainer=Ada") in list(response.headers)


def test_a_feed_follows_a_maintainer(file: Path) -> None:
    """Its entries are those of the packages; no package or spec takes one."""
    _, of_package = answer(file, "/feed.atom?package=py-mpi4py")
    _, of_maintainer = answer(file, "/feed.atom?maintainer=Ada")

    assert of_maintainer.count("<entry>") == of_package.count("<entry>")
    assert "/packages?maintainer=Ada" in of_maintainer
    # The page of the list leads to it, unless nobody has the name.
    link = 'href="/feed.atom?stack=e4s&amp;maintainer=Ada"'
    assert link in answer(file, "/packages?stack=e4s&maintainer=Ada")[1]
    assert "/feed.atom" not in answer(file, "/packages?maintainer=nobody")[1]
    assert "/feed.atom" not in answer(file, "/packages")[1]
    for address in (
        "/feed.atom?package=hdf5&tag=e4s",
        "/find.atom?q=hdf5&maintainer=Ada",
    ):
        status, refused = answer(file, address)
        assert status == 400
        assert "a feed of a package or a spec takes no" in refused


def test_a_database_without_such_facts_says_so(
    tmp_path: Path, samples_file: Path
) -> None:
    """And names the file that has them."""
    list_of_spack = listed("hdf5", "1.0", maintainers=["a"])
    build(
        [SAMPLES, write_packages(tmp_path / "in", list=[list_of_spack])],
        tmp_path / "x.db",
    )
    refused = run("behind", tmp_path / "x.db", "--tag", "e4s").stderr

    assert "has no tags of packages; build it with data/repology.json" in refused

    status, refused = answer(samples_file, "/packages.json?maintainer=a")
    assert status == 400
    assert "has no maintainers of packages; build it with the output of" in refused

    refused = run("behind", samples_file, "--maintainer", "a").stderr
    assert "has no package data" in refused
    assert "Maintained by" not in answer(samples_file, "/packages")[1]
