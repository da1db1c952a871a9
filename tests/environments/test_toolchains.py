"""environments.requirements: names for compilers in the specs of an environment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.environments import (
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.formats import read_environment
from spack_cache_db.spack.parser import parser_of
from tests.environments.asked import asked_text

GNU = "%c,cxx=gcc@13"
EDGES = "%[virtuals=c when='%c'] llvm %[virtuals=fortran when='+f %fortran'] gcc"


def asked(specs: list[Any], toolchains: Any, **more: Any) -> list[str]:
    """Return what the specs of an environment ask for."""
    text = json.dumps({"spack": {"specs": specs, "toolchains": toolchains, **more}})
    found = read_environment(text.encode(), "-")
    return [asked_text(each) for each in found.specs]


def test_wherever_specs_stand() -> None:
    """Matrices, definitions and requirements name toolchains too; includes may define them."""
    matrix = {"matrix": [["$mine"], ["%gnu"]]}
    more = {"definitions": [{"mine": ["a", "b"]}], "packages": {"c": {"require": "%gnu"}}}
    assert asked([matrix, "c"], {"gnu": GNU}, **more) == [f"{name} {GNU}" for name in "abc"]

    files = {"/t": {"toolchains.yaml": b"toolchains: {gnu: '%gcc@12~x'}"}}
    around = Surroundings(open=files.get, parse=parser_of("0.23"))
    text = b"spack: {specs: [a %gnu +y], include: [/t]}"
    found = read_environment(text, "/e/spack.yaml", surroundings=around)
    (spec,) = found.specs
    assert asked_text(spec) == "a +y ~x %gcc@12"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toolchain", "said"),
    [
        ("%gcc ^mpi", "expected '%' alone in a toolchain"),
        ([{"when": "%c"}], "expected the key spec:"),
        ([{"spec": "@@"}], "is not a spec"),
        ([{"spec": "+a"}, {"spec": "~a"}], "exclude each other"),
        ("%c,cxx=gcc@12 %fortran=gcc@13", "exclude each other"),
        ([{"spec": f"%p{number}"} for number in range(400)], "more than 1,000 characters"),
    ],
)
def test_what_is_not_a_toolchain(toolchain: Any, said: str) -> None:
    """A toolchain that cannot be read is left out with a note; only specs that name it fail."""
    text = json.dumps({"spack": {"specs": ["b", "a %x"], "toolchains": {"x": toolchain}}})
    found = read_environment(text.encode(), "-")

    assert [each.error is None for each in found.specs] == [True, False]
    assert str(found.specs[1].error).startswith("the toolchain x cannot be read: ")
    assert said in str(found.specs[1].error)
    assert found.notes[0].startswith("toolchains: x is left out, line 1: ")
    with pytest.raises(UnreadableEnvironment, match="expected toolchains: "):
        asked(["a"], [])


def test_a_toolchain_that_does_not_fit() -> None:
    """A spec that contradicts its toolchain is told, and the others are read."""
    found = asked(["a +x %no", "b"], {"no": "~x"})
    assert "exclude each other" in found[0]
    assert found[1] == "b"
