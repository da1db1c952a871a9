"""What needs a spec: the closure of each binary of a real index decides."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.dependents import Dependents
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.routes import respond, route_of
from tests import graphs
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, write
from tests.site.conftest import open_site

LINKED = edge("low", "link")
BUILT = edge("low", "build")


def written(folder: Path, nodes: Mapping[str, tuple[dict[str, Any], ...]]) -> Path:
    """Write an index of packages and their edges; return its folder."""
    folder.mkdir()
    records = [record(node(name, *edges)) for name, edges in nodes.items()]
    (folder / "index.json").write_bytes(index(*records))
    return folder


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`top` runs `mid`, which links `low`; `tool` uses `low` only to be built."""
    folder = tmp_path_factory.mktemp("dependents")
    nodes = {
        "top": (edge("mid", "run"),),
        "mid": (LINKED,),
        "tool": (BUILT,),
        "low": (),
        "alone": (),
    }
    build(written(folder / "in", nodes), folder / "x.db", release="develop")
    return folder / "x.db"


@pytest.mark.parametrize("package", ["zlib-ng", "gmake", "glibc", "hdf5"])
def test_the_binaries_are_those_whose_closure_has_the_package(
    package: str, real_index_file: Path
) -> None:
    """The JSON of a real index, walked from each binary, has the same; the nearest spec
    is direct if one of its edges leads to the package.
    """
    installs = graphs.installs()
    names = {key: each["spec"]["name"] for key, each in installs.items()}
    expected = {}
    for dag_hash, each in installs.items():
        if not each["in_buildcache"]:
            continue
        needed = graphs.run_time(dag_hash) - {dag_hash}
        if package in {names[other] for other in needed}:
            edges = graphs.edges()[dag_hash].items()
            direct = {names[other] for other, types in edges if types & graphs.RUN}
            expected[dag_hash] = package in direct
    answer = spack_cache_db.dependents(real_index_file, package)

    assert {binary.hash: binary.direct for binary in answer.binaries} == expected
    for binary in answer.binaries:
        name, needed_hash = binary.needs.split("/")
        assert name.startswith(f"{package}@")
        assert needed_hash in graphs.run_time(binary.hash)
    assert answer.status == ("needed" if expected else "not needed")
    assert sum(row.binaries for row in answer.packages) == len(expected)


@pytest.mark.parametrize(
    ("text", "status", "code", "sentence"),
    [
        ("low", "needed", 0, "2 packages, 2 binaries need low"),
        (
            "alone",
            "not needed",
            1,
            "1 spec satisfies alone, and no binary needs it",
        ),
        ("low@99", "not satisfied", 3, "nothing in this database satisfies low@99"),
        ("xz@5.6", "not satisfied", 3, "nothing in this database satisfies xz@5.6"),
    ],
)
def test_the_kinds_of_answers_are_told_apart(
    text: str, status: str, code: int, sentence: str, file: Path
) -> None:
    """In words, in JSON, on the page, and by the exit status."""
    answer = spack_cache_db.dependents(file, text)
    assert (answer.status, answer.sentence) == (status, sentence)

    people = run("dependents", text, file)
    assert people.exit_code == code
    assert sentence in (people.stdout or people.stderr)

    programs = run("dependents", text, file, "--json")
    assert programs.exit_code == code
    assert json.loads(programs.stdout) == json.loads(json.dumps(answer.as_dict()))
    assert f"{sentence[1:]}." in shown(file, f"/dependents?q={text}")
    assert json.loads(shown(file, f"/dependents.json?q={text}"))["status"] == status


def shown(file: Path, address: str) -> str:
    """Return the body of a page."""
    path, _, query = address.partition("?")
    number = route_of(path)
    assert number is not None
    site = open_site(file)
    return respond(site, number, PageRequest(path, query)).body.decode()


def test_direct_binaries_come_by_package_without_those_that_only_build(
    file: Path,
) -> None:
    """`tool` has no edge to link or run."""
    answer = spack_cache_db.dependents(file, "low")
    found = [(dependent.package, dependent.direct) for dependent in answer.binaries]
    assert found == [("mid", True), ("top", False)]
    assert {each.needs for each in answer.binaries} == {f"low@1.0/{hash_of('low')}"}


