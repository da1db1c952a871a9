"""Several files in one text include each other by name."""

from __future__ import annotations

import pytest

from spack_cache_db.environments import (
    UnreadableEnvironment,
)
from spack_cache_db.environments.formats import read_environment
from tests.environments.asked import asked_text

ENVIRONMENT = "spack: {specs: [$mine], include: [../site/packages.yaml, lists.yaml, scope]}\n"
PACKAGES = "packages: {all: {require: target=zen3}}\n"
LISTS = "definitions: [{mine: [hdf5, zlib]}]\n"
SCOPE = "packages: {hdf5: {require: +mpi}}\n"


def read(text: str, path: str = "what you pasted") -> tuple[list[str], tuple[str, ...]]:
    """Return what specs are asked for with what is required of them, and the notes."""
    found = read_environment(text.encode(), path)
    return [asked_text(each) for each in found.specs], found.notes


@pytest.mark.parametrize("form", ["--- # {}", "---  #{}  ", "==> {} <=="])
@pytest.mark.parametrize("is_named", [True, False])
def test_files_include_each_other(form: str, is_named: bool) -> None:
    """In either form, in any order, with paths or with names alone; other files stay missing."""
    parts = [
        ("packages.yaml", PACKAGES),
        ("x/lists.yaml", LISTS),
        ("scope/packages.yaml", SCOPE),
        ("scope/more.yaml", "packages: {zlib: {require: +wrong}}\n"),
        ("spack.yaml", ENVIRONMENT.replace("scope]", "scope, other.yaml]")),
    ]
    text = "".join(f"{form.format(name)}\n{part}" for name, part in parts[:-1])
    last = parts[-1][1]
    text = text + form.format("spack.yaml") + "\n" + last if is_named else last + text

    specs, notes = read(text)

    assert specs == ["hdf5 +mpi", "zlib target=zen3"]
    assert notes[0].startswith("one include is missing") and notes[0].endswith("other.yaml")


def test_a_fault_is_in_its_file() -> None:
    """Messages name the file of the text, and the line in it."""
    text = f"--- # spack.yaml\n{ENVIRONMENT}--- # lists.yaml\n\ndefinitions: 1\n"
    with pytest.raises(UnreadableEnvironment) as caught:
        read(text)
    assert "lists.yaml:2: " in str(caught.value)
