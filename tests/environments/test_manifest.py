"""environments.manifest: what a spack.yaml asks for, and what of it is refused by
name.
"""

from dataclasses import replace

import pytest

from spack_cache_db.environments.manifest import read_manifest
from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment


def read(text: str) -> Environment:
    """Return what the lines under `spack:` ask for."""
    inner = "".join(f"  {line}\n" for line in text.splitlines())
    return read_manifest(f"spack:\n{inner}", "spack.yaml", Limits(1000))


def test_specs_are_asked_as_they_stand() -> None:
    """Each has its text and line; what does not concern specs is not looked at."""
    found = read(
        "view: true\nspecs:\n- hdf5 +mpi\n-\n- zlib@1.3\nconcretizer: {unify: true}"
    )

    assert [(user_spec.text, user_spec.line) for user_spec in found.specs] == [
        ("hdf5 +mpi", 4),
        ("zlib@1.3", 6),
    ]
    assert found.notes == ()


@pytest.mark.parametrize("text", ["spack:\n", "spack: {}\n", "env:\n  specs: []\n"])
def test_an_environment_without_specs(text: str) -> None:
    """It asks for nothing, which is no fault."""
    assert read_manifest(text, "spack.yaml", Limits(10)) == Environment()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("include: other.yaml", "spack.yaml:2: expected a list of paths"),
        ("specs:\n- {group: g, rows: [x]}", "spack.yaml:3: rows: is an unknown key"),
        ("definitions:\n- {a: [x], b: [y]}", "spack.yaml:3: has 2 names, expected one"),
        ("specs:\n- [hdf5]", "spack.yaml:3: expected a spec as text"),
        ("specs:\n- $none", r"spack.yaml:3: \$none names a list that is not defined"),
        (
            "packages:\n  all:\n    require: '+'",
            "spack.yaml:4: '\\+' is not a spec: at column 1",
        ),
        (
            "packages:\n  all:\n    require:\n    - {message: x}",
            "the key spec or one_of or any_of",
        ),
        (
            "packages:\n  x:\n    require:\n    - x@1: +y",
            "of 'x@1: \\+y': put the spec in quotes",
        ),
        (
            "packages:\n  all:\n    conflict:\n    - {when: x}",
            "expected a conflict with the key spec",
        ),
        ("specs: [a]\nspecs: [b]", "spack.yaml:3: a second key specs, expected one"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    """What would change the answer and is not read is refused by name, with its
    line.
    """
    with pytest.raises(UnreadableEnvironment, match=said):
        read(text)


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("f(os)", "(line 4 calls f, which is not evaluated)"),
        ("platform ==", "(line 4 is not an expression)"),
        ("env['NO'] == 'x'", ""),
        ("re.search('(a?)*b', os)", "which is not evaluated)"),
    ],
)
def test_a_condition_that_is_not_evaluated_is_named(when: str, reason: str) -> None:
    """A definition whose `when:` is not evaluated is left out with a note, or is a
    fault.
    """
    text = f"spack:\n  definitions:\n  - a: [x]\n    when: {when!r}\n  specs: [$a, y]\n"
    around = Surroundings(names={"os": "rhel8"})
    found = read_environment(text.encode(), "spack.yaml", surroundings=around)

    assert [spec.text for spec in found.specs] == ["y"]
    (note,) = found.notes
    assert note.startswith("definitions: left out, because their when: is unknown: a")
    assert reason in note
    with pytest.raises(
        UnreadableEnvironment, match="left out, because their when: is unknown"
    ):
        strict = replace(around, is_strict=True)
        read_environment(text.encode(), "spack.yaml", surroundings=strict)


def test_all_faults_are_told() -> None:
    """They are collected and stand in the order of their lines."""
    with pytest.raises(UnreadableEnvironment) as error:
        read(
            "specs:\n- $none\ninclude: x\npackages: [y]\ndefinitions:\n- {a: [], b: []}"
        )

    assert [fault.line for fault in error.value.faults] == [3, 4, 5, 7]


