"""cli.find: what is printed for people and for programs."""

from __future__ import annotations

from spack_cache_db.cli.find import find_table
from spack_cache_db.query.answers import Found
from spack_cache_db.query.catalogue import FoundSpec
from spack_cache_db.records import Configuration

OLD = ("develop-2025-01-05",)
SPECS = (
    FoundSpec(("develop", *OLD), ("e4s",), OLD[0][-10:], OLD[0][-10:], "a" * 32),
    FoundSpec(("develop",), (), None, None, "b" * 32),
)
FOUND = [
    Found(
        *Configuration(
            "zlib", version, "gcc@13.2.0", "rhel8", "linux", "zen3", ("+shared", "~pic")
        ),
        spec_count=2,
        releases=("develop", *OLD),
        stacks=("e4s",),
        first_seen="2025-01-05",
        last_seen="2025-01-05",
        specs=SPECS,
    )
    for version in ("1.3", "1.2")
]


def test_a_table_of_configurations() -> None:
    """What all rows share stands above; a row counts its specs and says where they are."""
    assert [*find_table(FOUND, hashes=False)] == [
        "2 configurations, 4 specs",
        "all: zlib gcc@13.2.0 rhel8 linux zen3 +shared ~pic",
        "",
        "version  specs  last seen   releases    stacks",
        "1.3      2      2025-01-05  develop +1  e4s",
        "1.2      2      2025-01-05  develop +1  e4s",
    ]


def test_a_table_of_specs() -> None:
    """A row for each spec says where that spec is."""
    lines = [*find_table(FOUND, hashes=True)]

    assert [line.split() for line in lines[3:6]] == [
        ["version", "hash", "last", "seen", "releases", "stacks"],
        ["1.3", "a" * 32, "2025-01-05", "develop", "+1", "e4s"],
        ["1.3", "b" * 32, "-", "develop", "-"],
    ]
