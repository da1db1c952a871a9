"""Modules of an installation: read from Spack's and Lmod's lists, and what they
load.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from spack_cache_db.errors import InputError
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.modules import read_modules
from tests.commands import run
from tests.indexes import hash_of, node
from tests.trees import installed, write_tree

MODULES = "SELECT hash, module, module_tree FROM installations WHERE release = ? ORDER BY hash"


def of_spack(folder: Path, modules: Iterable[tuple[str, str, str]]) -> Path:
    """Write the module index of Spack: the hash, the tree and the name of each
    module.
    """
    entries = {
        dag_hash: {"path": f"{tree}/{name}.lua", "use_name": name}
        for dag_hash, tree, name in modules
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "module-index.yaml"
    path.write_text(yaml.safe_dump({"module_index": entries}, default_flow_style=False))
    return path


def of_lmod(folder: Path, modules: Iterable[tuple[str, str, str, bool]]) -> Path:
    """Write the software page of Lmod: package, tree, name, and whether it is
    hidden.
    """
    page = []
    for package, tree, name, is_hidden in modules:
        version: dict[str, Any] = {
            "full": name,
            "path": f"{tree}/{name}.lua",
            "wV": "1",
        }
        if is_hidden:
            version["hidden"] = True
        page.append(
            {"package": package, "defaultVersionName": "1", "versions": [version]}
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lmod.json").write_text(json.dumps(page))
    return folder / "lmod.json"


def tree_of(folder: Path, *specs: dict[str, Any]) -> Path:
    """Write an installation of some specs."""
    return write_tree(
        folder, [installed(spec, path=f"/opt/{spec['hash']}") for spec in specs]
    )


def loading(
    database: Path, release: str = "installed"
) -> dict[str, tuple[str, str | None]]:
    """Return the module, and the tree if it is shown, of each installed spec that has
    one.
    """
    with closing(sqlite3.connect(database)) as conn:
        rows = conn.execute(MODULES, [release])
        return {dag_hash: (module, tree) for dag_hash, module, tree in rows if module}


@pytest.fixture
def hdf5(tmp_path: Path) -> Path:
    """An installation with an hdf5 of each of two compilers, and a zlib."""

    def of(version: int) -> dict[str, Any]:
        compiler = {
            "annotations": {
                "original_specfile_version": 4,
                "compiler": f"gcc@={version}",
            }
        }
        return node(
            "hdf5", version="1.14.3", hash=hash_of(f"hdf5-{version}"), **compiler
        )

    return tree_of(tmp_path / "opt", of(12), of(13), node("zlib", version="1.3"))


def test_a_module_is_loaded_by_the_hash_of_its_spec(hdf5: Path, tmp_path: Path) -> None:
    """A name of several trees is shown with its tree; the command of Spack comes
    second.
    """
    index = of_spack(
        tmp_path / "lmod",
        [
            (hash_of("hdf5-12"), "/m/gcc/12", "hdf5/1.14.3"),
            (hash_of("hdf5-13"), "/m/gcc/13", "hdf5/1.14.3"),
            (hash_of("zlib"), "/m/Core", "zlib/1.3"),
        ],
    )
    output = tmp_path / "x.db"
    done = run("build", hdf5, "--modules", index.parent, "-o", output)

    assert "3 of 3 modules load an installed spec" in done.stderr
    assert loading(output) == {
        hash_of("hdf5-12"): ("hdf5/1.14.3", "/m/gcc/12"),
        hash_of("hdf5-13"): ("hdf5/1.14.3", "/m/gcc/13"),
        hash_of("zlib"): ("zlib/1.3", None),
    }

    done = run("find", "zlib", output, "--install")
    note, *commands = done.stdout.splitlines()[-4:]
    assert note == f"# installed in /opt/{hash_of('zlib')}"
    assert commands[0] == "module load zlib/1.3"
    assert commands[-1] == f"spack load zlib/{hash_of('zlib')[:7]}"

    done = run("find", "hdf5%gcc@13", output, "--install")
    assert done.stdout.splitlines()[-4:-2] == [
        "module use /m/gcc/13",
        "module load hdf5/1.14.3",
    ]
    assert "hdf5/1.14.3 in /m/gcc/12" in run("find", "hdf5", output).stdout

    (found,) = find(output, "zlib")
    assert (found.modules, found.module_tree) == (("zlib/1.3",), None)
    with opened(output) as lookups:
        install = environment_commands(
            lookups, cover(lookups.conn, ["zlib", "hdf5%gcc@12"])
        )
        assert install is not None
        lines = (
            "module load zlib/1.3",
            "module use /m/gcc/12",
            "module load hdf5/1.14.3",
        )
        assert install.commands == lines


def test_a_module_of_lmod_is_loaded_by_name_and_version(
    hdf5: Path, tmp_path: Path
) -> None:
    """In any spelling, also if hidden, or by its folder's compiler; ambiguous ones are
    reported.
    """
    modules = [
        ("ZLIB", "/m/Core", "ZLIB/1.3", False),
        ("zlib", "/m/Core", "zlib/.1.3", True),
        ("hdf5", "/m/gcc/13", "hdf5/1.14.3", False),
        ("other", "/m/Core", "other/1", False),
    ]
    page = of_lmod(tmp_path, modules)
    output = tmp_path / "x.db"
    build(hdf5, output, modules=[page])
    expected = {
        hash_of("hdf5-13"): ("hdf5/1.14.3", None),
        hash_of("zlib"): ("ZLIB/1.3", None),
    }

    assert loading(output) == expected

    of_lmod(tmp_path, [modules[1], ("hdf5", "/m/Core", "hdf5/1.14.3", False)])
    report = build(hdf5, output, modules=[page])
    assert loading(output) == {hash_of("zlib"): ("zlib/.1.3", None)}
    assert report.problems == 1
    assert (
        "1 of 2 modules load an installed spec, 1 may load one of several"
        in report.notes[0]
    )
    with closing(sqlite3.connect(output)) as conn:
        (problem,) = conn.execute("SELECT source, code, message FROM problems")
        words = "the module hdf5/1.14.3 of installed may load any of 2 specs"
        assert problem == ("lmod.json", "ambiguous_module", words)


def test_modules_are_of_the_installation_that_is_named(tmp_path: Path) -> None:
    """Of several, each list needs a name; other names are errors."""
    named = [(at, tree_of(tmp_path / at, node("zlib"))) for at in ("casper", "derecho")]
    index = of_spack(tmp_path / "lmod", [(hash_of("zlib"), "/m", "zlib/1.0")])
    output = tmp_path / "x.db"
    build([], output, installations=named, modules=[("casper", index)])

    assert (len(loading(output, "casper")), loading(output, "derecho")) == (1, {})

    options = [f"--installation={name}={path}" for name, path in named]
    done = run("build", *options, f"--modules=derecho={index}", "-o", output)
    assert (done.exit_code, len(loading(output, "derecho"))) == (0, 1)
    for modules in ([index], [("cheyenne", index)]):
        with pytest.raises(
            InputError, match="--modules NAME=PATH with one of casper, derecho"
        ):
            build([], output, installations=named, modules=modules)


@pytest.mark.parametrize("without_paths", [False, True])
def test_a_database_with_modules_is_a_source(
    tmp_path: Path, without_paths: bool
) -> None:
    """It verifies, gives itself again, and databases of its parts give the same
    bytes.
    """
    named = []
    modules = []
    parts = []
    for at in "ab":
        specs = [node("zlib"), node("cmake"), node("cmake", hash=hash_of("cmake2"))]
        tree = tree_of(tmp_path / at / "opt", *specs, node(f"own-{at}"))
        secret = f"/{at}-secret"
        index = of_spack(tmp_path / at, [(hash_of("zlib"), secret, "zlib/1.0")])
        listing = of_lmod(
            tmp_path / at,
            [
                (f"own_{at}", secret, f"own_{at}/1.0", False),
                ("cmake", f"{secret}/x", "cmake/1.0", False),
                ("cmake", f"{secret}/y", "cmake/1.0", False),
            ],
        )
        named.append((at, tree))
        modules += [(at, index), (at, listing)]
        parts.append(tmp_path / f"{at}.db")
        options: dict[str, Any] = {"without_paths": without_paths}
        build([], parts[-1], installations=named[-1:], modules=modules[-2:], **options)
    output = tmp_path / "x.db"
    build([], output, installations=named, modules=modules, without_paths=without_paths)

    assert len(loading(output, "a")) == len(loading(output, "b")) == 2
    assert verify(output, [], installations=named, modules=modules).differences == ()
    for paths in ([output], parts, parts[::-1]):
        build(paths, tmp_path / "again.db")
        assert (tmp_path / "again.db").read_bytes() == output.read_bytes()
    assert (b"-secret" in output.read_bytes()) is not without_paths


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "module_index:\n  abc:\n    path: /m/a\n    use_name: a\n",
            "x:3: 'abc' is not a hash",
        ),
        (
            f"module_index:\n  {hash_of('a')}:\n    path: /m/a\n",
            "x:3: has path, expected path and",
        ),
        (f"module_index:\n  {hash_of('a')}: 1\n", "x:2: expected path and use_name"),
        (
            "modules: {}\n",
            "x:1: has the keys modules, expected Spack's module-index.yaml",
        ),
        ("a: [\n", "x:1: broken YAML"),
        ('{"a": 1}', "x: Expected `object`, got `int`"),
        ('{"a": {"/m/a/1": {"fullName": "a 1"}}}', "x: has the module 'a 1'"),
        (
            '[{"package": "a", "versions": [{"full": "a/1", "parent": [["-b"]]}]}]',
            "x: has the module '-b'",
        ),
        (
            '[{"package": "a", "versions": [{"full": 1}]}]',
            "x: Expected `str`, got `int`",
        ),
        (
            '[{"package": "a", "versions": [{"full": "a b"}]}]',
            "x: has the module 'a b'",
        ),
        ('[{"package": "a", "versions": [{"full": "-a"}]}]', "x: has the module '-a'"),
        ("\0", "x:1: a NUL byte"),
    ],
)
def test_a_wrong_list_of_modules_is_a_fault(text: str, fault: str) -> None:
    """With its place and what was expected."""
    with pytest.raises(InputError) as raised:
        read_modules(RawFile("x", "x", text.encode()))
    assert str(raised.value).startswith(fault)


def test_no_module_runs_a_command(tmp_path: Path) -> None:
    """A name with characters of the shell is quoted, in an index and in an
    installation.
    """
    outside = {"path": "/usr", "module": ["a;b"]}
    tree = tree_of(tmp_path / "opt", node("zlib"), node("cuda", external=outside))
    index = of_spack(tmp_path / "lmod", [(hash_of("zlib"), "/m", "z$(b)")])
    build(tree, tmp_path / "x.db", modules=[index])

    for name, command in (
        ("zlib", "module load 'z$(b)'"),
        ("cuda", "module load 'a;b'"),
    ):
        assert (
            command
            in run("find", name, tmp_path / "x.db", "--install").stdout.splitlines()
        )


def page(folder: Path, *versions: dict[str, Any], package: str = "zstd") -> Path:
    """Write a software page of Lmod with the versions of one package."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "page.json"
    path.write_text(json.dumps([{"package": package, "versions": list(versions)}]))
    return path


