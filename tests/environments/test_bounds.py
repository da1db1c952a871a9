"""What an environment multiplies: bounded before it is made."""

import json
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest

from spack_cache_db.environments.model import Environment, Limits, UnreadableEnvironment
from spack_cache_db.environments.pasted import text
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.environments.user_specs import read_user_spec

SITE = Limits(specs=1_000, nodes=5_000, length=4_096)
MOST_MEMORY = 2**26
REQUEST = 32_768
"""Characters of the longest address that a server takes."""


def peak(text: str, limits: Limits = SITE) -> tuple[Environment | None, int]:
    """Return what an environment asks for, None if it is refused; and the bytes that it
    took.
    """
    environment = None
    tracemalloc.start()
    try:
        with suppress(UnreadableEnvironment):
            environment = read_environment(text.encode(), "x", limits)
        _, most_memory = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return environment, most_memory


def manifest(specs: Any, definitions: Any = (), packages: Any = None) -> str:
    """Return a `spack.yaml`."""
    return json.dumps(
        {
            "spack": {
                "specs": specs,
                "definitions": list(definitions),
                "packages": packages or {},
            }
        },
        separators=(",", ":"),
    )


def doublings(first: Any, count: int) -> list[dict[str, Any]]:
    """Return definitions of which each stands twice in the next."""
    names = [f"d{number}" for number in range(count)]
    following = ({b: [f"${a}", f"${a}"]} for a, b in pairwise(names))
    return [{names[0]: [first]}, *following]


def options(count: int, text: str = "v{}=a") -> list[str]:
    """Return so many different specs."""
    return [text.format(number) for number in range(count)]


VERSIONS = "@" + ",".join(f"{number}.1:{number}.5" for number in range(97))
OTHERS = "@" + ",".join(f"{number}.3:{number}.7" for number in range(97))
LONG_EXCLUDES = {
    "matrix": [["x " + " ".join(options(300))], options(500, "w{}=b")],
    "exclude": [" ".join(options(250)) + " +z"] * 6,
}
MANY_VERSIONS = {"matrix": [["x"], [VERSIONS] * 9, [OTHERS] * 9, ["@1:90"]]}
MANY_CONDITIONS = [
    {"spec": f"@{number}:", "when": f"@{number}:{number + 200}"}
    for number in range(600)
]
LONG_OPTIONS = [" ".join(options(9, f"+v{number}_{{}}")) for number in range(40)]


def requiring(package: str, requirements: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the section `packages:` with requirements of one package."""
    return {package: {"require": requirements}}


HOSTILE = {
    "doubled matrices": manifest(
        ["$d59"], doublings({"matrix": [["x"], ["+a", "~a"]]}, 60)
    ),
    "long excludes": manifest([LONG_EXCLUDES]),
    "version lists": manifest([MANY_VERSIONS]),
    "one of many": manifest(["a"], packages=requiring("a", [{"one_of": options(900)}])),
    "conditions": manifest(
        options(400, "a@{}"), packages=requiring("a", MANY_CONDITIONS)
    ),
    "products": manifest(["a"], packages=requiring("all", [{"one_of": LONG_OPTIONS}])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_memory_of_a_request(name: str) -> None:
    """A text that fits into a request is read, or refused with a sentence, in little
    memory.
    """
    assert len(HOSTILE[name]) <= REQUEST
    _, size = peak(HOSTILE[name])

    assert size <= MOST_MEMORY


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            manifest(
                ["$d"], [{"d": ["x"] * 40}, *[{f"e{n}": ["$d"]} for n in range(30)]]
            ),
            "repeat more than 1,000 specs: write fewer",
        ),
        (manifest([{"matrix": [["x"]] * 101}]), "has 101 rows, expected at most 100"),
        (manifest([{"matrix": [options(8), options(8)]}]), "stands for 64 specs"),
    ],
)
def test_what_multiplies_is_refused(text: str, said: str) -> None:
    """The message says what multiplies, and how much may be asked for."""
    with pytest.raises(UnreadableEnvironment, match=said):
        read_environment(text.encode(), "x", Limits(specs=50))


@pytest.mark.slow
def test_groups_with_packages_are_refused() -> None:
    """Every group has the packages of the environment as well."""
    override: dict[str, Any] = {"packages": {"a": {}}}
    groups = [
        {"group": f"g{number}", "specs": ["x"], "override": override}
        for number in range(1_001)
    ]
    text = manifest(groups, packages={f"p{number}": {} for number in range(100)})

    with pytest.raises(
        UnreadableEnvironment, match="groups repeat more than 100,000 packages"
    ):
        read_environment(text.encode(), "x")


def test_a_long_list_is_not_read_to_its_end() -> None:
    """What is more than a list may have is not parsed."""
    with (
        patch.object(text, "read_user_spec", wraps=read_user_spec) as reads,
        pytest.raises(UnreadableEnvironment, match="has more than 10 specs"),
    ):
        read_environment(b"zlib\n" * 1_000_000, "x", Limits(specs=10))

    assert reads.call_count == 11
