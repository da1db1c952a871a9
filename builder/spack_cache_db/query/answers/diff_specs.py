"""The difference between two specs that are given by their hashes.

They may be of any package. The specs themselves differ in parts such as the version,
and their dependencies in hashes. Only indexes and mirrors have dependencies, compiler
flags and recipes; of a spec without a record, these are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from spack_cache_db.errors import counted, series
from spack_cache_db.query.answers.differences import (
    COMPARED,
    Facts,
    by_package,
    differing,
    read_facts,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.graph import (
    Node,
    read_needs,
    read_nodes,
    recorded_specs,
)
from spack_cache_db.query.stored.reach import Reach

HASH_LENGTH = 7
"""Characters of a hash in sentences and tables for people."""
MOST_NODES = 20_000
"""Maximum of dependencies that are read for both specs."""
_COLUMNS = ("of", "package", "part", "old", "new")


class ComparedSide(NamedTuple):
    """One of the two specs; `kind` is that of its node, such as `binary`."""

    hash: str
    package: str
    version: str
    kind: str

    @property
    def text(self) -> str:
        """The spec with a short hash, such as `hdf5@1.14.6/2feova4`."""
        return f"{self.package}@{self.version}/{self.hash[:HASH_LENGTH]}"


class SpecChange(NamedTuple):
    """A part in which the specs themselves differ; None if one has no value.

    Attributes:
        part: `package`, `version`, a column of the configuration, `variants`, `flags`,
            `namespace`, `recipe` or `external`.
    """

    part: str
    old: str | None
    new: str | None


class DependencyChange(NamedTuple):
    """A package of which the two specs need other specs.

    Attributes:
        of: `run` for link and run dependencies at any depth, `build` for what is only
            used to build.
        old: the specs that only the old one needs, such as `3.0.5/<hash>`.
        new: those that only the new one needs.
        changes: the parts in which these differ; none if only their own dependencies
            do, or if one side has none.
    """

    package: str
    of: Literal["run", "build"]
    old: tuple[str, ...]
    new: tuple[str, ...]
    changes: tuple[SpecChange, ...]

    @property
    def text(self) -> str:
        """How the specs differ, for people."""
        if not self.new:
            return "only needed by the first"
        if not self.old:
            return "only needed by the second"
        if not self.changes:
            return "other dependencies of its own"
        texts = []
        for part, old, new in self.changes:
            values = f"{old or 'none'} → {new or 'none'}"
            texts.append(values if part == "version" else f"{part} {values}")
        return "; ".join(texts)


@dataclass(frozen=True, slots=True)
class SpecDiff(NotebookTable):
    """The difference between two specs.

    Attributes:
        changes: the parts in which they differ.
        dependencies: the packages of which they need other specs, those to run first;
            None if the dependencies of one are not known.
        common_count: how many run-time dependencies both have; None likewise.
        notes: what could not be compared.
    """

    old: ComparedSide
    new: ComparedSide
    changes: tuple[SpecChange, ...]
    dependencies: tuple[DependencyChange, ...] | None
    common_count: int | None
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both are one spec."""
        return self.old.hash == self.new.hash

    @property
    def sentence(self) -> str:
        """The difference as one sentence, without a full stop."""
        if self.is_empty:
            return f"both are {self.old.text}"
        both = f"{self.old.text} and {self.new.text}"
        parts = [change.part for change in self.changes]
        if self.dependencies:
            count = len(self.dependencies)
            parts.append(counted(count, "dependency", "dependencies"))
        if parts:
            return f"{both} differ in {series(parts, most=len(parts))}"
        if self.dependencies is None:
            return f"{both} have one configuration"
        return f"{both} differ in nothing that this database has, but their hashes"

    @property
    def rows(self) -> Rows:
        """The rows that `diff /HASH /HASH --csv` prints."""
        records: list[dict[str, Any]] = []
        for change in self.changes:
            first = {"of": "spec", "package": self.new.package}
            records.append(first | change._asdict())
        for dependency in self.dependencies or ():
            first = {"of": dependency.of, "package": dependency.package}
            hashes = SpecChange(
                "spec", "; ".join(dependency.old), "; ".join(dependency.new)
            )
            for change in (hashes, *dependency.changes):
                records.append(first | change._asdict())
        return Rows(_COLUMNS, records)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `diff /HASH /HASH --json` prints."""
        values = asdict(self)
        values["old"] = self.old._asdict()
        values["new"] = self.new._asdict()
        values["changes"] = [change._asdict() for change in self.changes]
        if self.dependencies is not None:
            dependencies = []
            for dependency in self.dependencies:
                record = dependency._asdict()
                record["changes"] = [each._asdict() for each in dependency.changes]
                dependencies.append(record)
            values["dependencies"] = dependencies
        return values


def diff_specs(lookups: Lookups, old: int, new: int) -> SpecDiff:
    """Return the difference between two specs, given by their ids."""
    nodes = read_nodes(lookups.conn, [old, new])
    facts = read_facts(lookups, [old, new])
    old_side = _side(nodes[old])
    new_side = _side(nodes[new])
    recorded = recorded_specs(lookups.conn, dict.fromkeys([old, new]))
    unrecorded = [
        side.text
        for side, spec in ((old_side, old), (new_side, new))
        if spec not in recorded
    ]

    # The specs themselves.
    changes = list(_own_changes(facts[old], facts[new], has_records=not unrecorded))
    externals = (nodes[old].external, nodes[new].external)
    if externals[0] != externals[1]:
        changes.append(SpecChange("external", *externals))

    # Their dependencies, unless they are not known or too many.
    notes: list[str] = []
    dependencies = None
    common_count = None
    graph = read_needs(lookups, recorded, MOST_NODES)
    if unrecorded:
        # One spec may be given twice.
        lacking = " and ".join(dict.fromkeys(unrecorded))
        notes.append(
            f"the dependencies, flags and recipe of {lacking} are not known: "
            "no index or mirror in this database has a record of it"
        )
    elif graph.missing:
        notes.append("they have too many dependencies to be compared")
    else:
        reach = Reach(graph)
        common = reach.run_time(old) & reach.run_time(new)
        common_count = len(set(reach.members(common)) - {old, new})
        dependencies = tuple(_dependency_changes(lookups, reach, old, new))
    return SpecDiff(
        old_side,
        new_side,
        changes=tuple(changes),
        dependencies=dependencies,
        common_count=common_count,
        notes=tuple(notes),
    )


def _side(node: Node) -> ComparedSide:
    return ComparedSide(node.hash, node.package, node.version, node.kind)


def _own_changes(
    ours: Facts, theirs: Facts, *, has_records: bool
) -> Iterator[SpecChange]:
    """Yield the parts in which two specs differ."""
    for part in ("package", "version", *COMPARED):
        our_value = getattr(ours.configuration, part)
        their_value = getattr(theirs.configuration, part)
        if our_value != their_value:
            yield SpecChange(part, our_value or None, their_value or None)
    # Variants that only one has; patches are one of them.
    our_variants = ours.configuration.variants
    their_variants = theirs.configuration.variants
    only_ours = [text for text in our_variants if text not in their_variants]
    only_theirs = [text for text in their_variants if text not in our_variants]
    if only_ours or only_theirs:
        yield SpecChange(
            "variants", " ".join(only_ours) or None, " ".join(only_theirs) or None
        )
    # Only records have these.
    if has_records:
        for part in ("flags", "namespace", "recipe"):
            our_value = getattr(ours, part)
            their_value = getattr(theirs, part)
            if our_value != their_value:
                yield SpecChange(part, our_value or None, their_value or None)


def _dependency_changes(
    lookups: Lookups, reach: Reach, old: int, new: int
) -> Iterator[DependencyChange]:
    """Yield the packages of which two specs need other specs."""
    # What only one of them runs; then what only one of them uses to be built.
    run_sets = reach.not_in_all([reach.run_time(old), reach.run_time(new)])
    used_sets = reach.not_in_all([reach.used(old), reach.used(new)])
    run = [set(run_sets[0]) - {old}, set(run_sets[1]) - {new}]
    build = [
        set(used_sets[0]) - run[0] - {old},
        set(used_sets[1]) - run[1] - {new},
    ]
    facts = read_facts(lookups, run[0] | run[1] | build[0] | build[1])
    nodes = read_nodes(lookups.conn, facts)
    yield from _by_package(facts, nodes, "run", run)
    yield from _by_package(facts, nodes, "build", build)


def _by_package(
    facts: Mapping[int, Facts],
    nodes: Mapping[int, Node],
    of: Literal["run", "build"],
    sets: list[set[int]],
) -> Iterator[DependencyChange]:
    """Yield the packages of two sets of specs with their differences, by name."""
    ours = by_package(facts, sorted(sets[0]))
    theirs = by_package(facts, sorted(sets[1]))
    for package in sorted(ours.keys() | theirs.keys()):
        our_specs = ours.get(package, ())
        their_specs = theirs.get(package, ())
        changes: list[SpecChange] = []
        if our_specs and their_specs:
            our_facts = [facts[spec] for spec in our_specs]
            their_facts = [facts[spec] for spec in their_specs]
            differences = differing([our_facts, their_facts])
            for part, (our_value, their_value) in differences:
                # The version is the part without a name.
                changes.append(SpecChange(part or "version", our_value, their_value))
        yield DependencyChange(
            package,
            of,
            _texts(nodes, our_specs),
            _texts(nodes, their_specs),
            tuple(changes),
        )


def _texts(nodes: Mapping[int, Node], specs: Iterable[int]) -> tuple[str, ...]:
    """Return specs of one package by version and hash."""
    return tuple(f"{nodes[spec].version}/{nodes[spec].hash}" for spec in specs)
