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
        spec: the spec as it stands in the environment, or the name and version of the node.
        status: `installed`, where an installed tree has it; `binary`; or `lost`, where it has
            neither and had a binary in the baseline. Of a spec also: `near`, where leaving out one
            or two conditions finds some; `none`; `unknown`, where binaries satisfy all of it that
            the database shows; `external`, where Spack takes an external and nothing else, or an
            installation has one and no binary satisfies it; `unanswerable`. Of a node also:
            `rebuilt`, where an equivalent binary exists; `alike`, where only binaries of its
            configuration exist; `missing`.
        line: where it stands, counted from 1; 0 where it stands in no text.
        query: the spec with what is required of it, as one would ask `find`.
        configurations: how many satisfy it.
        spec_count: how many specs these have.
        configuration: the newest of them, or the nearest where there is none; that of the node.
        hash: the current spec of the newest configuration that satisfies it; that of the node.
        why: why there is none; None where there is one, or nothing can be said.
        reasons: the same in sentences, or why it cannot be answered.
        corrected: the spec to type instead.
        group: the group of specs in which it stands.
        external: the environment's external that satisfies it, or where an installation has it.
        release: the first release that has that spec, an installed tree where one has it; of a
            node without a binary, the first that has the first of `others`.
        mirror: the URL of the mirror that has it; None where nothing says it, or it is installed.
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
        """The spec; the hash of a node as well, because several may have a name and a version."""
        return self.spec if self.is_root is None else f"{self.spec}/{self.hash}"

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints of it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["why"]
        values["root"] = values.pop("is_root")
        lists = {name: [*values[name]] for name in ("reasons", "others", "differences")}
        empty = {name: values[name] or None for name in ("line", "query", "group", "external")}
        configuration = self.configuration and self.configuration._asdict()
        return values | lists | empty | {"configuration": configuration}
