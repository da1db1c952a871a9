"""A made-up kind of source: several packages in one file, and specs that are known, not listed.

A file is the JSON text of one document, which may tell of dependencies or not. Its reader fills
columns by itself and shares nothing with those of pages and of indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import Place, RawFile
from spack_cache_db.sources.columns import (
    TABLES,
    Document,
    IndexFacts,
    NodeFacts,
    Tarball,
    Use,
    Writer,
)
from spack_cache_db.sources.readers import Kind
from tests.configurations import configuration
from tests.pagetexts import spec_hash

SINCE_SPACK_1 = '{"annotations":{"original_specfile_version":5}}'
"""What a node says whose compiler is a dependency like others."""


def known(number: int, package: str, **changes: Any) -> dict[str, Any]:
    """Return a spec as such a document tells of it: with the configuration of `pagetexts.spec`.

    `needs` are the numbers of the specs that it depends on; without it nothing is said of them.
    """
    return {
        "hash": spec_hash(number),
        "configuration": {
            "package": package,
            "target": "x86_64_v3",
            "variants": ["build_system=cmake", "~cuda"],
        },
        "listed": True,
    } | changes


def of_target(number: int, package: str, target: str, **changes: Any) -> dict[str, Any]:
    """Return such a spec for another target."""
    spec = known(number, package, **changes)
    spec["configuration"]["target"] = target
    return spec


def document(release: str, stack: str, specs: Iterable[dict[str, Any]]) -> bytes:
    """Return a file: what one stack of a release has."""
    return json.dumps({"made up": release, "stack": stack, "specs": [*specs]}).encode()


def configuration_of(spec: dict[str, Any]) -> Configuration:
    """Return the configuration that such a document gives to a spec."""
    said = spec["configuration"]
    return configuration(**said | {"variants": tuple(said["variants"])})


class MadeUpReader:
    """Reads such files into columns."""

    def __init__(self, writer: Writer, place: Place) -> None:
        self._writer = writer

    def add(self, file: RawFile) -> None:
        """Read one file; it is refused if it is broken."""
        try:
            said = json.loads(bytes(file.data))
        except ValueError:
            raise InputError([Fault(file.location, 0, "is broken")]) from None
        texts = self._writer.texts
        listed = [each for each in said["specs"] if each["listed"]]
        others = [each for each in said["specs"] if not each["listed"]]
        telling = [each for each in said["specs"] if "needs" in each]
        facts = IndexFacts(said["stack"], "made up", None, None) if telling else None
        number = self._writer.add(
            Document(file.location, file.path, "-", said["made up"], index_facts=facts)
        )
        self._writer.append(
            "listings",
            number,
            spec=[texts.hashes[each["hash"]] for each in listed],
            configuration=[*map(self._configuration, listed)],
            stacks=[texts.stack_sets[said["stack"],]] * len(listed),
            size=[texts.sizes[each["size"]] if "size" in each else 0 for each in listed],
            tarball=[
                texts.tarballs[Tarball(*each["tarball"])] if "tarball" in each else 0
                for each in listed
            ],
        )
        self._writer.append(
            "unlisted",
            number,
            spec=[texts.hashes[each["hash"]] for each in others],
            configuration=[*map(self._configuration, others)],
        )
        self._add_graph(number, telling)

    def _add_graph(self, document: int, specs: list[dict[str, Any]]) -> None:
        texts = self._writer.texts
        node = texts.nodes[NodeFacts("builtin", None, "{}", None, None, SINCE_SPACK_1)]
        use = texts.uses[Use(("build", "link"), (), None)]
        edges = [
            (texts.hashes[each["hash"]], texts.hashes[spec_hash(needed)], use)
            for each in specs
            for needed in each["needs"]
        ]
        records = {name: [0] * len(specs) for name in TABLES["records"] if name != "document"}
        records["spec"] = [texts.hashes[each["hash"]] for each in specs]
        records["node"] = [node] * len(specs)
        self._writer.append("records", document, **records)
        spec, dependency, uses = zip(*edges, strict=True) if edges else ((), (), ())
        self._writer.append("edges", document, spec=spec, dependency=dependency, use=uses)

    def _configuration(self, spec: dict[str, Any]) -> int:
        return self._writer.texts.configurations[configuration_of(spec)]


MADE_UP = Kind(lambda data: data[:10] == b'{"made up"', MadeUpReader)
