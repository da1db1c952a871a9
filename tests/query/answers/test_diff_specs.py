"""In what two specs differ that are given by their hashes."""

import json
import random
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.diff_specs import diff_specs
from spack_cache_db.query.names.known import spec_of_hash
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.routes import respond, route_of
from tests import graphs
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import SAMPLES, page, spec, spec_hash, write
from tests.site.conftest import open_site


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of `app`, each with its `zlib`; and a page with other binaries."""
    folder = tmp_path_factory.mktemp("specs")
    records = []
    for number in ("1", "2"):
        needed = node("zlib", version=f"1.{number}", hash=hash_of(f"zlib{number}"))
        common = node("common", hash=hash_of("common"))
        edges = [
            edge("zlib", "link") | {"hash": needed["hash"]},
            edge("common", "run") | {"hash": common["hash"]},
        ]
        app = node("app", *edges, version=f"{number}.0", hash=hash_of(f"app{number}"))
        records += [record(needed), record(app)]
    records.append(record(common))
    (folder / "index.json").write_bytes(index(*records))
    pages = write(folder / "pages", a=page("other", "v1.0", [spec(1, stacks=["root"])]))
    build([folder / "index.json", pages], folder / "x.db", release="develop")
    return folder / "x.db"


def test_the_dependencies_are_those_that_only_one_closure_has(
    real_index_file: Path,
) -> None:
    """For pairs of binaries of a real index, whose JSON is walked from each."""
    installs = graphs.installs()
    hashes = sorted(key for key in installs if installs[key]["in_buildcache"])
    chosen = random.Random(54)

    with opened(real_index_file) as lookups:
        for _ in range(60):
            old, new = chosen.sample(hashes, 2)
            answer = diff_specs(
                lookups, spec_of_hash(lookups, old), spec_of_hash(lookups, new)
            )
            assert answer.dependencies is not None
            found: dict[str, list[set[str]]] = {"run": [set(), set()], "build": []}
            found["build"] = [set(), set()]
            for change in answer.dependencies:
                for side, specs in enumerate((change.old, change.new)):
                    found[change.of][side] |= {text.split("/")[1] for text in specs}
            for side, (this, other) in enumerate(((old, new), (new, old))):
                run_time = graphs.run_time(this) - graphs.run_time(other) - {this}
                used = graphs.used(this) - graphs.used(other) - {this}
                assert found["run"][side] == run_time
                assert found["build"][side] == used - run_time
            common = graphs.run_time(old) & graphs.run_time(new)
            assert answer.common_count == len(common - {old, new})


def test_every_door_says_the_same(file: Path) -> None:
    """The command in four forms, the page, and its JSON."""
    hashes = [hash_of("app1"), hash_of("app2")]
    result = run("diff", *(f"/{dag_hash[:8]}" for dag_hash in hashes), file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    texts = [f"app@{number}.0/{hash_of(f'app{number}')[:7]}" for number in "12"]
    assert lines[0] == f"{texts[0]} and {texts[1]} differ in version and 1 dependency"
    assert lines[-1] == "run-time dependencies of both: 1"
    zlib = [line.split() for line in lines if line.startswith("zlib")]
    assert zlib[0][-3:] == ["1.1", "→", "1.2"]

    document = json.loads(
        run("diff", *(f"/{x}" for x in hashes), file, "--json").stdout
    )
    assert document["changes"] == [{"part": "version", "old": "1.0", "new": "2.0"}]
    assert [dependency["package"] for dependency in document["dependencies"]] == [
        "zlib"
    ]
    assert json.loads(shown(file, f"/diff/{hashes[0]}...{hashes[1]}.json")) == document
    page_text = shown(file, f"/diff/{hashes[0][:7]}...{hashes[1][:7]}")
    assert "1 dependency differs" in page_text
    assert f"{lines[0][1:]}." in page_text
    rows = run("diff", *(f"/{x}" for x in hashes), file, "--csv").stdout.splitlines()
    assert rows[:2] == ["of,package,part,old,new", "spec,app,version,1.0,2.0"]
    assert (
        "| version | 1.0 | 2.0 |"
        in run("diff", *(f"/{x}" for x in hashes), file, "--markdown").stdout
    )


def shown(file: Path, path: str) -> str:
    """Return the body of a page."""
    number = route_of(path)
    assert number is not None
    return respond(open_site(file), number, PageRequest(path)).body.decode()


def test_one_spec_differs_in_nothing(file: Path) -> None:
    """The status is 0."""
    result = run("diff", f"/{hash_of('app1')}", f"/{hash_of('app1')}", file)
    assert result.exit_code == 0
    assert result.stdout == f"both are app@1.0/{hash_of('app1')[:7]}\n"


def test_what_no_record_has_is_not_compared(file: Path) -> None:
    """A binary of a page has no known dependencies: the answer says so."""
    names = (f"/{hash_of('app1')}", f"/{spec_hash(1)}")
    result = run("diff", *names, file, "--json")
    document = json.loads(result.stdout)

    assert document["dependencies"] is None
    assert "are not known" in document["notes"][0]
    assert "recipe" not in {change["part"] for change in document["changes"]}
    assert {"package"} <= {each["part"] for each in document["changes"]}


def test_two_binaries_of_pages_with_one_configuration(tmp_path: Path) -> None:
    """Nothing but their hashes is known to differ."""
    build([SAMPLES], tmp_path / "pages.db")
    found = json.loads(
        run("find", "py-mpi4py", tmp_path / "pages.db", "--hashes", "--json").stdout
    )
    groups: dict[str, list[str]] = {}
    for each in found:
        key = json.dumps([each["version"], each["target"], each["variants"]])
        groups.setdefault(key, []).append(each["hash"])
    first, second = next(group for group in groups.values() if len(group) > 1)[:2]
    result = run("diff", f"/{first}", f"/{second}", tmp_path / "pages.db")

    assert result.stdout.endswith("have one configuration\n")
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("/nothing", "/nothing"), "no hash in this database begins with '/nothing'"),
        (
            ("other/" + hash_of("app1"), "/" + hash_of("app2")),
            f"/{hash_of('app1')} is app, not other",
        ),
        (("/" + hash_of("app1"), "develop"), "no release is called"),
        (
            ("/" + hash_of("app1"), "/" + hash_of("app2"), "--package", "zlib"),
            "--package goes with releases, not with hashes",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[str, ...], message: str, file: Path
) -> None:
    """Hashes that no spec has, one hash alone, and options of releases."""
    old, new, *options = arguments
    result = run("diff", old, new, file, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_release_with_a_name_like_a_hash_stays_a_release(file: Path) -> None:
    """`develop` could be the beginning of a hash."""
    assert "same" in run("diff", "develop", "develop", file).stdout
    assert "What changed" in shown(file, "/diff/develop...develop")


def test_a_hash_may_have_its_package_before_it(file: Path) -> None:
    """As `find --install` and `diff` print it."""
    first, second = (f"app/{hash_of(name)[:8]}" for name in ("app1", "app2"))
    result = run("diff", first, second, file)
    needs = run("deps", f"app@1.0/{hash_of('app1')[:8]}", file)

    assert (result.exit_code, needs.exit_code) == (1, 0)
    assert "differ in version" in result.stdout


def test_a_misspelled_package_is_not_only_an_unknown_hash(file: Path) -> None:
    """A word that is a hash or a name is answered as both."""
    result = run("dependents", "zlip", file)

    assert result.exit_code == 2
    assert "zlip: no package has this name (near: zlib)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("FILE", "FILE"), "compare them with --databases"),
        (("FILE", "FILE", "FILE"), "compare them with --databases"),
        (("develop", "FILE"), "Missing argument 'NEW'"),
        (("develop", "x" * 300, "FILE"), "no release is called"),
    ],
)
def test_a_database_in_the_place_of_a_release(
    arguments: tuple[str, ...], message: str, file: Path
) -> None:
    """The message is on what was typed, and not on a missing FILE."""
    result = run(
        "diff", *(file if argument == "FILE" else argument for argument in arguments)
    )

    assert result.exit_code == 2
    assert message in result.stderr
