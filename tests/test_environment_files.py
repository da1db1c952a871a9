"""environment_files: what an environment includes is found beside it, and safely
opened.
"""

import csv
import io
import json
from pathlib import Path

import pytest

from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments.model import UnreadableEnvironment
from spack_cache_db.spack.machine import Machine
from tests.commands import run
from tests.environments.required import required_text

ZEN3 = Machine("zen3", "rhel8", "linux")


def environment(folder: Path, include: str, packages: str = "{}") -> Path:
    """Write an environment, and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / "spack.yaml"
    path.write_text(
        f"spack: {{specs: [zlib], include: [{include}], packages: {packages}}}"
    )
    return path


def required(
    path: Path, *, is_strict: bool = False
) -> tuple[list[str], tuple[str, ...]]:
    """Return what the specs of an environment ask with what is required of them, and
    its notes.
    """
    found = read_environment_file(path, ZEN3, is_strict=is_strict)
    return [required_text(user_spec) for user_spec in found.specs], found.notes


def test_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the file that includes; variables are those of this
    machine.
    """
    monkeypatch.setenv("PLACE", "configs")
    scope = tmp_path / "configs" / "rhel8"
    scope.mkdir(parents=True)
    (scope / "packages.yaml").write_text("packages: {all: {require: [os=rhel8]}}")
    (scope / "include.yaml").write_text(
        "include: [{path: ../more.yaml, when: target == 'zen3'}]"
    )
    (scope / "other.yaml").write_text("packages: {all: {require: [+wrong]}}")
    (tmp_path / "configs" / "more.yaml").write_text(
        "packages: {all: {require: [target=zen3]}}"
    )
    found, notes = required(
        environment(tmp_path / "e", "'../$PLACE/${os}/', $env/no.yaml")
    )

    assert found == ["zlib os=rhel8 target=zen3"]
    assert notes[0].startswith(
        "one include is missing; its requirements are unknown: $env/no"
    )
    with pytest.raises(UnreadableEnvironment, match="one include is missing"):
        required(tmp_path / "e" / "spack.yaml", is_strict=True)


def test_the_command_reads_includes(tmp_path: Path, samples_file: Path) -> None:
    """`cover` says what is not here, and fails for it if asked to."""
    path = environment(tmp_path, "https://host/a.yaml")
    said = "one include is missing; its requirements are unknown: https://host/a.yaml"
    found = run("cover", path, samples_file)

    assert found.exit_code == 1
    assert said in found.stderr

    strict = run("cover", "--strict", path, samples_file)
    assert (strict.exit_code, strict.stderr) == (2, f"Error: {path}: {said}\n")


def test_lockfiles_of_other_environments(tmp_path: Path, samples_file: Path) -> None:
    """`include_concrete` names environments whose locked specs are looked up as those
    of a lock.
    """
    dag_hash = "a" * 32
    arch = {"platform": "linux", "platform_os": "rhel8", "target": "zen3"}
    node = {"name": "zlib", "version": "1.3", "arch": arch, "parameters": {}}
    lock = {
        "_meta": {"lockfile-version": 6},
        "roots": [{"hash": dag_hash, "spec": "zlib"}],
        "concrete_specs": {dag_hash: node},
    }
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spack.lock").write_text(json.dumps(lock))
    path = tmp_path / "spack.yaml"
    path.write_text("spack: {specs: [py-mpi4py], include_concrete: [a, ./b, none]}")

    found = read_environment_file(path, ZEN3)
    assert [
        (locked_spec.hash, locked_spec.is_root) for locked_spec in found.locked
    ] == [(dag_hash, True)]
    assert found.notes == (
        "one include is missing; its requirements are unknown: none",
    )

    result = run("cover", path, samples_file, "--json")
    said = json.loads(result.stdout)
    assert [covered["status"] for covered in said["specs"]] == ["binary", "missing"]
    assert (said["binary"], said["total"], said["missing"]) == (1, 2, 1)
    rows = list(
        csv.DictReader(io.StringIO(run("cover", path, samples_file, "--csv").stdout))
    )
    assert [row["root"] for row in rows] == ["", "1"]
    table = run("cover", path, samples_file).stdout
    assert "zlib@1.3" in table and f"/{dag_hash} (root)" in table

    (tmp_path / "b" / "spack.lock").write_text("{")
    with pytest.raises(UnreadableEnvironment, match=r"b/spack.lock: broken JSON"):
        read_environment_file(path, ZEN3)
