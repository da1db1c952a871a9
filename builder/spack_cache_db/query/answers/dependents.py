"""The binaries that need a package at run time: the reach of a vulnerability.

For `openssl@:3.0.6`, these are the binaries that link or run, at any depth, a spec that
satisfies it. Only indexes and mirrors have dependency data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from spack_cache_db.arguments import checked
from spack_cache_db.errors import counted
from spack_cache_db.query.answers.why_not import why_in_time, why_not
from spack_cache_db.query.conditions.conditions import Condition, Conditions, Verdict
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import (
    Database,
    Lookups,
    has_records,
    opened,
)
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.graph import (
    Need,
    Node,
    externals,
    read_needing,
    read_nodes,
)
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

NO_DATA = "the database has no dependency data; build it from indexes or mirrors"
HASH_LENGTH = 7
"""Characters of a hash in a table for people."""

Status = Literal["needed", "not needed", "not satisfied", "unknown"]
"""The kinds of answers; see `Dependents`."""


class Dependent(NamedTuple):
    """A binary that needs a spec.

    Attributes:
        needs: the nearest spec that it needs, such as `openssl@3.0.5/<hash>`.
        direct: whether it links or runs that spec itself.
    """

    package: str
    version: str
    hash: str
    needs: str
    direct: bool


class NeedingPackage(NamedTuple):
    """A package with binaries that need a spec.

    Attributes:
        binaries: how many.
        direct: how many of them link or run it themselves.
    """

    package: str
    binaries: int
    direct: int


@dataclass(frozen=True, slots=True)
class Dependents(NotebookTable):
    """The binaries that link or run a spec, at any depth.

    Attributes:
        spec: the spec, with the names of the database.
        status: `needed` if a binary needs it; `not needed` if specs satisfy it and no
            binary needs one of them; `not satisfied` if no spec in the database
            satisfies it; `unknown` if nothing is found among the binaries whose
            dependencies the database has, and there are others.
        satisfying_count: how many specs satisfy it: binaries, externals, and specs that
            are known as dependencies only.
        unknown_count: how many binaries have no dependency data; None if none has.
        gone_count: how many binaries need it that their mirrors have lost; `binaries`
            leaves them out.
        binaries: the binaries, by package; within a package, in the order of `find`.
        notes: how the spec was read; why nothing satisfies it; what is not known.
    """

    spec: str
    status: Status
    satisfying_count: int
    unknown_count: int | None
    gone_count: int
    binaries: tuple[Dependent, ...]
    notes: tuple[str, ...]

    @property
    def packages(self) -> tuple[NeedingPackage, ...]:
        """The packages of the binaries, by name."""
        counts: dict[str, tuple[int, int]] = {}
        for binary in self.binaries:
            binaries, direct = counts.get(binary.package, (0, 0))
            counts[binary.package] = (binaries + 1, direct + binary.direct)
        return tuple(
            NeedingPackage(package, *numbers) for package, numbers in counts.items()
        )

    @property
    def sentence(self) -> str:
        """The answer as one sentence, without a full stop."""
        return self.in_words("binary", "binaries")

    def in_words(self, one: str, many: str) -> str:
        """Return the sentence with the words for one binary and for several: a site of
        installations has `spec` and `specs`.
        """
        if self.status == "needed":
            packages = counted(len(self.packages), "package")
            binaries = counted(len(self.binaries), one, many)
            need = "needs" if len(self.binaries) == 1 else "need"
            return f"{packages}, {binaries} {need} {self.spec}"
        if self.unknown_count is None:
            return f"what needs {self.spec} is not known: {NO_DATA}"
        if self.status == "not satisfied":
            return f"nothing in this database satisfies {self.spec}"
        satisfy = counted(self.satisfying_count, "spec satisfies", "specs satisfy")
        if self.status == "not needed":
            return f"{satisfy} {self.spec}, and no {one} needs it"
        return f"{satisfy} {self.spec}; no {one} with dependency data needs it"

    @property
    def rows(self) -> Rows:
        """The rows that `dependents --csv` prints."""
        records = [binary._asdict() for binary in self.binaries]
        return Rows(Dependent._fields, records)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `dependents SPEC --json` prints."""
        values = asdict(self)
        values["packages"] = [package._asdict() for package in self.packages]
        values["binaries"] = [binary._asdict() for binary in self.binaries]
        return values


