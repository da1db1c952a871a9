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


def surroundings_with(
    files: Mapping[str, str | Mapping[str, str]], **others: Any
) -> Surroundings:
    """Return surroundings of a Linux machine.

    Args:
        files: the text of each file by path, or the files of a folder by name.
        others: other attributes of the surroundings.
    """

    def open_file(path: str) -> bytes | dict[str, bytes] | None:
        content = files.get(path)
        if content is None:
            return None
        if isinstance(content, str):
            return content.encode()
        return {name: text.encode() for name, text in content.items()}

    attributes: dict[str, Any] = {"names": LINUX, "env": {}}
    return Surroundings(open_file, **(attributes | others))


def read(text: str, files: Mapping[str, Any], **others: Any) -> Environment:
    """Return the environment `/e/spack.yaml`; see `surroundings_with`."""
    surroundings = surroundings_with(files, **others)
    return read_environment(text.encode(), "/e/spack.yaml", surroundings=surroundings)


def required_texts(environment: Environment) -> list[str]:
    """Return the specs of an environment with what is required of their packages."""
    return [required_text(spec) for spec in environment.specs]


ZEN3 = "packages: {all: {require: [target=zen3]}}"


@pytest.mark.parametrize(
    ("include", "files"),
    [
        ("[a.yaml]", {"/e/a.yaml": ZEN3}),
        ("[../x/]", {"/x": {"packages.yaml": ZEN3}}),
        ("[/x/a.yaml]", {"/x/a.yaml": f"spack:\n  {ZEN3}"}),
        ("[$HOME/a.yaml]", {"/home/me/a.yaml": ZEN3}),
        ("['file:///a.yaml']", {"/a.yaml": ZEN3}),
        # An include of an include, and one of a folder.
        ("[b.yaml]", {"/e/b.yaml": "include: [c/a.yaml]", "/e/c/a.yaml": ZEN3}),
        (
            "[d]",
            {"/e/d": {"include.yaml": "include: [../a.yaml]"}, "/e/a.yaml": ZEN3},
        ),
        # Conditions, optional includes and variables with a path.
        ("[{path: a.yaml, when: platform == 'linux'}]", {"/e/a.yaml": ZEN3}),
        (
            "[{path: a.yaml, when: platform == 'darwin'}, b.yaml]",
            {"/e/a.yaml": "packages: {all: {require: [+x]}}", "/e/b.yaml": ZEN3},
        ),
        ("[{path: no.yaml, optional: true}, a.yaml]", {"/e/a.yaml": ZEN3}),
        ("[{path: no, path_override_env_var: PLACE}]", {"/e/a.yaml": ZEN3}),
    ],
)
def test_an_include_is_found(include: str, files: Mapping[str, Any]) -> None:
    """Files and folders are found where Spack finds them, and their requirements
    count.
    """
    text = f"spack: {{specs: [zlib], include: {include}}}"
    variables = {"HOME": "/home/me", "PLACE": "a.yaml"}
    environment = read(text, files, variables=variables)

    assert required_texts(environment) == ["zlib target=zen3"]
    assert environment.notes == ()


@pytest.mark.parametrize(
    "include", ["no.yaml", "https://host/a.yaml", "{git: 'https://host/x', paths: [a]}"]
)
def test_a_missing_include_is_named(include: str) -> None:
    """It has a note, and a list that it may define is an error of each spec that names
    the list; with `is_strict`, it is a fault.
    """
    specs = "[zlib, $gcc, {matrix: [[a], [$%gcc]]}]"
    text = f"spack: {{specs: {specs}, include: [{include}]}}"
    environment = read(text, {})

    assert environment.notes[0].startswith(
        "one include is missing; its requirements are unknown: "
    )
    assert required_texts(environment) == [
        "zlib",
        "$gcc is defined in a missing file",
        "$%gcc is defined in a missing file",
    ]
    with pytest.raises(UnreadableEnvironment, match="one include is missing"):
        read(text, {}, is_strict=True)


