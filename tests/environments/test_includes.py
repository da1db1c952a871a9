"""environments.includes: files that include others, merged as Spack merges its
scopes.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.bounded_yaml import CONFIGURATION_BOUNDS, compose, text_value
from spack_cache_db.environments.includes import merged_configuration
from spack_cache_db.environments.model import (
    Environment,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery
from tests.environments.required import required_text
from tests.indexes import lock_of, node
from tests.spack.test_printing import without_places

STACKS = Path(__file__).parents[1] / "data" / "stacks"
LINUX = {"platform": "linux", "os": "ubuntu22.04", "target": "x86_64_v3"}


def surroundings(
    files: Mapping[str, str | Mapping[str, str]], **more: Any
) -> Surroundings:
    """Return surroundings with these files, and folders of them."""

    def open_file(path: str) -> bytes | dict[str, bytes] | None:
        found = files.get(path)
        if found is None or isinstance(found, str):
            return None if found is None else found.encode()
        return {name: text.encode() for name, text in found.items()}

    return Surroundings(open_file, **({"names": LINUX, "env": {}} | more))


def read(text: str, files: Mapping[str, Any], **more: Any) -> Environment:
    """Return what an environment with these files asks for."""
    around = surroundings(files, **more)
    return read_environment(text.encode(), "/e/spack.yaml", surroundings=around)


def required_texts(found: Environment) -> list[str]:
    """Return what the first alternative of each spec asks, or why there is none."""
    return [required_text(spec) for spec in found.specs]


PACKAGES = "packages: {all: {require: [target=zen3]}}"


@pytest.mark.parametrize(
    ("include", "files"),
    [
        ("[a.yaml]", {"/e/a.yaml": PACKAGES}),
        ("[../x/]", {"/x": {"packages.yaml": PACKAGES}}),
        ("[/x/a.yaml]", {"/x/a.yaml": f"spack:\n  {PACKAGES}"}),
        ("[$HOME/a.yaml]", {"/home/me/a.yaml": PACKAGES}),
        ("['file:///a.yaml']", {"/a.yaml": PACKAGES}),
        ("[b.yaml]", {"/e/b.yaml": "include: [c/a.yaml]", "/e/c/a.yaml": PACKAGES}),
        (
            "[d]",
            {"/e/d": {"include.yaml": "include: [../a.yaml]"}, "/e/a.yaml": PACKAGES},
        ),
        ("[{path: a.yaml, when: platform == 'linux'}]", {"/e/a.yaml": PACKAGES}),
        (
            "[{path: a.yaml, when: platform == 'darwin'}, b.yaml]",
            {"/e/a.yaml": "packages: {all: {require: [+x]}}", "/e/b.yaml": PACKAGES},
        ),
        ("[{path: no.yaml, optional: true}, a.yaml]", {"/e/a.yaml": PACKAGES}),
        ("[{path: no, path_override_env_var: PLACE}]", {"/e/a.yaml": PACKAGES}),
    ],
)
def test_what_is_found(include: str, files: Mapping[str, Any]) -> None:
    """Files and folders are found as Spack finds them, and say what packages
    require.
    """
    variables = {"HOME": "/home/me", "PLACE": "a.yaml"}
    found = read(
        f"spack: {{specs: [zlib], include: {include}}}", files, variables=variables
    )

    assert required_texts(found) == ["zlib target=zen3"]
    assert found.notes == ()


@pytest.mark.parametrize(
    "include", ["no.yaml", "https://host/a.yaml", "{git: 'https://host/x', paths: [a]}"]
)
def test_what_is_not_here(include: str) -> None:
    """It is named, the answer goes on, and lists that it may define are told line by
    line.
    """
    text = f"spack: {{specs: [zlib, $gcc, {{matrix: [[a], [$%gcc]]}}], include: [{include}]}}"
    found = read(text, {})

    assert found.notes[0].startswith(
        "one include is missing; their requirements are unknown: "
    )
    assert required_texts(found) == [
        "zlib",
        "$gcc is defined in a missing file",
        "$%gcc is defined in a missing file",
    ]
    with pytest.raises(UnreadableEnvironment, match="one include is missing"):
        read(text, {}, is_strict=True)


def locked(*names: str, **included: str) -> str:
    """Return a lockfile of these specs, which includes other lockfiles."""
    lock = json.loads(lock_of(*map(node, names)))
    lock["_meta"]["lockfile-version"] = 7
    lock["include_concrete"] = {
        path: json.loads(text) for path, text in included.items()
    }
    return json.dumps(lock)


@pytest.mark.parametrize(
    "include",
    [
        "[../a/spack.lock]",
        "['file:///a/spack.lock']",
        "[{path: ../a/spack.lock, when: platform == 'darwin'}]",
    ],
)
def test_lockfiles_are_included(include: str) -> None:
    """The specs of a lockfile, and of those that it includes, count as in
    `include_concrete`.
    """
    files = {"/a/spack.lock": locked("zlib", one=locked("hdf5", two=locked("cmake")))}
    found = read(
        f"spack: {{specs: [x], include: {include}}}", files, variables={"A": "/a"}
    )

    assert [spec.configuration.package for spec in found.locked] == [
        "zlib",
        "hdf5",
        "cmake",
    ]
    assert required_texts(found) == ["x"]
    assert found.notes == ()
    old = read("spack: {specs: [x], include_concrete: [../a]}", files)
    assert old == found


def test_lockfiles_that_do_not_count_are_named() -> None:
    """A lockfile that is not there, or that another file includes, has a note, or is a
    fault.
    """
    files = {"/e/a.yaml": "include: [spack.lock]", "/e/spack.lock": locked("zlib")}
    text = "spack: {specs: [x], include: [a.yaml, no/spack.lock]}"
    found = read(text, files)

    assert found.locked == ()
    assert [note.partition(";")[0] for note in found.notes] == [
        "one include is missing",
        "one include is a lockfile that another file includes, which Spack ignores",
    ]
    with pytest.raises(UnreadableEnvironment, match="which Spack ignores"):
        read(text, files, is_strict=True)
    assert (
        read("spack: {include: [{path: spack.lock, optional: true}]}", {}).notes == ()
    )


def test_what_is_not_known() -> None:
    """A condition that cannot be decided is named, and its file is not read."""
    text = "spack: {specs: [zlib], include: [{path: a.yaml, when: env.get('X')}]}"
    found = read(text, {"/e/a.yaml": PACKAGES}, env=None)

    assert required_texts(found) == ["zlib"]
    assert "because their when: is unknown;" in found.notes[0]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"/e/a.yaml": "packages: ["}, "/e/a.yaml:1: broken YAML"),
        (
            {"/e/a.yaml": "\npackages: {zlib: {require: '+'}}"},
            "/e/a.yaml:2: '\\+' is not a spec",
        ),
        ({"/e/a.yaml": "include: [a.yaml]"}, "/e/a.yaml:1: a.yaml includes itself"),
        (
            {"/e/a.yaml": "include: [b.yaml]", "/e/b.yaml": "include: [./a.yaml]"},
            "/e/b.yaml:1: ./a.yaml includes itself",
        ),
        ({"/e/a.yaml": "- x"}, "/e/a.yaml:1: expected a configuration:"),
        ({"/e/a.yaml": "include: [{paht: x}]"}, "/e/a.yaml:1: paht: is an unknown key"),
        ({"/e/a.yaml": "packages: &a {b: [*a]}"}, "contains itself"),
        (
            {"/e/a.yaml": "a: " + "[" * 100 + "]" * 100},
            "/e/a.yaml:1: is nested more than 32",
        ),
    ],
)
def test_what_is_wrong(files: Mapping[str, str], said: str) -> None:
    """A fault names the file in which it stands."""
    text = "spack: {include: [a.yaml], packages: {all: {require: [+x]}}}"
    with pytest.raises(UnreadableEnvironment, match=said):
        read(text, files)


@pytest.mark.slow
def test_many_files_are_too_many() -> None:
    """However files include each other, each is read once, and only so many are."""
    names = [f"{number}.yaml" for number in range(10_000)]
    each = json.dumps({"include": names})
    with pytest.raises(UnreadableEnvironment, match="includes itself"):
        read(
            "spack: {include: [0.yaml]}",
            dict.fromkeys((f"/e/{name}" for name in names), each),
        )
    wide = json.dumps({"spack": {"include": names}})
    with pytest.raises(UnreadableEnvironment, match="includes more than 256 files"):
        read(wide, dict.fromkeys((f"/e/{name}" for name in names), "{}"))
    large = "#" * 2**20
    with pytest.raises(
        UnreadableEnvironment, match="includes more than 16,777,216 bytes"
    ):
        read(wide, dict.fromkeys((f"/e/{name}" for name in names), large))
    deep = json.dumps(
        {"packages": {f"p{number}": {"require": "+x"} for number in range(1_000)}}
    )
    with pytest.raises(UnreadableEnvironment, match="includes more than 50,000 values"):
        read(wide, dict.fromkeys((f"/e/{name}" for name in names), deep))


def on_disk(path: str) -> bytes | dict[str, bytes] | None:
    """Open what a stack includes."""
    place = Path(path)
    if place.is_dir():
        names = ("packages.yaml", "definitions.yaml", "include.yaml")
        return {
            name: (place / name).read_bytes()
            for name in names
            if (place / name).is_file()
        }
    return place.read_bytes() if place.is_file() else None


EXPECTED = json.loads((STACKS / "expected.json").read_text(encoding="utf-8"))


def said_by(texts: list[str]) -> list[SpecQuery]:
    """Return what specs ask, in whatever order they say it."""
    queries = [without_places(parse_query(each)) for each in texts]
    return [
        replace(each, variants=tuple(sorted(each.variants, key=str)))
        for each in queries
    ]


@pytest.mark.parametrize(
    "name", sorted(each.name for each in (STACKS / "stacks").iterdir())
)
def test_the_stacks_of_spacks_own_caches(name: str) -> None:
    """Real environments ask for the specs, and require what Spack 1.1 reads from
    them.
    """
    path = STACKS / "stacks" / name / "spack.yaml"
    around = Surroundings(
        on_disk, names={**LINUX, "hostname": "x"}, env={}, variables={}
    )
    found = read_environment(path.read_bytes(), str(path), surroundings=around)
    assert all(each.error is None for each in found.specs)
    expected = EXPECTED.get(str(path.relative_to(STACKS)))
    if expected is None:
        assert len({each.group for each in found.specs}) > 1
        return
    assert said_by([each.text for each in found.specs]) == said_by(expected["specs"])
    node = compose(path.read_text(encoding="utf-8"), CONFIGURATION_BOUNDS, str(path))
    assert node is not None
    ((_, section),) = node.value
    sections = merged_configuration(section, str(path), around).sections
    packages = text_value(sections["packages"]) if "packages" in sections else {}
    required = {
        name: {key: said[key] for key in ("require", "conflict") if key in said}
        for name, said in packages.items()
    }
    assert {name: said for name, said in required.items() if said} == expected[
        "require"
    ]


def test_anchors_and_merge_keys() -> None:
    """Mappings that merge others have their keys, in an environment and in what it
    includes.
    """
    text = """
