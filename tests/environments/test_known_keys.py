"""environments.known_keys, key_check: what Spack refuses is a fault, what it accepts is
not.
"""

import json
from typing import Any

import pytest

from spack_cache_db.environments.documents import Kind, kind_of
from spack_cache_db.environments.known_keys import SECTIONS_OF_SPACK
from spack_cache_db.environments.model import (
    Environment,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment


def read(environment: dict[str, Any], **files: bytes) -> Environment:
    """Return an environment with the spec hdf5.

    Args:
        environment: its other sections.
        files: the files beside it, by name.
    """
    text = json.dumps({"spack": {"specs": ["hdf5"], **environment}}, indent=1)
    file_of_path = {f"/e/{name}": data for name, data in files.items()}
    surroundings = Surroundings(open=file_of_path.get)
    return read_environment(text.encode(), "/e/spack.yaml", surroundings=surroundings)


def zlib(**entry: Any) -> dict[str, Any]:
    """Return the section `packages:` with one entry."""
    return {"packages": {"zlib": entry}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    # Misspelt keys: the message names the most similar one.
    ({"package": {}}, "package: is an unknown key, expected packages:"),
    ({"definition": []}, "definition: is an unknown key, expected definitions:"),
    ({"concretiser": {}}, "concretiser: is an unknown key, expected concretizer:"),
    ({"mirror": {}}, "mirror: is an unknown key, expected mirrors:"),
    (
        {"packages": {"all": {"requires": "+x"}}},
        "requires: is an unknown key, expected require:",
    ),
    (zlib(external=[]), "external: is an unknown key, expected externals:"),
    (zlib(buildabel=False), "buildabel: is an unknown key, expected buildable:"),
    (zlib(permissions={"reed": "user"}), "reed: is an unknown key, expected read:"),
    (
        zlib(require=[{"any_of": ["+x"], "whem": "@1"}]),
        "whem: is an unknown key, expected when:",
    ),
    (zlib(prefer=[{"spec": "+x", "massage": "m"}]), "massage: .* expected message:"),
    ({"concretizer": {"reuses": True}}, "reuses: is an unknown key, expected reuse:"),
    ({"mirrors": {"m": {"url": "u", "sigend": True}}}, "sigend: .* expected signed:"),
    ({"develop": {"hdf5": {"spec": "hdf5@1", "paht": "."}}}, "paht: .* expected path:"),
    ({"view": {"v": {"root": "/v", "selects": []}}}, "selects: .* expected select:"),
    # Keys that are similar to none: the message names all known keys.
    ({"benchpark": {}}, "benchpark: .* expected one of bootstrap:, .* view:"),
    (
        {"packages": {"all": {"must": "+x"}}},
        "must: .* expected one of buildable:, .* version:",
    ),
    (
        {"packages": {"all": {"externals": []}}},
        "externals: .* expected one of buildable:",
    ),
    (zlib(needs="+mpi"), "needs: .* expected one of buildable:, .* version:"),
    (
        zlib(require=[{"spec": "+x", "if": "@1"}]),
        "if: .* any_of:, message:, one_of:",
    ),
    (
        zlib(conflict=[{"spec": "+x", "one_of": []}]),
        "one_of: .* message:, spec:, when:",
    ),
    (
        zlib(externals=[{"spec": "zlib@1", "path": "/usr"}]),
        "path: .* prefix:, spec:",
    ),
    ({"concretizer": {"zzz": 1}}, "zzz: .* compiler_mixing:"),
    (
        {"concretizer": {"splice": {"by": []}}},
        "by: .* expected one of automatic:, explicit:",
    ),
    ({"mirrors": {"m": {"url": "u", "only": ["hdf5"]}}}, "only: .* access_pair:"),
    (
        {"mirrors": {"m": {"fetch": {"url": "u", "signed": True}}}},
        "signed: .* access_pair:",
    ),
    ({"repos": {"r": {"url": "u"}}}, "url: .* branch:, commit:"),
    ({"env_vars": {"add": {}}}, "add: .* append_path:"),
    ({"upstreams": {"u": {"root": "/x"}}}, "root: .* install_tree:, modules:"),
    ({"modules": {"default": {"kinds": []}}}, "kinds: .* enable:"),
    ({"compilers": [{"gcc": {}}]}, "gcc: .* compiler:"),
    ({"config": {"sandbox": {"disk": True}}}, "disk: .* allow_network:"),
    ({"ci": {"pipeline-gen": [{"some-job": {}}]}}, "some-job: .* any-job:"),
    (
        {"specs": [{"group": "g", "specs": ["a"], "override": {"foo": 1}}]},
        "foo: .* bootstrap:",
    ),
]
"""Sections with an unknown key, and the message, a regular expression."""


@pytest.mark.parametrize(("environment", "message"), REFUSED)
def test_what_spack_refuses_is_a_fault(
    environment: dict[str, Any], message: str
) -> None:
    """The message names the key, and the nearest or all known keys of its place."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read(environment)


REFUSED_FORMS = [
    # Groups.
    (
        "specs: [{group: a, specs: [x], need: [b]}]",
        "need: is an unknown key, expected needs:",
    ),
    ("specs: [{group: a, spec: [x]}]", "spec: is an unknown key, expected specs:"),
    (
        "specs: [{group: a, specs: [x]}, {group: a, specs: [y]}]",
        "a second group a, expected one",
    ),
    ("specs: [{group: a, specs: [x], matrix: [[y]]}]", "has specs: and matrix:"),
    (
        "specs: [{group: a, specs: [{group: b, specs: [y]}]}]",
        "group: is an unknown key",
    ),
    # Matrices.
    ("specs: [{matrix: [[x]], excludes: [y]}]", "excludes: .* expected exclude:"),
    ("specs: [{matrix: [[x, matrix: [[y]]]]}]", "row of a matrix has a matrix"),
    (
        "specs: [{matrix: [[x], [a, {matrix: [['@1'], [+y]]}]]}]",
        "row of a matrix has a matrix",
    ),
    (
        "specs: [{group: a, matrix: [[x, {matrix: [[y]]}]]}]",
        "row of a matrix has a matrix",
    ),
    (
        "definitions: [{x: [{matrix: [[{matrix: [[b]]}]]}]}]",
        "row of a matrix has a matrix",
    ),
    # Includes and packages.
    ("include: [{path: a.yaml, optinal: true}]", "optinal: .* expected optional:"),
    (
        "packages: {zlib: {buildable: maybe}}",
        "buildable: is 'maybe', expected true or false",
    ),
]
"""Sections of a wrong form, as YAML, and the message, a regular expression."""


@pytest.mark.parametrize(("section", "message"), REFUSED_FORMS)
def test_forms_that_spack_refuses_are_faults(section: str, message: str) -> None:
    """A group, a matrix or an include of a wrong form is not read in part."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read_environment(f"spack:\n  {section}\n".encode(), "/e/spack.yaml")


def test_a_row_may_refer_to_a_list_with_a_matrix() -> None:
    """The inner matrix is below `definitions:`, where Spack allows it."""
    definitions = [{"inner": [{"matrix": [["@1"], ["+x", "~x"]]}]}]
    specs = [{"matrix": [["a"], ["$inner"]]}]
    environment = read({"definitions": definitions, "specs": specs})
    assert [spec.text for spec in environment.specs] == ["a@1 +x", "a@1 ~x"]


def test_the_default_group_may_be_repeated() -> None:
    """A second group of another name is refused, but `default` is the name of the specs
    without a group.
    """
    specs = [
        {"group": "a", "specs": ["x"]},
        "y",
        {"group": "default", "specs": ["z"]},
        {"group": "default", "specs": ["w"]},
    ]
    environment = read({"specs": specs})

    assert [spec.text for spec in environment.specs] == ["x", "y", "z", "w"]


def test_a_group_may_have_a_matrix() -> None:
    """The matrix of a group is that of a list, also with a key that replaces others."""
    for key in ("matrix", "matrix:"):
        group = {"group": "g", key: [["x", "y"]], "exclude": ["x"]}
        environment = read({"specs": [group]})
        assert [spec.text for spec in environment.specs] == ["y"]


NEW_EXTERNAL = {
    "spec": "zlib@1.3 %gcc@12",
    "prefix": "/usr",
    "modules": ["zlib"],
    "id": "z",
    "extra_attributes": {
        "compilers": {"c": "/usr/bin/cc", "hip": "/usr/bin/hipcc"},
        "environment": {"set": {"ANY": "x"}},
        "flags": {"cflags": "-O2"},
        "anything": "x",
    },
}
"""An external with every key of Spack 1.2, and keys that are free there."""
OLD_COMPILER = {
    "spec": "gcc@12",
    "paths": {"cc": "cc", "cxx": "c++", "f77": "f77", "fc": "fc"},
    "operating_system": "rhel8",
    "modules": [],
    "flags": {"cflags": "-O2"},
}
"""An entry of `compilers:` as before Spack 1.0."""
SECTIONS_WITHOUT_BINARIES = (
    "config",
    "cdash",
    "container",
    "ci",
    "env_vars",
    "upstreams",
)
ACCEPTED: list[dict[str, Any]] = [
    # Sections without keys, and keys that replace those of other files.
    {section: {} for section in SECTIONS_WITHOUT_BINARIES},
    {
        "config:": {
            "install_tree": {"root": "/x", "own": 1},
            "own": 1,
            "sandbox": {"enable": True},
        }
    },
    {"packages:": {"all:": {"require:": "@1:"}, "zlib": {"buildable:": False}}},
    # The keys of packages.
    {
        "packages": {
            "all": {
                "providers": {"mpi": ["mpich"]},
                "target": ["zen3"],
                "compiler": ["gcc"],
            }
        }
    },
    {
        "packages": {
            "all": {"permissions": {"read": "world", "write": "group", "group": "x"}}
        }
    },
    zlib(version=[1.3, "1.2"], variants="+pic", package_attributes={"any_name": 1}),
    zlib(require=[{"one_of": ["@1", "@2"], "when": "+pic", "message": "m"}, "+pic"]),
    zlib(
        prefer=[{"spec": "@1", "when": "+pic"}],
        conflict=[{"spec": "@9", "message": "m"}],
    ),
    zlib(externals=[NEW_EXTERNAL], buildable=False),
    # Newer than Spack 1.2.
    zlib(deprecation={"allowed_severity": "low"}),
    # Spack 0.20 and older.
    zlib(paths={"zlib@1": "/usr"}, modules={"zlib@1": "zlib"}, compiler=["gcc"]),
    {"packages": {"all": {"version": []}}, "gitlab-ci": {"mappings": []}},
    {"concretization": "together", "projections": {"all": "{name}"}},
    {
        "modules": {
            "enable": ["tcl"],
            "tcl": {"whitelist": ["gcc"], "all": {"load": []}},
        }
    },
    {"compilers": [{"compiler": OLD_COMPILER}]},
    # The other sections.
    {
        "concretizer": {
            "unify": "when_possible",
            "timeout": 9,
            "enable_node_namespace": True,
        }
    },
    {
        "concretizer": {
            "reuse": {"roots": True, "from": [{"type": "local", "include": ["a"]}]}
        }
    },
    {
        "concretizer": {
            "duplicates": {"strategy": "full", "own": 1},
            "targets": {"own": 1},
        }
    },
    {
        "concretizer": {
            "splice": {"explicit": [{"target": "a", "replacement": "b/abc"}]}
        }
    },
    {
        "mirrors": {
            "a": "https://x/y",
            "b": {"url": "https://x/z", "view": "v", "autopush": True},
        }
    },
    {
        "mirrors": {
            "c": {
                "fetch": {"url": "u", "profile": "p"},
                "push": "s3://b",
                "signed": False,
            }
        }
    },
    {
        "mirrors": {
            "c": {"url": "u", "access_pair": {"id": "i", "secret_variable": "V"}}
        }
    },
    {"toolchains": {"t": "%gcc@12", "u": [{"spec": "%c=gcc", "when": "%c"}]}},
    {"view": True},
    {
        "view": {
            "own": {
                "root": "/v",
                "select": ["a"],
                "link": "roots",
                "projections": {"a": "b"},
            }
        }
    },
    {"develop": {"hdf5": {"spec": "hdf5@1", "path": "."}}},
    {"repos": ["/r"], "include_concrete": []},
    {"repos": {"own": "/r", "git": {"git": "u", "branch": "b", "paths": ["p"]}}},
    {"env_vars": {"set": {"ANY": "x"}, "prepend_path": {"PATH": "/x"}, "unset": ["B"]}},
    {
        "modules": {
            "prefix_inspections": {"lib64": ["L"]},
            "own": {"roots": {"tcl": "/m"}},
        }
    },
    {
        "modules": {
            "own": {
                "tcl": {"projections": {"a": "x"}, "^mpi": {"suffixes": {"^a": "b"}}}
            }
        }
    },
    {
        "ci": {
            "target": "gitlab",
            "own": 1,
            "pipeline-gen": [{"any-job": {"tags": [], "own": 1}}],
        }
    },
    {
        "bootstrap": {
            "own": 1,
            "sources": [{"name": "a", "metadata": "b"}],
            "trusted": {"a": True},
        }
    },
    {
        "container": {
            "format": "docker",
            "images": {"build": "a", "final": "b"},
            "labels": {"a": "b"},
        }
    },
    # Groups of specs.
    {"specs": ["hdf5", {"matrix": [["zlib"], ["+pic"]], "explicit": False}]},
    {
        "specs": [
            "hdf5",
            {"group": "g", "specs": ["zlib"], "override": {"concretizer": {}}},
        ]
    },
]
"""Sections without an unknown key."""


@pytest.mark.parametrize("environment", ACCEPTED)
def test_what_spack_accepts_is_no_fault(environment: dict[str, Any]) -> None:
    """This includes sections that select no binaries, names that users choose, and keys
    of older versions.
    """
    environment_read = read(environment)
    assert environment_read.specs[0].text == "hdf5"
    assert not [note for note in environment_read.notes if "unknown key" in note]


@pytest.mark.parametrize(
    ("environment", "note"),
    [
        (
            {"concretizer": {"reuse": {"form": []}}},
            "form: is an unknown key, expected from:",
        ),
        (
            {"concretizer": {"reuse": {"from": [{"type": "local", "exlude": ["a"]}]}}},
            "exlude: is an unknown key, expected exclude:",
        ),
        (
            {"toolchains": {"t": [{"spec": "%gcc", "whem": "%c"}]}},
            "whem: is an unknown key, expected when:",
        ),
        (
            zlib(
                externals=[
                    {"spec": "zlib@1", "dependencies": [{"id": "g", "kind": "x"}]}
                ]
            ),
            "kind: is an unknown key, expected one of deptypes:, id:, spec:, virtuals:",
        ),
    ],
)
def test_a_key_that_spack_ignores_has_a_note(
    environment: dict[str, Any], note: str
) -> None:
    """The note has the line of the key, and says that Spack ignores it."""
    notes = [note for note in read(environment).notes if "unknown key" in note]
    assert len(notes) == 1
    assert notes[0].startswith("line ")
    assert notes[0].endswith(f"{note}; Spack ignores it")


def places_of(error: UnreadableEnvironment) -> list[tuple[str, int]]:
    """Return the path and line of each fault."""
    return [(fault.path, fault.line) for fault in error.faults]


def test_the_fault_is_at_the_key() -> None:
    """The line is that of the key, in the environment and in an included file."""
    lines = (
        "spack:",
        "  specs: [a]",
        "  package:",
        "    all: {}",
        "  packages:",
        "    all:",
        "      must: x",
    )
    text = "".join(f"{line}\n" for line in lines)
    with pytest.raises(UnreadableEnvironment) as error:
        read_environment(text.encode(), "spack.yaml")
    assert places_of(error.value) == [("spack.yaml", 3), ("spack.yaml", 7)]

    included = {"p.yaml": b"# comment\npackage: {}\n"}
    with pytest.raises(UnreadableEnvironment) as error:
        read({"include": ["p.yaml"]}, **included)
    assert places_of(error.value) == [("/e/p.yaml", 2)]


def test_one_mistake_is_one_fault() -> None:
    """A spec whose colon makes a mapping has the advice to quote it, and no second
    fault.
    """
    with pytest.raises(UnreadableEnvironment) as error:
        read(zlib(require=[{"zlib@1.2": "+pic"}]))
    (fault,) = error.value.faults
    assert "put the spec in quotes" in fault.message


@pytest.mark.parametrize(
    ("beside", "section"),
    [
        ("packages:", "packages"),
        ("package:", "packages"),
        ("concretizer::", "concretizer"),
    ],
)
def test_a_section_beside_spack_is_a_fault(beside: str, section: str) -> None:
    """Spack refuses it, and the requirements in it would be skipped."""
    text = f"spack:\n  specs: [hdf5]\n{beside} {{all: {{require: +mpi}}}}\n"
    message = f"expected {section}: below spack:"
    with pytest.raises(UnreadableEnvironment, match=message) as error:
        read_environment(text.encode(), "spack.yaml")
    assert places_of(error.value) == [("spack.yaml", 3)]


def test_other_keys_beside_spack_have_a_note() -> None:
    """They may have anchors that the environment uses."""
    lines = (
        "x-flags: &flags {require: +mpi}",
        "version: 1",
        "spack:",
        "  specs: [hdf5]",
        "  packages: {hdf5: *flags}",
    )
    text = "".join(f"{line}\n" for line in lines)
    environment = read_environment(text.encode(), "spack.yaml")

    assert environment.notes == ("keys beside spack: are ignored: version, x-flags",)
    assert environment.specs[0].rules.required["hdf5"]


@pytest.mark.parametrize("section", sorted(SECTIONS_OF_SPACK))
def test_every_section_is_known_as_one(section: str) -> None:
    """A file of one section is an environment, or is refused by the name of the
    section.
    """
    assert kind_of([section]) in (Kind.MANIFEST, Kind.SPACK_SECTION)


@pytest.mark.parametrize(
    "key", ["packages::", "'packages:':", "packages+::", "'packages-:':", '"packages":']
)
def test_a_key_that_replaces_another_is_recognized(key: str) -> None:
    """A file of `packages::` alone is a `packages.yaml`, quoted or not."""
    text = f"{key}\n  hdf5:\n    require: +mpi\n"
    environment = read_environment(text.encode(), "packages.yaml")
    assert [spec.text for spec in environment.specs] == ["hdf5 +mpi"]