def lockfile(*names: str, **included: str) -> str:
    """Return a lockfile of specs with these names.

    Args:
        names: the names of the specs.
        included: other lockfiles that it includes, by path.
    """
    nodes = [node(name) for name in names]
    lock = json.loads(lock_of(*nodes))
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
        # Spack includes a lockfile even if its condition is false.
        "[{path: ../a/spack.lock, when: platform == 'darwin'}]",
    ],
)
def test_lockfiles_are_included(include: str) -> None:
    """The specs of a lockfile, and of those that it includes, count as in
    `include_concrete`.
    """
    innermost = lockfile("cmake")
    inner = lockfile("hdf5", two=innermost)
    files = {"/a/spack.lock": lockfile("zlib", one=inner)}
    environment = read(f"spack: {{specs: [x], include: {include}}}", files)

    packages = [spec.configuration.package for spec in environment.locked]
    assert packages == ["zlib", "hdf5", "cmake"]
    assert required_texts(environment) == ["x"]
    assert environment.notes == ()

    old_form = read("spack: {specs: [x], include_concrete: [../a]}", files)
    assert old_form == environment


def test_lockfiles_that_do_not_count_are_named() -> None:
    """A lockfile that is missing, or that another file includes, has a note, or is a
    fault with `is_strict`.
    """
    files = {"/e/a.yaml": "include: [spack.lock]", "/e/spack.lock": lockfile("zlib")}
    text = "spack: {specs: [x], include: [a.yaml, no/spack.lock]}"
    environment = read(text, files)

    assert environment.locked == ()
    assert [note.partition(";")[0] for note in environment.notes] == [
        "one include is missing",
        "one include is a lockfile that another file includes, which Spack ignores",
    ]
    with pytest.raises(UnreadableEnvironment, match="which Spack ignores"):
        read(text, files, is_strict=True)


def test_an_optional_lockfile_may_be_missing() -> None:
    """It has no note."""
    environment = read("spack: {include: [{path: spack.lock, optional: true}]}", {})
    assert environment.notes == ()


def test_an_include_with_an_unknown_condition_is_named() -> None:
    """Its file is not read."""
    text = "spack: {specs: [zlib], include: [{path: a.yaml, when: env.get('X')}]}"
    environment = read(text, {"/e/a.yaml": ZEN3}, env=None)

    assert required_texts(environment) == ["zlib"]
    assert "because their when: is unknown;" in environment.notes[0]