ZSTD = {
    "full": "zstd/1.5.5",
    "path": "/m/gcc/10.2.0/zstd/1.5.5.lua",
    "versionName": "1.5.5",
}
"""A module of a hierarchy, without its parents."""


@pytest.mark.parametrize(
    ("parents", "line"),
    [
        (
            {"parent": [["gcc/12.1.0", "env/23.09"], ["gcc/10.2.0"]]},
            "gcc/10.2.0 zstd/1.5.5",
        ),
        ({"parentAA": [["b/1"], ["a/1"]]}, "a/1 zstd/1.5.5"),
        (
            {"parentAA": [["gcc/10.2.0", "openmpi/4.1"]]},
            "gcc/10.2.0 openmpi/4.1 zstd/1.5.5",
        ),
        (
            {"parent": ["default:gcc/10.2.0:openmpi/4.1"]},
            "gcc/10.2.0 openmpi/4.1 zstd/1.5.5",
        ),
        ({"parent": [[]]}, "zstd/1.5.5"),
        ({}, "zstd/1.5.5"),
    ],
)
def test_the_parents_of_a_module_are_loaded_first(
    parents: dict[str, Any], line: str, tmp_path: Path
) -> None:
    """Lmod refuses a module of a hierarchy without them; the shortest alternative is
    taken.
    """
    tree = tree_of(tmp_path / "opt", node("zstd", version="1.5.5"))
    output = tmp_path / "x.db"
    build(tree, output, modules=[page(tmp_path, ZSTD | parents)])
    printed = run("find", "zstd", output, "--install").stdout.splitlines()

    assert f"module load {line}" in printed

    (found,) = find(output, "zstd")
    assert found.modules == tuple(line.split())

    build(output, tmp_path / "again.db")
    assert (tmp_path / "again.db").read_bytes() == output.read_bytes()