spack:
  include: [a.yaml]
  specs: [x, y, z]
  packages:
    x: &common {require: +a, buildable: true}
    y: {<<: *common}
"""
    more = "packages: {z: &z {require: '@2'}, w: {<<: *z, require: '@1'}, y: {<<: *z}}"
    assert required_texts(read(text, {"/e/a.yaml": more})) == ["x +a", "y +a", "z@2"]


MERGED = """
packages:
  x: {require: [+low, +both], 'conflict': [~a]}
  y: {require: +low}
  z: {require: [+low]}
"""


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        ("", ["x +high +both +low", "y +high", "z +high"]),
        ("+:", ["x +high +both +low", "y +high +low", "z +high"]),
        ("-:", ["x +low +high +both", "y +low +high", "z +high"]),
        (":", ["x +high +both", "y +high", "z +high"]),
    ],
)
def test_signs_behind_keys(sign: str, expected: list[str]) -> None:
    """`+:` puts lists and texts before those of a lower scope, `-:` behind, and `:`
    replaces.
    """
    high = f"""
spack:
  specs: [x, y, z]
  include: [a.yaml]
  packages:
    x: {{'require{sign}': [+high, +both]}}
    y: {{'require{sign}': '+high{" " * bool(sign)}'}}
    'z:': {{require: [+high]}}
"""
    assert required_texts(read(high, {"/e/a.yaml": MERGED})) == expected
