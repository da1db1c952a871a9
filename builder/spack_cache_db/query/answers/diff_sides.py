"""The sides of a comparison: which specs each of them lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.match.selection import column_ids
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import IDS_AT_ONCE, select, select_in
from spack_cache_db.query.stored.binary import IN_STACK
from spack_cache_db.query.stored.configurations import OF_IDS
from spack_cache_db.schema.tables import ID_COLUMNS

LISTED = f"""
SELECT spec_id, stack_set_id FROM listings
WHERE release_id = :release AND {IN_STACK.format("listings")}"""
"""The specs of a release, and the sets of stacks that list them there."""
_IN_ARRAYS = f"""
SELECT json_group_array(spec_id), json_group_array(stack_set_id) FROM (
{LISTED}  AND spec_id > :last ORDER BY spec_id LIMIT {IDS_AT_ONCE})
"""
"""The first of these after a spec. Arrays take half of the time that rows take."""
_OF_IDS = f"\n  AND spec_id {OF_IDS}"
_OF_PACKAGES = f"""
SELECT specs.id, specs.configuration_id
FROM configurations JOIN specs ON specs.configuration_id = configurations.id
WHERE configurations.package_id {OF_IDS}
"""
"""The specs of packages, listed or not."""


@dataclass(frozen=True, slots=True)
class Side:
    """The specs that one side of a comparison lists, by their numbers (see
    `Numbering`).

    Attributes:
        stack_sets: the id of the set of stacks that list each spec.
        configuration_of: the configuration of each spec, listed or not.
        stack_names: the names in each set of stacks, by its id.
    """

    stack_sets: Mapping[int, int]
    configuration_of: Mapping[int, int] | Sequence[int]
    stack_names: Mapping[int, tuple[str, ...]]

    def configurations(self, specs: Iterable[int]) -> list[int]:
        """Return the configuration of each of some specs."""
        configuration_of = self.configuration_of
        return [configuration_of[spec] for spec in specs]


def listed_in(lookups: Lookups, side: Conditions, narrowing: Conditions) -> Side:
    """Return the specs of a side that satisfy conditions on their configurations."""
    conn = lookups.conn
    columns = column_ids(lookups, narrowing)
    packages = columns.pop("package", None)
    place: dict[str, int | None] = {}
    for kind in ("release", "stack"):
        place[kind] = condition_value((*side, *narrowing), kind)

    # A package has few of all specs: these are looked up.
    configuration_of: Mapping[int, int] | Sequence[int]
    if packages is None:
        configuration_of = lookups.column("specs", "configuration_id")
        stack_sets = _listed(lookups, place)
    else:
        configuration_of = dict(select_in(conn, _OF_PACKAGES, packages))
        rows = select_in(conn, LISTED + _OF_IDS, configuration_of, **place)
        stack_sets = dict(rows)

    # Then compare the other columns.
    for column, ids in columns.items():
        word_of = lookups.column("configurations", ID_COLUMNS[column])
        stack_sets = {
            spec: stack_set
            for spec, stack_set in stack_sets.items()
            if word_of[configuration_of[spec]] in ids
        }
    return Side(stack_sets, configuration_of, lookups.stack_sets())


def _listed(lookups: Lookups, place: Mapping[str, int | None]) -> dict[int, int]:
    """Return the set of stacks of each spec that a release, or a stack of it, lists."""
    stack_sets: dict[int, int] = {}
    last = 0
    while True:
        ((specs_text, sets_text),) = select(
            lookups.conn, _IN_ARRAYS, last=last, **place
        )
        specs = stored_json(specs_text)
        stack_sets.update(zip(specs, stored_json(sets_text), strict=True))
        if len(specs) < IDS_AT_ONCE:
            return stack_sets
        last = specs[-1]
