"""environments.known_keys: a misspelt key of a `spack.yaml` is a fault, an old one is not."""

import json
from typing import Any

import pytest

from spack_cache_db.environments import Surroundings, UnreadableEnvironment
from spack_cache_db.environments.formats import read_environment


def read(environment: dict[str, Any], **files: bytes) -> list[str]:
    """Return the texts of the specs of an environment."""
    text = json.dumps({"spack": {"specs": ["hdf5"], **environment}}, indent=1)
    around = Surroundings(open={f"/e/{name}": data for name, data in files.items()}.get)
    found = read_environment(text.encode(), "/e/spack.yaml", surroundings=around)
    return [spec.text for spec in found.specs]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"package": {}}, "package: is an unknown key, expected packages:"),
        ({"definition": []}, "definition: is an unknown key, expected definitions:"),
        ({"concretiser": {}}, "concretiser: is an unknown key, expected concretizer:"),
        (
            {"packages": {"all": {"requires": "+x"}}},
            "requires: is an unknown key, expected require:",
        ),
        (
            {"packages": {"hdf5": {"external": []}}},
            "external: is an unknown key, expected externals:",
        ),
        (
            {"packages": {"hdf5": {"externals": [{"spec": "hdf5@1", "path": "/usr"}]}}},
            "path: is an unknown key, expected spec:",
        ),
        (
            {"packages": {"hdf5": {"require": [{"any_of": ["+x"], "whem": "@1"}]}}},
            "whem: is an unknown key, expected when:",
        ),
    ],
)
def test_a_misspelt_key_is_a_fault(environment: dict[str, Any], message: str) -> None:
    """The message names the key and the one that was meant."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read(environment)


def test_the_fault_is_at_the_key() -> None:
    """The line is that of the key, in the environment and in an included file."""
    text = b"spack:\n  specs: [a]\n  package:\n    all: {}\n"
    with pytest.raises(UnreadableEnvironment) as error:
        read_environment(text, "spack.yaml")
    assert [(fault.path, fault.line) for fault in error.value.faults] == [("spack.yaml", 3)]

    with pytest.raises(UnreadableEnvironment) as error:
        read({"include": ["p.yaml"]}, **{"p.yaml": b"# comment\npackage: {}\n"})
    assert [(fault.path, fault.line) for fault in error.value.faults] == [("/e/p.yaml", 2)]


def test_an_unknown_key_that_is_not_misspelt_has_a_note() -> None:
    """Keys of tools and of other versions of Spack are named, and the rest is read."""
    packages = {"hdf5": {"deprecation": {}, "require": "+mpi"}}
    text = json.dumps({"spack": {"specs": ["hdf5"], "benchpark": {}, "packages": packages}})
    found = read_environment(text.encode(), "spack.yaml")

    assert [spec.text for spec in found.specs] == ["hdf5"]
    assert found.notes == (
        "spack: unknown keys are ignored: benchpark",
        "packages: unknown keys are ignored: deprecation",
    )


def test_other_sections_and_old_keys_are_read_over() -> None:
    """Sections that select no binaries, and keys of older versions of Spack, are no faults."""
    old = {"gitlab-ci": {}, "concretization": "together", "view": True, "config": {}, "mirrors": {}}
    packages = {"hdf5": {"paths": {}, "version": [1.14], "permissions": {}}}
    assert read(old | {"packages": packages}) == ["hdf5"]


@pytest.mark.parametrize(
    "key", ["packages:", "'packages:'", "packages+", "'packages-:'", '"packages"']
)
def test_a_key_that_replaces_another_is_recognized(key: str) -> None:
    """A file of `packages::` alone is a `packages.yaml`, quoted or not."""
    suffix = ":" if key.endswith("+") else ""
    found = read_environment(
        f"{key}{suffix}:\n  hdf5:\n    require: +mpi\n".encode(), "packages.yaml"
    )
    assert [spec.text for spec in found.specs] == ["hdf5 +mpi"]
