"""Random pages whose releases contradict each other, and what a loop over them finds."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from spack_cache_db.build.steps import build
from spack_cache_db.query.asked import matches
from spack_cache_db.records import Configuration
from spack_cache_db.site import spec_functions
from spack_cache_db.spack.query import parse_query
from tests.pagetexts import page, spec, spec_hash, write

RELEASES = ("develop", "v1.0", "develop-2025-02-02", "develop-2025-01-05")
"""In the file's order."""
STACKS = ("e4s", "ml")
Answer = dict[Configuration, set[str]]
"""Hashes by the configuration that they count for."""

CONFIGURATIONS = st.builds(
    Configuration,
    package=st.sampled_from(["aa", "bb"]),
    version=st.sampled_from(["1.0", "1.10", "2.0"]),
    compiler=st.sampled_from(["gcc@12.1.0", "none"]),
    os=st.sampled_from(["rhel8", "ubuntu22.04"]),
    platform=st.just("linux"),
    target=st.sampled_from(["x86_64_v3", "zen2"]),
    variants=st.sampled_from([("+x",), ("+x", "k=a,b"), ("~x",), ()]),
)


@dataclass(frozen=True)
class Listing:
    """What one release's page says of one spec."""

    release: str
    dag_hash: str
    configuration: Configuration
    stacks: tuple[str, ...]


@st.composite
def listings(
    draw: st.DrawFn, configurations: st.SearchStrategy[Configuration] = CONFIGURATIONS
) -> list[Listing]:
    """Draw a few specs in a few releases; half of them are what they are elsewhere."""
    usual = draw(st.lists(configurations, min_size=5, max_size=5))
    found = [
        Listing(
            release,
            # Some hashes begin alike.
            spec_hash(32**25 * (number // 2) + number),
            draw(st.just(configuration) | st.sampled_from(usual)),
            draw(st.sampled_from([("root",), ("e4s", "root"), ("e4s", "ml", "root"), ("ml",)])),
        )
        for number, configuration in enumerate(usual)
        for release in RELEASES
        if draw(st.booleans())
    ]
    return found or [Listing("develop", spec_hash(0), usual[0], ("root",))]


QUERIES = st.builds(
    "{}{}{}{}{}{}{}".format,
    st.sampled_from(["", "", "aa", "bb"]),
    st.sampled_from(["", "", "@1", "@1.10:", "@=1.0", "@:1.10"]),
    st.sampled_from(["", "", "+x", "~x", " k=a"]),
    st.sampled_from(["", "", " os=rhel8", " os=rhel8", " os=nothing"]),
    st.sampled_from(["", "", " target=:zen2", " target=zen2"]),
    st.sampled_from(["", "", "", f" /{spec_hash(2)[:3]}", f" /{spec_hash(32**25 + 2)}"]),
    st.sampled_from(["", "", " %gcc@12", " %gcc@13"]),
).map(lambda text: text.strip() or "*")


def files(drawn: list[Listing]) -> dict[str, bytes]:
    """Return the pages that say so."""
    pages: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in drawn:
        words = each.configuration._asdict()
        package, version = words.pop("package"), words.pop("version")
        words |= {"variants": [*words["variants"]], "versions": [version]}
        detail = spec(hash=each.dag_hash, stacks=[*each.stacks], **words)
        pages.setdefault((each.release, package), []).append(detail)
    return {
        f"{release}-{package}": page(package, release, specs)
        for (release, package), specs in pages.items()
    }


@contextmanager
def opened(drawn: list[Listing]) -> Iterator[sqlite3.Connection]:
    """Build the pages and connect to the file as the site does."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "out.db")
        build([str(write(Path(folder, "pages"), **files(drawn)))], output)
        connection = sqlite3.connect(output)
        spec_functions.register(connection)
        yield connection
        connection.close()


@dataclass(frozen=True)
class Pages:
    """What a loop over the pages finds."""

    listings: list[Listing]

    def own(self) -> dict[str, Configuration]:
        """Return what each hash is: the foremost release that lists it says so."""
        found: dict[str, Configuration] = {}
        for each in sorted(self.listings, key=lambda each: RELEASES.index(each.release)):
            found.setdefault(each.dag_hash, each.configuration)
        return found

    def of(self, dag_hash: str) -> dict[str, Any]:
        """Return releases, stacks and days of a hash."""
        mine = [each for each in self.listings if each.dag_hash == dag_hash]
        releases = [name for name in RELEASES if name in {each.release for each in mine}]
        days = sorted(name[-10:] for name in releases if name.startswith("develop-"))
        return {
            "releases": tuple(releases),
            "stacks": tuple(sorted({name for each in mine for name in each.stacks} - {"root"})),
            "first_seen": days[0] if days else None,
            "last_seen": days[-1] if days else None,
        }

    def order(self, dag_hash: str) -> tuple[int, str]:
        """Return what puts the specs of a configuration in order: what is current comes first."""
        return RELEASES.index(self.of(dag_hash)["releases"][0]), dag_hash

    def answer(self, text: str, release: str | None = None, stack: str | None = None) -> Answer:
        """Return the specs that satisfy a query, by the configuration that they count for."""
        query = parse_query(text)
        if release is None:
            shown = self.own()
            stacks = {dag_hash: self.of(dag_hash)["stacks"] for dag_hash in shown}
        else:
            here = [each for each in self.listings if each.release == release]
            shown = {each.dag_hash: each.configuration for each in here}
            stacks = {each.dag_hash: each.stacks for each in here}
        found: Answer = {}
        for dag_hash, configuration in shown.items():
            if matches(query, configuration, dag_hash) and stack in (None, *stacks[dag_hash]):
                found.setdefault(configuration, set()).add(dag_hash)
        return found