def test_parents_of_lmod_complete_the_list_of_spack(tmp_path: Path) -> None:
    """Spack's list has the hash, and Lmod's the parents of the same file."""
    tree = tree_of(tmp_path / "opt", node("zstd", version="1.5.5"))
    output = tmp_path / "x.db"
    spack = of_spack(
        tmp_path / "spack", [(hash_of("zstd"), "/m/gcc/10.2.0", "zstd/1.5.5")]
    )
    lmod = page(tmp_path, ZSTD | {"parent": [["gcc/10.2.0"]]})
    build(tree, output, modules=[spack, lmod])

    assert find(output, "zstd")[0].modules == ("gcc/10.2.0", "zstd/1.5.5")


def test_the_other_list_of_lmod(tmp_path: Path) -> None:
    """`spider -o spider-json` has the same, by the paths of files."""
    tree = tree_of(tmp_path / "opt", node("zstd", version="1.5.5"))
    output = tmp_path / "x.db"
    entry = {"fullName": "zstd/1.5.5", "Version": "1.5.5", "parentAA": [["gcc/10.2.0"]]}
    other = {"fullName": "meta", "Version": False, "hidden": True}
    files = {ZSTD["path"]: entry, "/m/meta.lua": other}
    (tmp_path / "spider.json").write_text(json.dumps({"zstd": files}))
    build(tree, output, modules=[tmp_path / "spider.json"])

    assert find(output, "zstd")[0].modules == ("gcc/10.2.0", "zstd/1.5.5")


