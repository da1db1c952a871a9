"""The configurations that satisfy a spec, and how many binaries each release has of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from spack_cache_db.arguments import checked
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.differences import distinctions
from spack_cache_db.query.conditions.conditions import (
    OF_SPECS,
    Conditions,
    condition_value,
    only,
)
from spack_cache_db.query.match.gone import gone_counts
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, Lookups, opened
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.presence import (
    FoundSpec,
    Presence,
    found_specs,
    presence_of_configurations,
    presence_of_specs,
)
from spack_cache_db.spack.legacy import parser_of

_INSTALLED = ("is_external", "prefix", "modules", "module_tree")
"""The fields of a record that only installations have."""
PRESENCE = tuple(field.name for field in fields(Presence))
"""The fields of a record that say in which releases and stacks it is, and when."""
_WHERE = (*PRESENCE, "is_gone", *_INSTALLED)


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that satisfies a query.

    Attributes:
        package: its package; `version` to `variants` are its other columns, in normal
            form.
        spec_count: the number of its specs that satisfy query, release and stack.
        releases: all releases that have the configuration: branches, then releases and
            snapshots from new to old.
        stacks: the stacks that have it in any release, sorted, without `root`.
        first_seen: the day of the first snapshot that has it.
        last_seen: the day of the last one. If the query asks for a hash or for
            dependencies, these four are those of the specs that satisfy it.
        is_gone: whether the mirror has lost all of these specs; only a snapshot that
            `build --snapshot` made has such specs.
        is_external: whether the system provides the first of its specs.
        prefix: the folder where an installation has that spec.
        modules: the modules that load that spec.
        module_tree: the folder of modules to use first, if several have a module of
            this name.
        specs: the specs that are counted, current ones first; None without
            `with_hashes`.
    """

    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    spec_count: int
    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    is_gone: bool = False
    is_external: bool = False
    prefix: str | None = None
    modules: tuple[str, ...] = ()
    module_tree: str | None = None
    specs: tuple[FoundSpec, ...] | None = None

    @property
    def configuration(self) -> Configuration:
        """The seven fields of the configuration as one record."""
        return Configuration(*(getattr(self, name) for name in Configuration._fields))

    @property
    def hashes(self) -> tuple[str, ...] | None:
        """The hashes of the specs; None without `with_hashes`."""
        return None if self.specs is None else tuple(spec.hash for spec in self.specs)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `find --json` prints."""
        words = self.configuration._asdict()
        return words | {"spec_count": self.spec_count} | where_of(self)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the objects that `find --json --hashes` prints: one for each spec."""
        records = []
        for spec in self.specs or ():
            record = self.configuration._asdict()
            record["hash"] = spec.hash
            record |= where_of(spec)
            record["differences"] = spec.differences
            records.append(record)
        return records


def where_of(presence: Any, names: Iterable[str] = _WHERE) -> dict[str, Any]:
    """Return the fields of a presence, by their names."""
    return {name: getattr(presence, name) for name in names}


class FoundList(list[Found], NotebookTable):
    """The configurations that satisfy a query, which notebooks show as a table.

    Attributes:
        notes: how the query was read, and what the answer leaves out.
    """

    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> Rows:
        """The rows that `find --csv` prints."""
        return found_rows(self, hashes=False)

    def as_dict(self) -> list[dict[str, Any]]:
        """Return the list that `find --json` prints."""
        return [found.as_dict() for found in self]


@checked
def find(
    db: Database,
    query: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    spack: str | None = None,
    explicit: bool = False,
    stable: bool = False,
    limit: int | None = None,
    with_hashes: bool = False,
) -> FoundList:
    """Find the configurations in a database that satisfy a spec in Spack's syntax.

    `release`, `stack`, `host`, `os`, `platform`, `explicit` and `stable` narrow the
    answer: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`; `*` is any package.
        spack: the version of Spack for which the query is written, such as `0.23`; None
            for 1.0 and later.
        limit: the most records to return.
        with_hashes: also return each spec.

    Returns:
        Sorted by system and family of CPUs, Linux on x86_64 first, then by package;
        within a package, the version that Spack prefers comes first. Installed
        configurations come before all others.

    Raises:
        ArgumentError: an argument has a wrong type, or the limit is negative.
        QuerySyntaxError: the query is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such
            host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(
        release=release,
        stack=stack,
        host=host,
        os=os,
        platform=platform,
        explicit=explicit,
        stable=stable,
    )
    parsed = parser_of(spack)(query)
    with opened(db) as lookups:
        question = Question(lookups, parsed, scope.conditions(lookups))
        answer = FoundList(found_part(question, slice(limit), with_hashes=with_hashes))
        answer.notes = question.notes
        if answer:
            answer.notes += question.lost_note()
        return answer


def found_part(question: Question, part: slice, *, with_hashes: bool) -> list[Found]:
    """Return a part of the configurations that satisfy a question, with their releases
    and stacks.
    """
    lookups = question.lookups
    conditions = question.results.conditions
    rows = question.configurations(part)
    ids = [row.id for row in rows]

    # If conditions are on single specs, only these count.
    of_specs = bool(only(conditions, *OF_SPECS))
    # Installed configurations have the prefix and the modules of their first spec.
    is_of_trees = bool(lookups.trees(condition_value(conditions, "release")))
    groups: dict[int, list[Spec]] = {}
    if of_specs or is_of_trees or with_hashes:
        in_scope = specs_in_scope(lookups.conn, ids, conditions)
        groups = {key: in_scope[key] for key in ids}
    specs: dict[int, tuple[FoundSpec, ...]] = {}
    if is_of_trees or with_hashes:
        specs = _specs(lookups, groups, conditions, with_differences=with_hashes)
    if of_specs:
        presence = presence_of_specs(lookups, groups)
    else:
        presence = presence_of_configurations(lookups, ids)

    lost_counts = gone_counts(lookups, ids, conditions)
    answer = []
    for row in rows:
        values = where_of(presence[row.id], PRESENCE)
        values["is_gone"] = lost_counts[row.id] == row.spec_count
        if specs:
            first = specs[row.id][0]
            values |= where_of(first, _INSTALLED)
        if with_hashes:
            values["specs"] = specs[row.id]
        answer.append(Found(*row.configuration, row.spec_count, **values))
    return answer


def _specs(
    lookups: Lookups,
    groups: Mapping[int, Sequence[Spec]],
    conditions: Conditions,
    *,
    with_differences: bool,
) -> dict[int, tuple[FoundSpec, ...]]:
    """Return the specs of configurations with what is known of each."""
    differences: Mapping[int, tuple[str, ...]] = {}
    if with_differences:
        ids = []
        for group in groups.values():
            ids.append([spec.id for spec in group])
        differences = distinctions(lookups, ids)
    # One read for all configurations; the answer is in the order of the groups.
    every_spec = [spec for group in groups.values() for spec in group]
    release = condition_value(conditions, "release")
    found = found_specs(lookups, every_spec, release, differences)
    return {key: tuple(islice(found, len(group))) for key, group in groups.items()}


def found_rows(answer: Iterable[Found], *, hashes: bool) -> Rows:
    """Return what `find --json` and `find --csv` print: a row per configuration, or per
    spec.
    """
    if not hashes:
        columns = (*Configuration._fields, "spec_count", *_WHERE)
        return Rows(columns, [found.as_dict() for found in answer])
    columns = (*Configuration._fields, "hash", *_WHERE, "differences")
    records = []
    for found in answer:
        records += found.as_dicts()
    return Rows(columns, records)
