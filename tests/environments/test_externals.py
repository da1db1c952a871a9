"""environments.externals: which specs an external of `packages:` satisfies."""

import json
from typing import Any

import pytest

from spack_cache_db.environments.model import UnreadableEnvironment, UserSpec
from spack_cache_db.environments.reading import read_environment


def read(spec: str, externals: list[dict[str, Any]], **packages: Any) -> UserSpec:
    """Return a spec of an environment whose package `app` has externals."""
    entry = {"externals": externals, "buildable": False}
    environment = {"specs": [spec], "packages": {"app": entry, **packages}}
    (found,) = read_environment(json.dumps({"spack": environment}).encode(), "-").specs
    return found


@pytest.mark.parametrize(
    ("external", "spec", "is_met"),
    [
        ("app@1.2", "app", True),
        ("app@1.2", "app@1", True),
        ("app@1.2", "app@2", False),
        ("app@1.2", "app+x", True),
        ("app@1.2~x", "app+x", False),
        ("app@1.2 os=debian12", "app os=rhel8", False),
        ("app@1.2 target=x86_64", "app target=zen3", False),
        # An external without a compiler leaves it open.
        ("app@1.2", "app%gcc", True),
        ("app@1.2 %gcc@9.4.0", "app%gcc@9", True),
        ("app@1.2 %gcc@9.4.0", "app%gcc@13", False),
        ("app@1.2 %gcc@9.4.0", "app%nvhpc", False),
        ("app@1.2 %gcc@9.4.0", "app%c=gcc", True),
        ("app@1.2 %gcc@9.4.0", "app%c", True),
        ("app@1.2 %gcc@9.4.0", "app%c=clang", False),
        ("app@1.2 %gcc@9.4.0", "app%c,cxx=gcc@10", False),
        ("app@1.2 %c,cxx=gcc@9.4.0", "app%cxx=gcc", True),
        ("app@1.2 %c=gcc@9.4.0", "app%fortran=gcc", False),
        ("app@1.2 %clang@17", "app%llvm", True),
        ("app@1.2 %oneapi@2024", "app%intel-oneapi-compilers", True),
        # One without dependencies has none.
        ("app@1.2", "app^openmpi@5", False),
        ("app@1.2", "app^mpi", False),
        ("app@1.2 %gcc@9.4.0", "app^openmpi", False),
        ("app@1.2 %gcc@9.4.0", "app^gcc@9", True),
        ("app@1.2 ^openmpi@5", "app^openmpi", True),
        ("app@1.2 ^openmpi@5", "app^openmpi@4", False),
    ],
)
def test_what_an_external_satisfies(external: str, spec: str, is_met: bool) -> None:
    """Its own properties, compilers and dependencies count; parts that it leaves open
    do not.
    """
    found = read(spec, [{"spec": external, "prefix": "/opt"}])

    assert bool(found.external) == is_met
    assert found.is_buildable is False


@pytest.mark.parametrize(
    ("spec", "is_met"),
    [
        ("app^mpi", True),
        ("app^openmpi@5", True),
        ("app^mpich", False),
        ("app%gcc", False),
    ],
)
@pytest.mark.parametrize(
    "dependency",
    [
        {"spec": "openmpi@5", "virtuals": "mpi"},
        {"id": "own-mpi", "virtuals": "mpi, fortran-mpi"},
    ],
)
def test_the_dependencies_of_an_external(
    dependency: dict[str, str], spec: str, is_met: bool
) -> None:
    """They are named by a spec, or by the id of another external."""
    openmpi = {"externals": [{"spec": "openmpi@5", "prefix": "/mpi", "id": "own-mpi"}]}
    external = {"spec": "app@1", "prefix": "/opt", "dependencies": [dependency]}

    assert bool(read(spec, [external], openmpi=openmpi).external) == is_met


def test_externals_are_kept_as_they_are_declared() -> None:
    """Spec, prefix and modules of each, by package, in order."""
    externals: list[dict[str, Any]] = [
        {"spec": "app@1.2", "prefix": "/a", "modules": ["gnu", "app/1.2"]},
        {"spec": "@2"},
    ]
    rules = read("app", externals).reuse

    first, second = rules.externals["app"]
    assert (first.prefix, first.modules) == ("/a", ("gnu", "app/1.2"))
    assert first.query.text == "app@1.2"
    assert second.prefix is None
    assert second.written.name == "app"


@pytest.mark.parametrize(
    ("external", "message"),
    [
        ({"prefix": "/opt"}, "expected the key spec:"),
        (
            {"spec": "app@1", "dependencies": [{"virtuals": "mpi"}]},
            "with the key id or spec",
        ),
        ({"spec": "app@@"}, "is not a spec"),
    ],
)
def test_an_external_that_cannot_be_read(
    external: dict[str, Any], message: str
) -> None:
    """The fault says what is missing."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read("app", [external])