def test_what_is_left_aside_is_said() -> None:
    """Preferences and developed packages have notes."""
    notes = read(
        "specs: [hdf5]\n"
        "packages:\n"
        "  all: {target: [zen3], providers: {mpi: [openmpi]}}\n"
        "  hdf5: {prefer: ['+mpi'], variants: +cxx}\n"
        "  openmpi: {require: '@4', externals: [{spec: openmpi@4, prefix: /usr}]}\n"
        "develop: {hdf5: {spec: hdf5@develop}}\n"
    ).notes

    assert [note.partition(":")[0] for note in notes] == ["packages", "develop"]
    assert "packages: target, variants, providers" in notes[0]


def test_ignored_preferences_of_a_group_have_a_note() -> None:
    """They are named together with those of the environment."""
    group = "{group: g, specs: [hdf5], override: {packages: {hdf5: {variants: +cxx}}}}"
    (note,) = read(f"specs: [{group}]").notes
    assert note.startswith("packages: variants: preferences exclude no binary")

    packages = "packages: {all: {target: [zen3]}}"
    (note,) = read(f"specs: [zlib, {group}]\n{packages}").notes
    assert note.startswith("packages: target, variants: preferences")


@pytest.mark.parametrize(
    ("spec", "external", "is_buildable"),
    [
        ("cray-mpich", "cray-mpich@8.1.25 %gcc@12.2.0", False),
        ("cray-mpich@8.1.26", "cray-mpich@8.1.26", False),
        ("cray-mpich@9", "", False),
        ("cray-mpich +wrappers", "cray-mpich@8.1.25 +wrappers %gcc@12.2.0", False),
        ("cuda", "cuda@11.8.0", True),
    ],
)
def test_externals(spec: str, external: str, is_buildable: bool) -> None:
    """A spec knows the external that satisfies it, and whether Spack may build it
    instead.
    """
    (found,) = read(
        f"specs: ['{spec}']\n"
        "packages:\n"
        "  all: {buildable: False}\n"
        "  cuda: {buildable: true, externals: [{spec: cuda@11.8.0, prefix: /cuda}]}\n"
        "  cray-mpich:\n"
        "    externals:\n"
        "    - {spec: 'cray-mpich@8.1.25 %gcc@12.2.0', prefix: /a}\n"
        "    - {spec: cray-mpich@8.1.26, prefix: /b}\n"
    ).specs

    known = external.replace(" +wrappers", "")
    assert (found.external, found.is_buildable) == (known, is_buildable)


def texts(definitions: str, specs: str, most: int = 1000) -> list[str]:
    """Return the specs that a list stands for; both are written in YAML's short
    form.
    """
    text = f"spack:\n  definitions: {definitions}\n  specs: {specs}\n"
    return [
        user_spec.text
        for user_spec in read_manifest(text, "spack.yaml", Limits(most)).specs
    ]


@pytest.mark.parametrize(
    ("definitions", "specs", "said"),
    [
        ("[]", "[{matrix: [[x, '+'], [y]]}]", "'\\+' is not a spec"),
        ("[]", "[{matrix: [[x]], exclude: ['@']}]", "'@' is not a spec"),
        ("[]", "[{rows: [[x]]}]", "rows: is an unknown key"),
        (
            "[]",
            "['hdf5@1.14': +mpi]",
            "a mapping of 'hdf5@1.14: \\+mpi': put the spec in quotes",
        ),
        ("[]", "[{matrix: [[x]], exclude: [x@1: +y]}]", "put the spec in quotes"),
        ("[]", f"[{{matrix: [[x]], exclude: [{'x, ' * 201}]}}]", "excludes 201 specs"),
        ("[]", "[&m {matrix: [[*m]]}]", "contains itself"),
        ("[]", "[&g {group: g, specs: [*g]}]", "contains itself"),
        ("[{a: [$b]}, {b: [x]}]", "[]", "not defined above"),
    ],
)
def test_lists_that_are_refused(definitions: str, specs: str, said: str) -> None:
    """What is no list of specs is refused by name."""
    with pytest.raises(UnreadableEnvironment, match=said):
        texts(definitions, specs)


def test_a_row_that_contradicts_itself_is_no_fault() -> None:
    """Rows of a matrix that exclude each other are told of that spec, others are
    answered.
    """
    text = "spack: {specs: [{matrix: [[x@1, x@2], ['@1', target=zen3]]}]}"
    found = read_manifest(text, "-", Limits(10)).specs

    assert [user_spec.error is None for user_spec in found] == [True, True, False, True]
    assert found[2].error == "the versions @2 and @1 exclude each other"