@checked
def dependents(
    db: Database,
    spec: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
) -> Dependents:
    """Return the binaries that link or run a spec, at any depth.

    `release`, `stack` and `host` narrow the answer: see `Scope`. They do not narrow the
    specs that are needed.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        spec: in Spack's syntax, such as `openssl@:3.0.6`.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the text is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the spec; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such
            host.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(release=release, stack=stack, host=host)
    query = parse_query(spec)
    with opened(db) as lookups:
        return dependents_of(lookups, query, scope.conditions(lookups))


def dependents_of(lookups: Lookups, query: SpecQuery, scope: Conditions) -> Dependents:
    """Return the binaries in a scope that link or run what satisfies a query.

    Args:
        lookups: the database.
        query: the query, with names in any spelling.
        scope: conditions on the binaries that need it.

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    records = SpecRecords(lookups)
    question = Question(lookups, query, records=records)
    spec = spec_text(question.canonical_spec)
    if not has_records(lookups.conn):
        return Dependents(spec, "unknown", 0, None, 0, (), ())

    # The specs that satisfy it, of any kind, and what needs them.
    satisfying = records.satisfying(question.conditions).matching
    needs = read_needing(lookups.conn, satisfying)
    needing = (*scope, _among(needs.keys()))
    lost = gone_among(lookups, needing)
    binaries = _binaries(lookups, needs, needing)
    unknown_count = _count(lookups, (*scope, _among(records.unrecorded)))

    # Say what was found, and what is not known.
    notes = list(question.notes)
    status: Status
    if binaries:
        status = "needed"
    elif not satisfying:
        status = "not satisfied"
        notes += why_in_time(why_not, question).reasons()
    elif unknown_count:
        status = "unknown"
    else:
        status = "not needed"
    if unknown_count:
        unknown = counted(unknown_count, "more binary", "more binaries")
        notes.append(f"{unknown} may need it: this database lacks their dependencies")
    if lost is not None:
        notes.append(lost.more)
    return Dependents(
        spec,
        status,
        satisfying_count=len(satisfying),
        unknown_count=unknown_count,
        gone_count=0 if lost is None else lost.count,
        binaries=binaries,
        notes=tuple(notes),
    )


def _among(specs: Any) -> Condition:
    """Return the condition that a binary is one of these specs, given by id."""
    return Condition("specs", "needs it", Verdict(frozenset(specs)))


def _binaries(
    lookups: Lookups, needs: Mapping[int, Need], conditions: Conditions
) -> tuple[Dependent, ...]:
    """Return the binaries that satisfy conditions, without those that mirrors have
    lost and those that the system provides.
    """
    # The binaries of each configuration, in the order of `find`.
    configurations = matching(lookups, conditions).ids
    specs_of = specs_in_scope(lookups.conn, configurations, conditions)
    external_specs = externals(lookups)
    specs: dict[int, Sequence[Spec]] = {}
    for key in configurations:
        specs[key] = [
            spec
            for spec in specs_of[key]
            if not spec.is_gone and spec.id not in external_specs
        ]

    # The specs that they need.
    needed = {needs[spec.id].spec for group in specs.values() for spec in group}
    nodes = read_nodes(lookups.conn, needed)
    binaries = []
    rows = configurations_by_id(lookups, configurations)
    for row in rows:
        package = row.configuration.package
        version = row.configuration.version
        for spec in specs[row.id]:
            need = needs[spec.id]
            node_text = _text(nodes[need.spec])
            binary = Dependent(package, version, spec.hash, node_text, need.is_direct)
            binaries.append(binary)
    binaries.sort(key=lambda binary: binary.package)
    return tuple(binaries)


def _text(node: Node) -> str:
    return f"{node.package}@{node.version}/{node.hash}"


def _count(lookups: Lookups, conditions: Conditions) -> int:
    """Return how many binaries satisfy conditions, one of which is on specs."""
    counts = matching(lookups, conditions).counts or {}
    return sum(counts.values())
