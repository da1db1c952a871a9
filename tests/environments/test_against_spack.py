"""Environments as Spack itself reads them, and as centres and projects write them."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments.model import Surroundings, UnreadableEnvironment
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.environments.rules import combinations
from spack_cache_db.spack.machine import Machine
from spack_cache_db.spack.normal_forms import PATCH_PRINTED
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery
from tests.environments.required import required_text

OF_1_2 = Path(__file__).parents[1] / "data" / "environments_1.2.json.gz"
"""Random environments with what they include, and the specs of each group in Spack
1.2.
"""

RECORDED = Path(__file__).parents[1] / "data" / "environments.json.gz"
"""Random environments, with the specs that Spack reads from each."""


def meaning(query: SpecQuery) -> Any:
    """Return what a query asks, in a form in which equal things are equal."""
    versions = None
    if query.versions is not None and query.versions.text != ":":
        versions = query.versions.parts
    variants = []
    for variant in query.variants:
        values = variant.values
        if variant.name == "patches":
            # Spack prints the beginnings of checksums.
            values = tuple(value[:PATCH_PRINTED] for value in values)
        variants.append(
            (variant.name, values, variant.kind, variant.exact, variant.propagate)
        )
    flags = [(flag.name, flag.value, flag.propagate) for flag in query.flags]
    targets = (query.target or "").split(",")
    edges = [
        (
            meaning(edge.node),
            edge.direct,
            sorted(edge.virtuals),
            sorted(edge.deptypes),
            edge.when,
            edge.propagate,
        )
        for edge in query.dependencies
    ]
    return (
        (query.name, query.namespace, query.os, query.platform, query.hash),
        versions,
        sorted(variants),
        sorted(flags),
        sorted(targets),
        sorted(edges, key=str),
    )


def read(environment: Any) -> list[Any] | None:
    """Return what each spec of an environment asks, None if one of them cannot be
    read.
    """
    try:
        found = read_environment(json.dumps(environment).encode(), "spack.yaml")
    except UnreadableEnvironment:
        return None
    if any(each.error for each in found.specs):
        return None
    return [meaning(parse_query(user_spec.text)) for user_spec in found.specs]


def test_specs_are_those_that_spack_reads() -> None:
    """Definitions, references, signs, matrices and excludes give what Spack 1.1.0
    gives.
    """
    with gzip.open(RECORDED) as file:
        recorded = json.load(file)

    assert len(recorded) > 200
    for number, each in enumerate(recorded):
        expected = [meaning(parse_query(spec)) for spec in each["specs"]]
        assert read(each["environment"]) == expected, (number, each)


def test_groups_are_those_of_spack_1_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups, includes, conditions, toolchains and signs give the specs that Spack 1.2
    gives.
    """
    monkeypatch.setenv("FOO", "1")
    monkeypatch.delenv("BAR", raising=False)
    machine = Machine(target="zen3", os="debian12", platform="linux")
    with gzip.open(OF_1_2) as file:
        recorded = json.load(file)

    assert len(recorded) > 150
    for number, case in enumerate(recorded):
        folder = tmp_path / str(number)
        monkeypatch.setenv("FOODIR", str(folder))
        for name, text in case["files"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        found: dict[str, list[Any]] = {}
        for spec in read_environment_file(folder / "spack.yaml", machine).specs:
            assert spec.error is None, (number, spec)
            assert spec.query is not None
            found.setdefault(spec.group or "default", []).append(meaning(spec.query))
        expected = {}
        for group, texts in case["groups"].items():
            expected[group] = [meaning(parse_query(text)) for text in texts]
        assert found == expected, (number, case)


WRITTEN = Path(__file__).parents[1] / "data" / "written_environments.txt"
CASES = re.findall(
    r"^=== (.+)\n((?:(?!--- asks).*\n)*)--- asks\n((?:(?!=== ).*\n)*)",
    WRITTEN.read_text("utf-8"),
    re.M,
)
HERE = {"platform": "linux", "os": "rhel8", "target": "zen3", "hostname": "login-1"}


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_an_environment_asks_what_its_author_meant(text: str, expected: str) -> None:
    """Sections of every Spack since 0.13, comments and spellings that Spack reads are
    read.
    """
    found = read_environment(
        text.encode(), "spack.yaml", surroundings=Surroundings(names=HERE, env={})
    )

    lines = []
    for spec in found.specs:
        # A spec of `packages.yaml` is a combination already.
        if spec.query is None or spec.group == "require":
            lines.append(required_text(spec))
            continue
        queries = combinations(spec.query, spec.rules)
        texts = [required_text(replace(spec, query=query)) for query in queries]
        lines.append(" or ".join(texts))
    assert "".join(f"{line}\n" for line in lines) == expected
    assert all(spec.error is None for spec in found.specs)
