"""The JSON of every command is what docs/schemas.json says."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.main import COMMANDS, cli
from tests import graphs, trees
from tests.commands import run
from tests.indexes import REAL_FILE, edge, hash_of, index, lock_of, node, record
from tests.package_data import REAL
from tests.pagetexts import SAMPLES
from tests.paths import ROOT

Draft202012Validator = pytest.importorskip("jsonschema").Draft202012Validator
SCHEMAS = json.loads((ROOT / "docs" / "schemas.json").read_text(encoding="utf-8"))
USER = max(graphs.edges(), key=lambda key: len(graphs.edges()[key]))
CALLS: dict[str, tuple[str, ...]] = {
    "behind": ("behind all.db",),
    "build": ("build pages -o b.db", "build pages -o b.db --snapshot 2025-01-05"),
    "check": ("check pages", "check pages broken.md"),
    "cover": (
        "cover specs.txt all.db",
        "cover specs.txt all.db --only near --baseline e4s.db",
        "cover spack.lock all.db",
        "cover spack.yaml all.db",
        "cover specs.txt tree.db",
    ),
    "cover FOLDER": ("cover envs all.db", "cover envs all.db --baseline e4s.db"),
    "dependents": (f"dependents {next(iter(graphs.edges()[USER]))} e4s.db",),
    "dependents SPEC": (
        "dependents zlib-ng all.db",
        "dependents zlib-ng@99 all.db",
        "dependents py-mpi4py pages.db",
    ),
    "deps": (f"deps {USER} e4s.db",),
    "diff": (
        "diff develop-2025-04-20 develop all.db",
        "diff develop:e4s develop e4s.db",
    ),
    "diff --databases": (
        "diff --databases e4s.db all.db",
        "diff --databases 1.db 2.db",
    ),
    "diff HASH": (
        f"diff /{USER} /{next(iter(graphs.edges()[USER]))} e4s.db",
        f"diff /{USER} /2feova4 all.db",
    ),
    "find": (
        "find hdf5 e4s.db",
        "find zlib all.db",
        "find glibc tree.db",
        "find zlib tree.db",
    ),
    "find --hashes": ("find gmake --hashes all.db", "find zlib --hashes tree.db"),
    "find --install": (
        "find hdf5 e4s.db --install",
        "find zlib tree.db --install",
        "find nothing e4s.db --install",
    ),
    "history": ("history py-ml-dtypes all.db",),
    "info": ("info all.db", "info e4s.db"),
    "releases": ("releases all.db",),
    "retention": (
        "retention all.db --newest 1 --environment spack.yaml --allow-missing",
    ),
    "stacks": ("stacks all.db",),
    "verify": (
        "verify pages.db pages",
        "verify pages.db broken.md pages/_cache/develop",
    ),
}
"""By the name of the schema, the commands that print such JSON."""


def strict(schema: Any) -> Any:
    """Return a schema that allows no other keys than those that it names."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "required" in schema:
        found["additionalProperties"] = False
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the databases and environments that the calls name."""
    path = tmp_path_factory.mktemp("schemas")
    (path / "pages").symlink_to(SAMPLES)
    build([SAMPLES], path / "pages.db")
    build([SAMPLES, REAL_FILE, REAL], path / "all.db")
    build([REAL_FILE], path / "e4s.db", release="develop", stack="e4s")
    tree = trees.write_tree(path / "opt", trees.real_tree())
    build([tree], path / "tree.db")
    for night in "12":
        needed = node("zlib", version=f"1.{night}", hash=hash_of(f"zlib{night}"))
        to = edge("zlib", "link") | {"hash": needed["hash"]}
        user = node("app", to, hash=hash_of(f"app{night}"))
        (path / "index.json").write_bytes(index(record(needed), record(user)))
        build([path / "index.json"], path / f"{night}.db", release="develop")
    (path / "broken.md").write_text("---\n")
    (path / "specs.txt").write_text("hdf5\nhdf5@99\nnothing@1\nzlib ^x\npy-mpi4py@4\n")
    (path / "spack.lock").write_bytes(lock_of(node("app"), node("tool")))
    (path / "spack.yaml").write_text("spack: {specs: [zlib], include_concrete: [.]}")
    for name, text in (("a", "spack: {specs: [hdf5]}"), ("b", "spack: [")):
        (path / "envs" / name).mkdir(parents=True)
        (path / "envs" / name / "spack.yaml").write_text(text)
    return path


@pytest.mark.parametrize("name", CALLS)
def test_every_command_prints_what_its_schema_says(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key is missing, none is new, and all values have their types."""
    monkeypatch.chdir(folder)
    schema = strict(SCHEMAS) | {"$ref": f"#/$defs/{name.replace(' ', '%20')}"}
    validator = Draft202012Validator(schema)

    for call in CALLS[name]:
        result = run(*call.split(), "--json")
        value = json.loads(result.stdout)
        assert value, call
        errors = [
            f"{error.json_path}: {error.message}"
            for error in validator.iter_errors(value)
        ]
        assert errors == [], call


def test_every_command_with_json_has_a_schema() -> None:
    """Each is called by a test; the schemas of parts are used by those of commands."""
    Draft202012Validator.check_schema(SCHEMAS)
    with_json = set()
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if any(option.name == "as_json" for option in command.params):
            with_json.add(name)

    assert {name.split()[0] for name in CALLS} == with_json

    parts = {name for name in SCHEMAS["$defs"] if name.split()[0] not in COMMANDS}
    assert set(CALLS) == SCHEMAS["$defs"].keys() - parts
    assert all(f'"#/$defs/{name}"' in json.dumps(SCHEMAS) for name in parts)
