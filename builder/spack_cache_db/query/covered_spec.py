"""The answer for one spec of an environment, or for one node of a lockfile."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from spack_cache_db.query.explanation import WhyNot
from spack_cache_db.records import Configuration


@dataclass(frozen=True, slots=True)
class CoveredSpec:
    """The answer for one spec, or for one node of a lockfile.

    Attributes:
        spec: the spec as in the environment, or the name and version of the node.
        status: `installed` (in an installed tree), `binary`, or `lost` (neither, but a binary in
            the baseline). Specs also: `near` (binaries satisfy it without one or two conditions),
            `none`, `unknown` (binaries satisfy the conditions for which the database has data),
            `external` (Spack must use an external, or only an installation's external satisfies
            it), `unanswerable`. Nodes also: `rebuilt` (an equivalent binary exists), `alike` (only
            binaries of its configuration exist), `missing`.
        line: its line, counted from 1; 0 if it is not from a text.
        query: the spec with the environment's requirements, as a query for `find`.
        configurations: the number of configurations that satisfy it.
        spec_count: the number of specs of these.
        configuration: the newest of these, or the nearest if there is none; for a node, its own.
        hash: the current spec of the newest configuration that satisfies it; for a node, its own.
        why: why no binary satisfies it; None if one does, or the reason is unknown.
        reasons: `why` in sentences, or why it cannot be answered.
        corrected: the spec to type instead.
        group: its group of specs in the environment.
        external: the environment's external that satisfies it, or the path in an installation.
        release: the first release that has that spec, preferably an installed tree; for a node
            without a binary, the first release of the first of `others`.
        mirror: the URL of the mirror that has it; None if unknown or installed.
        is_root: whether a node is a root of the lockfile; None for a spec, which is not a node.
        others: the hashes of the first other binaries: current ones, or the most similar, first.
        other_count: the number of other binaries.
        differences: the differences between the node and the first of `others`.
    """

    spec: str
    status: str
    line: int = 0
    query: str = ""
    configurations: int = 0
    spec_count: int = 0
    configuration: Configuration | None = None
    hash: str | None = None
    why: WhyNot | None = None
    reasons: tuple[str, ...] = ()
    corrected: str | None = None
    group: str = ""
    external: str = ""
    release: str | None = None
    mirror: str | None = None
    is_root: bool | None = None
    others: tuple[str, ...] = ()
    other_count: int = 0
    differences: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The spec, with the hash of a node, because nodes may share a name and a version."""
        return self.spec if self.is_root is None else f"{self.spec}/{self.hash}"

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints for it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["why"]
        values["root"] = values.pop("is_root")
        lists = {name: [*values[name]] for name in ("reasons", "others", "differences")}
        empty = {name: values[name] or None for name in ("line", "query", "group", "external")}
        configuration = self.configuration and self.configuration._asdict()
        return values | lists | empty | {"configuration": configuration}