@pytest.mark.parametrize(
    ("files", "message"),
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
def test_a_fault_names_the_included_file(
    files: Mapping[str, str], message: str
) -> None:
    """The path and line are those of the fault, not of the include."""
    text = "spack: {include: [a.yaml], packages: {all: {require: [+x]}}}"
    with pytest.raises(UnreadableEnvironment, match=message):
        read(text, files)


@pytest.mark.slow
def test_many_files_are_too_many() -> None:
    """However files include each other, each is read once, and their number, bytes and
    values are limited.
    """
    names = [f"{number}.yaml" for number in range(10_000)]
    paths = [f"/e/{name}" for name in names]
    including_all = json.dumps({"include": names})
    with pytest.raises(UnreadableEnvironment, match="includes itself"):
        read("spack: {include: [0.yaml]}", dict.fromkeys(paths, including_all))

    text = json.dumps({"spack": {"include": names}})
    with pytest.raises(UnreadableEnvironment, match="includes more than 256 files"):
        read(text, dict.fromkeys(paths, "{}"))
    comment = "#" * 2**20
    with pytest.raises(
        UnreadableEnvironment, match="includes more than 16,777,216 bytes"
    ):
        read(text, dict.fromkeys(paths, comment))
    packages = {f"p{number}": {"require": "+x"} for number in range(1_000)}
    with pytest.raises(UnreadableEnvironment, match="includes more than 50,000 values"):
        read(text, dict.fromkeys(paths, json.dumps({"packages": packages})))


def open_on_disk(path: str) -> bytes | dict[str, bytes] | None:
    """Open a file or folder that a stack includes."""
    on_disk = Path(path)
    if on_disk.is_file():
        return on_disk.read_bytes()
    if not on_disk.is_dir():
        return None
    content = {}
    for name in ("packages.yaml", "definitions.yaml", "include.yaml"):
        if (on_disk / name).is_file():
            content[name] = (on_disk / name).read_bytes()
    return content


EXPECTED = json.loads((STACKS / "expected.json").read_text(encoding="utf-8"))
"""The specs and requirements that Spack 1.1 reads from the stacks."""


def queries_of(texts: list[str]) -> list[SpecQuery]:
    """Return the queries of specs, with their variants in the order of their names."""
    queries = []
    for text in texts:
        query = without_places(parse_query(text))
        variants = tuple(sorted(query.variants, key=str))
        queries.append(replace(query, variants=variants))
    return queries


def requirements_in(text: str, path: Path, surroundings: Surroundings) -> Any:
    """Return the requirements and conflicts of each package, includes merged."""
    node = compose(text, CONFIGURATION_BOUNDS, str(path))
    assert node is not None
    ((_, section),) = node.value
    sections = merged_configuration(section, str(path), surroundings).sections
    if "packages" not in sections:
        return {}
    requirements = {}
    for package, entry in text_value(sections["packages"]).items():
        rules = {key: entry[key] for key in ("require", "conflict") if key in entry}
        if rules:
            requirements[package] = rules
    return requirements


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (STACKS / "stacks").iterdir())
)
def test_the_stacks_of_spacks_own_caches(name: str) -> None:
    """Real environments have the specs and requirements that Spack 1.1 reads from
    them.
    """
    path = STACKS / "stacks" / name / "spack.yaml"
    surroundings = Surroundings(
        open_on_disk, names={**LINUX, "hostname": "x"}, env={}, variables={}
    )
    environment = read_environment(
        path.read_bytes(), str(path), surroundings=surroundings
    )
    assert all(spec.error is None for spec in environment.specs)

    # Spack 1.1 does not read an environment with groups.
    expected = EXPECTED.get(str(path.relative_to(STACKS)))
    if expected is None:
        assert len({spec.group for spec in environment.specs}) > 1
        return
    texts = [spec.text for spec in environment.specs]
    assert queries_of(texts) == queries_of(expected["specs"])
    text = path.read_text(encoding="utf-8")
    assert requirements_in(text, path, surroundings) == expected["require"]


def test_anchors_and_merge_keys() -> None:
    """Mappings that merge others have their keys, in an environment and in a file that
    it includes.
    """
    text = """
spack:
  include: [a.yaml]
  specs: [x, y, z]
  packages:
    x: &common {require: +a, buildable: true}
    y: {<<: *common}
"""
    included = (
        "packages: {z: &z {require: '@2'}, w: {<<: *z, require: '@1'}, y: {<<: *z}}"
    )
    environment = read(text, {"/e/a.yaml": included})

    assert required_texts(environment) == ["x +a", "y +a", "z@2"]


LOW = """
packages:
  x: {require: [+low, +both], 'conflict': [~a]}
  y: {require: +low}
  z: {require: [+low]}
"""
"""The scope that is included."""


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("", ["x +high +both +low", "y +high", "z +high"]),
        ("+:", ["x +high +both +low", "y +high +low", "z +high"]),
        ("-:", ["x +low +high +both", "y +low +high", "z +high"]),
        (":", ["x +high +both", "y +high", "z +high"]),
    ],
)
def test_suffixes_of_keys(suffix: str, expected: list[str]) -> None:
    """`+:` puts lists and texts before those of a lower scope, `-:` behind, and `:`
    replaces.
    """
    # Joined texts need a blank between them.
    text_of_y = "+high " if suffix else "+high"
    high = f"""
spack:
  specs: [x, y, z]
  include: [a.yaml]
  packages:
    x: {{'require{suffix}': [+high, +both]}}
    y: {{'require{suffix}': '{text_of_y}'}}
    'z:': {{require: [+high]}}
"""
    environment = read(high, {"/e/a.yaml": LOW})

    assert required_texts(environment) == expected
