"""environments.documents: the kind of a document is decided by its keys."""

import json

import pytest

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.model import (
    Environment,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from tests.indexes import hash_of, node

NODES = [node("hdf5"), node("zlib")]
SPEC_FILE = {"spec": {"_meta": {"version": 5}, "nodes": NODES}}


def read(text: str) -> Environment:
    """Return the content of a text."""
    return read_environment(text.encode(), "mine")


def hashes(environment: Environment) -> list[str]:
    """Return the hashes of the nodes of an environment."""
    return [spec.hash for spec in environment.locked]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(NODES),
        json.dumps(NODES, indent=1),
        json.dumps(SPEC_FILE),
        f"$ spack find --json\n{json.dumps(NODES, indent=1)}\n",
        f"[me@login ~]$ spack spec --json hdf5\n{json.dumps(SPEC_FILE)}\n$ exit\n",
        f"It says\n```json\n{json.dumps(NODES, indent=2)}\n```\nand stops.\n",
        f"{json.dumps([NODES[0]])}\n{json.dumps([NODES[1]])}",
        f"{json.dumps(NODES[:1])}\n\n{json.dumps(SPEC_FILE)}\n",
        # JSON is YAML as well; Spack's own YAML has a key on each line.
        "spec:\n  _meta:\n    version: 5\n  nodes:\n"
        + "".join(f"  - {json.dumps(spec_node)}\n" for spec_node in NODES),
        "```yaml\nspec:\n  nodes:\n"
        + "".join(f"  - {json.dumps(one)}\n" for one in NODES)
        + "```",
        "spec:\n" + "".join(f"- {json.dumps({one['name']: one})}\n" for one in NODES),
    ],
)
def test_nodes_are_found(text: str) -> None:
    """Nodes of Spack are read from JSON and YAML, alone or in what surrounds it."""
    assert hashes(read(text)) == [hash_of("hdf5"), hash_of("zlib")]


def test_specs_beside_json_count() -> None:
    """Specs in the lines around JSON are answered as well, with their own line
    numbers.
    """
    environment = read(f"{json.dumps(NODES, indent=1)}\ncmake@3.27\n")

    assert [spec.text for spec in environment.specs] == ["cmake@3.27"]
    assert environment.specs[0].line == json.dumps(NODES, indent=1).count("\n") + 2
    assert not environment.is_lock


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "modules:\n  default:\n    tcl:\n      include: [python]\n",
            "Spack's configuration modules:",
        ),
        (
            "compilers:\n- compiler:\n    spec: gcc@12\n",
            "Spack's configuration compilers:",
        ),
        ("config:\n  install_tree: {root: /x}\n", "Spack's configuration config:"),
        ("mirrors:\n  a: https://example.org\n", "Spack's configuration mirrors:"),
        ("repos:\n- /x\n", "Spack's configuration repos:"),
        ("concretizer:\n  reuse: false\n", "Spack's configuration concretizer:"),
        (
            "'modules:':\n  default: {}\nconfig:\n  a: b\n",
            "Spack's configuration config:, modules:",
        ),
        (
            "name: CI\non: push\njobs:\n  build:\n    runs-on: x\n",
            "YAML with the keys jobs, name, on",
        ),
        ("key:\n- hdf5\n- zlib\n", "YAML with the keys key"),
        ("spec:\n  name: hdf5\n", "has the key spec:, but no nodes"),
        ('{"config": {"a": 1}}', "Spack's configuration config:"),
        (
            '$ cat x\n{"database": {"version": "8", "installs": {}}}',
            "the index of a build cache",
        ),
        ("[" * 10, "there is no spec in this text"),
    ],
)
def test_other_documents_are_refused_by_name(text: str, reason: str) -> None:
    """A document that is not an environment is refused, and its words are no specs."""
    with pytest.raises(UnreadableEnvironment) as caught:
        read(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["{jobs: 1}\n", "jobs:\n  build: 1\n"])
def test_a_refusal_has_the_line_of_the_document(text: str) -> None:
    """It is the first line that is not blank."""
    with pytest.raises(UnreadableEnvironment, match="mine:3: is YAML with the keys"):
        read(f"\n\n{text}")


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("packages::\n  hdf5:\n    require: +mpi\n", ["hdf5 +mpi"]),
        ("'packages:':\n  hdf5:\n    require: +mpi\n", ["hdf5 +mpi"]),
        ('"packages":\n  hdf5:\n    require: +mpi\n', ["hdf5 +mpi"]),
        ("$ cat spack.yaml\nspack:\n  specs: [hdf5]\n", ["hdf5"]),
        ("look:\n```yaml\nspack:\n  specs:\n  - hdf5\n```\nthanks\n", ["hdf5"]),
        ("# mine\n---\nspack::\n  specs: [zlib]\n", ["zlib"]),
        ("hdf5: the library\nzlib@1.3\n", ["zlib@1.3"]),
    ],
)
def test_environments_are_found(text: str, specs: list[str]) -> None:
    """An environment is found whatever its key looks like, and text stays text."""
    assert [spec.text for spec in read(text).specs] == specs


@pytest.mark.parametrize("key", ["packages", "packages:", "packages+:", "packages-:"])
def test_a_mistake_below_a_key_of_an_environment_is_named(key: str) -> None:
    """A line such as `packages+::` makes a text an environment, even a broken one."""
    with pytest.raises(UnreadableEnvironment, match="x:2: broken YAML"):
        read_environment(f"{key}:\nhdf5\n".encode(), "x")


def test_conda() -> None:
    """Of an `environment.yml`, names and versions are read; builds and channels are
    not.
    """
    text = (
        "name: x\nchannels: [conda-forge]\ndependencies:\n"
        "- hdf5=1.14.6=nompi_h1\n- conda-forge::zlib>=1.2,<1.4\n- cmake\n"
        "- pip:\n  - numpy==1.26\n"
    )
    environment = read(text)

    specs = [spec.text for spec in environment.specs]
    assert specs == ["hdf5@1.14.6", "zlib@1.2:1.3", "cmake", "numpy@1.26"]
    assert "conda" in environment.notes[0]
    with pytest.raises(UnreadableEnvironment, match="dependencies: is not a list"):
        read("name: x\ndependencies:\n  a: b\n")


def test_conda_names_are_those_of_packages() -> None:
    """With and without a version, `numpy` is the package `py-numpy`, if Spack has
    it.
    """
    names = ("numpy", "numpy=1.26", "PyYAML", "cmake", "unknown", "https://x/y")
    text = "dependencies:\n" + "".join(f"- {name}\n" for name in names)
    packages = {"cmake", "py-numpy", "py-pyyaml"}
    known = KnownNames(is_package=packages.__contains__)
    environment = read_environment(
        text.encode(), "-", surroundings=Surroundings(known=known)
    )

    specs = [spec.text for spec in environment.specs]
    assert specs[:3] == ["py-numpy", "py-numpy@1.26", "py-pyyaml"]
    assert specs[3:] == ["cmake", "unknown", "https://x/y"]
    assert [spec.error is None for spec in environment.specs[3:]] == [True, True, False]


def test_json_that_is_not_json_costs_little() -> None:
    """A text with many lines that begin like JSON is read in one pass."""
    text = '[{"a": \n' * 5_000
    with pytest.raises(UnreadableEnvironment):
        read(text)