def spec_of(name: str, version: str, dag_hash: str, compiler: str) -> dict[str, Any]:
    """Return an installed spec with the beginning of a hash and a compiler."""
    whole = (dag_hash + hash_of(name))[:32]
    old = {"original_specfile_version": 4, "compiler": compiler}
    return node(name, version=version, hash=whole, annotations=old)


@pytest.mark.parametrize(
    ("package", "name", "expected"),
    [
        # Spack's default names, with and without the compiler.
        ("zstd", "zstd/1.5.5-lvnw667", "lvnw667"),
        ("zstd", "zstd/1.5.5-gcc-7.5.0-lvnw667", "lvnw667"),
        ("zstd", "zstd/1.5.5-gcc-12.2.0", "aaaaaaa"),
        ("Core/zstd", "Core/zstd/1.5.5-gcc-7.5.0", "lvnw667"),
        ("zstd-1.5.5-gcc-7.5.0-lvnw667", "zstd-1.5.5-gcc-7.5.0-lvnw667", "lvnw667"),
        ("py_numpy", "py_numpy/1.26.0-bbbbbbb", "bbbbbbb"),
        ("py-numpy", "py-numpy/1.26.0-openmpi-bbbbbbb", "bbbbbbb"),
        # A version of another spec, a compiler that none has, and words that say
        # nothing.
        ("zstd", "zstd/1.5-lvnw667", None),
        ("zstd", "zstd/1.5.5-gcc-9.4.0", None),
        ("zstd", "zstd/1.5.5-serial", None),
        ("zstd", "zstd/1.5.5-ccccccc", None),
        ("zstd", "zstd/1.5.5", None),
    ],
)
def test_a_name_with_a_hash_or_a_compiler(
    package: str, name: str, expected: str | None, tmp_path: Path
) -> None:
    """The hash decides, then the compiler; a name that leaves a doubt loads nothing."""
    tree = tree_of(
        tmp_path / "opt",
        spec_of("zstd", "1.5.5", "lvnw667", "gcc@=7.5.0"),
        spec_of("zstd", "1.5.5", "aaaaaaa", "gcc@=12.2.0"),
        spec_of("py-numpy", "1.26.0", "bbbbbbb", "gcc@=12.2.0"),
    )
    module = {
        "full": name,
        "path": f"/m/Core/{name}.lua",
        "versionName": name.split("/")[-1],
    }
    output = tmp_path / "x.db"
    build(tree, output, modules=[page(tmp_path, module, package=package)])
    found = {dag_hash[:7]: module for dag_hash, (module, _) in loading(output).items()}

    assert found == ({} if expected is None else {expected: name})


def test_escapes_of_lmod_are_read(tmp_path: Path) -> None:
    """Lmod writes bytes beyond ASCII as no JSON does; backslashes of JSON stay."""
    escaped = rb'[{"package": "zstd", "description": "\xc2\xb5 \x27 \\\\x41 \xff", "versions": '
    path = tmp_path / "page.json"
    path.write_bytes(escaped + json.dumps([ZSTD]).encode() + b"}]")
    (module,) = read_modules(RawFile("x", "x", path.read_bytes()))
    assert (module.package, module.version) == ("zstd", "1.5.5")


@pytest.mark.parametrize(
    ("folder", "release"),
    [
        (
            "gcc/__spack_path_placeholder__/__spack_path_placeholder__/__spack_path_pla",
            "gcc",
        ),
        ("__spack_path_placeholder__/__spack", "installed"),
    ],
)
def test_padding_names_no_machine(folder: str, release: str, tmp_path: Path) -> None:
    """A padded install tree has the name of the folder above the padding."""
    write_tree(tmp_path / "opt" / folder, [installed(node("zlib"))])
    build(tmp_path / "opt", tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        assert conn.execute("SELECT name FROM releases").fetchall() == [(release,)]
