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


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ("specs: [{group: a, specs: [x], need: [b]}]", "need: is an unknown key, expected needs:"),
        ("specs: [{group: a, spec: [x]}]", "spec: is an unknown key, expected specs:"),
        ("specs: [{group: a, specs: [x]}, {group: a, specs: [y]}]", "a second group a"),
        ("specs: [{group: a, specs: [x], matrix: [[y]]}]", "has specs: and matrix:"),
        ("specs: [{group: a, specs: [{group: b, specs: [y]}]}]", "group: is an unknown key"),
        ("specs: [{matrix: [[x]], excludes: [y]}]", "excludes: is an unknown key.* exclude:"),
        ("specs: [{matrix: [[x, matrix: [[y]]]]}]", "row of a matrix has a matrix"),
        ("specs: [{matrix: [[x], [a, {matrix: [['@1'], [+y]]}]]}]", "row of a matrix"),
        ("specs: [{group: a, matrix: [[x, {matrix: [[y]]}]]}]", "row of a matrix has a matrix"),
        ("definitions: [{x: [{matrix: [[{matrix: [[b]]}]]}]}]", "row of a matrix has a matrix"),
        (
            "specs: [{group: a, specs: [x], override: {package: {}}}]",
            "package: is an unknown key, expected packages:",
        ),
        (
            "mirrors: {m: {url: x, include_binar: [a]}}",
            "include_binar: is an unknown key, expected include_binary:",
        ),
        (
            "mirrors: {m: {fetch: {url: x, exclude_binaries: [a]}}}",
            "exclude_binaries: is an unknown key, expected exclude_binary:",
        ),
        ("include: [{path: a.yaml, optinal: true}]", "optinal: .* expected optional:"),
        ("concretizer: {reuse: {form: [{type: local}]}}", "form: .* expected from:"),
    ],
)
def test_forms_that_spacks_schemas_refuse_are_faults(sections: str, message: str) -> None:
    """A group, matrix, mirror or include with a wrong key or form is not read in part."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read_environment(f"spack:\n  {sections}\n".encode(), "/e/spack.yaml")


@pytest.mark.parametrize("section", ["specs: [zlib]", "packages: {}", "'definitions:': []"])
def test_a_section_beside_spack_is_a_fault(section: str) -> None:
    """A section that is indented too little is not skipped in silence."""
    with pytest.raises(UnreadableEnvironment, match="is beside spack:, expected it below spack:"):
        read_environment(f"spack:\n  specs: [hdf5]\n{section}\n".encode(), "/e/spack.yaml")


def test_a_row_may_refer_to_a_list_with_a_matrix() -> None:
    """The inner matrix is below `definitions:`, where Spack allows it."""
    lists = [{"inner": [{"matrix": [["@1"], ["+x", "~x"]]}]}]
    environment = {"definitions": lists, "specs": [{"matrix": [["a"], ["$inner"]]}]}
    assert read(environment) == ["a@1 +x", "a@1 ~x"]


def test_specs_between_groups_and_the_default_group_repeat() -> None:
    """Only a named group is defined once; `default` is the name of the specs without a group."""
    groups = [
        {"group": "a", "specs": ["x"]},
        "y",
        {"group": "default", "specs": ["z"]},
        {"group": "default", "specs": ["w"]},
    ]
    assert read({"specs": groups}) == ["x", "y", "z", "w"]


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
