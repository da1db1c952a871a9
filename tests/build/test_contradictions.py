"""build.contradictions: the word that is not stored is in the problem, whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.build.contradictions import contradiction, differing
from spack_cache_db.build.fold import Difference
from spack_cache_db.build.listings import Listing
from spack_cache_db.build.merge import Merge
from spack_cache_db.sources.columns import Document, Writer
from spack_cache_db.sources.tarballs import Tarball, tarball_suffix
from tests.configurations import configuration
from tests.pagetexts import spec_hash

ONE, TWO = configuration(target="zen3", variants=()), configuration(target="zen2", variants=("+x",))
AS_JSON = json.loads(json.dumps(TWO._asdict()))
URL = f"https://m{tarball_suffix(TWO)}{spec_hash(1)}.spack"


@pytest.mark.parametrize(
    ("column", "words", "declared"),
    [
        ("configuration", "target zen2, not zen3; variants +x, not without", AS_JSON),
        ("size", "2 kB, not 1 kB", "2 kB"),
        ("tarball", f"{URL}, not https://s{tarball_suffix(ONE)}{spec_hash(1)}.spack", URL),
    ],
)
def test_what_is_not_stored_is_declared(column: str, words: str, declared: Any) -> None:
    """As a value in JSON; the message names the document that is right, and has both values."""
    writer = Writer()
    texts = writer.texts
    for path, configuration_, size, prefix in (("a", ONE, "1 kB", "s"), ("b", TWO, "2 kB", "m")):
        writer.add(
            Document(f"in/{path}", path, "-", "develop"),
            spec=[texts.hashes[spec_hash(1)]],
            configuration=[texts.configurations[configuration_]],
            stacks=[texts.stack_sets[()]],
            size=[texts.sizes[size] + 1],
            tarball=[texts.tarballs[Tarball(f"https://{prefix}", is_whole=False)] + 1],
        )
    merge = Merge()
    merge.add(writer.columns)
    difference = Difference(column, Listing(1, 0, 1, 0, 2, 2), Listing(0, 0, 0, 0, 1, 1))
    found = contradiction(merge.merged(), difference)
    assert (found.code, found.message) == (
        f"two_{column}s",
        f"the spec {spec_hash(1)} has another {column} here than in a: {words}",
    )
    assert json.loads(str(found.declared)) == declared


def test_a_part_that_one_does_not_say_is_told() -> None:
    """A record may get a field that only some sources know."""
    said, stored = {"a": None, "b": "x", "c": ("+x",)}, {"a": "y", "b": "x", "c": ()}
    assert differing(said, stored) == "a None, not y; c +x, not without"