def test_a_database_of_pages_has_no_answer(tmp_path: Path) -> None:
    """Nothing is known: status 4, and not "nothing needs it"."""
    pages = write(tmp_path / "in", a=page("top", "develop", [spec(1, stacks=["root"])]))
    build(pages, tmp_path / "pages.db")
    answer = spack_cache_db.dependents(tmp_path / "pages.db", "top")

    assert (answer.status, answer.unknown_count) == ("unknown", None)

    result = run("dependents", "top", tmp_path / "pages.db")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "what needs top is not known" in result.stderr


def test_binaries_without_data_are_counted(tmp_path: Path) -> None:
    """In a release of pages nothing is known; beside an index, a note counts them."""
    pages = write(tmp_path / "in", a=page("other", "v1.0", [spec(1, stacks=["root"])]))
    indexes = written(tmp_path / "index", {"top": (LINKED,), "low": ()})
    build([pages, indexes], tmp_path / "x.db")
    everywhere = spack_cache_db.dependents(tmp_path / "x.db", "low")

    assert (everywhere.status, everywhere.unknown_count) == ("needed", 1)
    note = "1 more binary may need it: this database lacks their dependencies"
    assert note in everywhere.notes

    of_pages = spack_cache_db.dependents(tmp_path / "x.db", "low", release="v1.0")
    assert (of_pages.status, of_pages.unknown_count) == ("unknown", 1)


def test_lost_binaries_are_counted_apart(tmp_path: Path) -> None:
    """A binary that only a snapshot lists is no binary of the answer."""
    first = written(tmp_path / "first", {"old": (LINKED,), "top": (LINKED,), "low": ()})
    build(first, tmp_path / "a.db", release="main", snapshot="2026-01-01")
    second = written(tmp_path / "second", {"top": (LINKED,), "low": ()})
    build(
        [tmp_path / "a.db", second],
        tmp_path / "b.db",
        release="main",
        snapshot="2026-01-02",
    )

    for release in (None, "main-2026-01-01"):
        answer = spack_cache_db.dependents(tmp_path / "b.db", "low", release=release)
        assert [dependent.package for dependent in answer.binaries] == ["top"]
        assert answer.gone_count == 1
        assert any("the mirror has lost" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("text", "is_of_spec"), [("low", True), ("LOW", True), ("HASH", False)]
)
def test_the_form_of_the_argument_decides(
    text: str, is_of_spec: bool, file: Path
) -> None:
    """A package is a spec; other words and all with a slash are hashes."""
    word = text.replace("HASH", hash_of("low")[:7])
    answer = json.loads(run("dependents", word, file, "--json").stdout)

    assert isinstance(answer, dict) == is_of_spec

    of_hash = json.loads(run("dependents", f"/{hash_of('low')}", file, "--json").stdout)
    assert {each["package"] for each in of_hash} == {"mid", "tool"} | {"top"}

    refused = run("dependents", f"/{hash_of('low')}", file, "--release", "develop")
    assert refused.exit_code == 2
    assert "goes with a spec" in refused.stderr


def test_a_notebook_and_an_open_file_have_it(file: Path) -> None:
    """`Cache` has the function as a method."""
    with spack_cache_db.Cache(file) as cache:
        answer = cache.dependents("low", release="develop")

    assert isinstance(answer, Dependents)
    assert "<td>mid</td>" in answer._repr_html_()
    with pytest.raises(spack_cache_db.UnknownNameError):
        spack_cache_db.dependents(file, "low", release="nothing")


def test_pages_lead_there(file: Path) -> None:
    """The pages of a package and of a spec have a link, if there is dependency data."""
    assert '/dependents?q=low"' in shown(file, "/package/low")
    assert f"/dependents?q=/{hash_of('low')}" in shown(file, f"/spec/{hash_of('low')}")
    assert "openssl@:3.0.6" in shown(file, "/dependents")
    assert "expected" in shown(file, "/dependents?q=low@@")
    assert shown(file, "/dependents.csv?q=low").startswith("package,version,hash")


def test_a_page_has_100_rows_and_json_all(real_index_file: Path) -> None:
    """Of 862 binaries that need glibc."""
    page_text = shown(real_index_file, "/dependents?q=glibc")
    assert page_text.count("<tr>") == 101
    document = json.loads(shown(real_index_file, "/dependents.json?q=glibc"))
    assert len(document["binaries"]) == 862
