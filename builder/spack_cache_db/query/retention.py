"""Which binaries of a mirror rules keep, with everything that these need at run time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from spack_cache_db.arguments import AnyPath, checked_file
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.errors import ArgumentError
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.configurations import IN_STACK
from spack_cache_db.query.coverage import Cover, cover_environment
from spack_cache_db.query.covered_spec import CoveredSpec
from spack_cache_db.query.database import Database, Lookups, opened, select, select_in
from spack_cache_db.query.graph import externals, read_nodes, read_run_time
from spack_cache_db.query.names import known_names, scope_of
from spack_cache_db.row_forms import Rows
from spack_cache_db.spack.versions import preference

WITH_HASHES = "SELECT id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"
LISTED = f"""
SELECT spec, max(CASE
  WHEN trim(size, '0123456789') = '' AND length(size) BETWEEN 1 AND 18 THEN CAST(size AS INTEGER)
END)
FROM listings
WHERE (:release IS NULL OR release = :release) AND {IN_STACK.format("listings")}
  AND (:releases IS NULL OR release IN (SELECT value FROM json_each(:releases)))
GROUP BY spec
"""
# Spack installs a spliced spec from the binary of its build spec (Spack 1.2, `installer.py`).
BUILD_SPECS = """
SELECT DISTINCT build_spec FROM splices WHERE spec IN (SELECT value FROM json_each(:ids))
"""


class RetainedBinary(NamedTuple):
    """A binary of a mirror; `reason` is the first rule that keeps it, None if it can be pruned."""

    hash: str
    package: str
    version: str
    reason: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Retention:
    """The binaries of a mirror, by whether a rule keeps them.

    Attributes:
        binaries: all of them, first those of `prune`, by package and version.
        keep: the hashes that a rule keeps, or that a kept binary needs at run time, sorted.
        prune: the other hashes, sorted.
        missing: the hashes that are locked, or would be needed to run, without a binary, sorted.
        unmet: the specs that neither a hash of `keep` nor an external satisfies, in order.
        notes: what of the environments was left aside, and why.
        freed_bytes: the size of the binaries of `prune`, as far as it is known.
        unknown_sizes: how many of them have a size that no source gives.
    """

    binaries: tuple[RetainedBinary, ...]
    keep: tuple[str, ...]
    prune: tuple[str, ...]
    missing: tuple[str, ...]
    unmet: tuple[str, ...]
    notes: tuple[str, ...]
    freed_bytes: int
    unknown_sizes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the lists and numbers as an object of JSON, without `binaries`."""
        return {name: value for name, value in asdict(self).items() if name != "binaries"}

    @property
    def rows(self) -> Rows:
        """The binaries, as `retention --csv` prints them."""
        return Rows(RetainedBinary._fields, [each._asdict() for each in self.binaries])


def retention(
    db: Database,
    environments: Iterable[AnyPath] = (),
    *,
    release: str | None = None,
    stack: str | None = None,
    newest: int | None = None,
    newer_than: str | int | None = None,
    keep_stacks: Iterable[str] = (),
) -> Retention:
    """Return what a mirror has to keep, and what it could lose; a binary is kept by any rule.

    Every node of a `spack.lock` is kept. Of a `spack.yaml` or a list, the binary that `cover` names
    for each spec is kept. So is everything that a kept binary needs at run time, where the database
    has dependencies.

    Do not prune while `unmet` has specs: `prune` may have binaries that they were meant to keep.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        environments: the paths of environments.
        release: the mirror's release, if the database has others.
        stack: the mirror's stack.
        newest: the binaries of so many versions of each package are kept, the newest ones.
        newer_than: the binaries of snapshots since this day (`2026-11-25`) are kept, or since so
            many days before the newest snapshot; and those of all releases without a date.
        keep_stacks: the binaries in these stacks are kept.

    Raises:
        ArgumentError: an argument has a wrong type, or the release is needed and missing.
        UnreadableEnvironment: an environment cannot be read.
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database was not made by this builder.
    """
    paths = [checked_file("environments", path) for path in environments]
    with opened(db) as lookups:
        known = known_names(lookups)
        read = [read_environment_file(path, known=known) for path in paths]
        scope = scope_of(lookups, release, stack)
        covers = [cover_environment(lookups, environment, scope) for environment in read]
        return retained(lookups, covers, scope, newest, newer_than, keep_stacks)


def retained(
    lookups: Lookups,
    covers: Sequence[Cover],
    scope: Conditions,
    newest: int | None = None,
    newer_than: str | int | None = None,
    keep_stacks: Iterable[str] = (),
) -> Retention:
    """Return which binaries the answers for some environments keep, and rules; see `retention`."""
    release, stack = (asked(scope, kind) for kind in ("release", "stack"))
    if release is None and lookups.trees() and not lookups.is_installed:
        raise ArgumentError(
            "this database has installed trees beside build caches, and a spec that is installed "
            "keeps no binary of a mirror: give the mirror's release (--release, or release=)"
        )
    conn, answers = lookups.conn, [answer for found in covers for answer in found.specs]
    named = {answer.hash for answer in answers if answer.hash and answer.status != "external"}
    locked = [key for (key,) in select(conn, WITH_HASHES, hashes=json.dumps(sorted(named)))]
    place: dict[str, Any] = {"release": release, "stack": stack, "releases": None}
    provided = externals(lookups)
    sizes = {key: size for key, size in select(conn, LISTED, **place) if key not in provided}
    reasons = dict.fromkeys(locked, "environment")

    def keep(reason: str, specs: Iterable[int]) -> None:
        reasons.update({key: reason for key in specs if key in sizes and key not in reasons})

    for name in keep_stacks:
        kept = place | {"stack": asked(scope_of(lookups, stack=name), "stack")}
        keep("stack", (key for key, _ in select(conn, LISTED, **kept)))
    if newer_than is not None:
        since = _first_day(lookups, newer_than)
        days = {key: each.date or since for key, each in lookups.releases.items()}
        kept = place | {"releases": json.dumps([key for key in days if days[key] >= since])}
        keep("snapshot", (key for key, _ in select(conn, LISTED, **kept)))
    if newest is not None:
        keep("newest", _of_newest(lookups, sizes, newest))
    needed = {*read_run_time(lookups, reasons).edges}
    needed |= {key for (key,) in select_in(conn, BUILD_SPECS, needed)}
    reasons = dict.fromkeys(needed, "needed") | reasons
    nodes = read_nodes(conn, {*sizes, *reasons})
    missing = named - {nodes[key].hash for key in sizes}
    missing |= {
        nodes[key].hash for key in reasons if key not in sizes and nodes[key].kind != "external"
    }
    binaries = tuple(
        RetainedBinary(node.hash, node.package, node.version, reasons.get(key), sizes[key])
        for key, node in sorted(nodes.items(), key=lambda pair: (pair[0] in reasons, pair[1][1:3]))
        if key in sizes
    )
    hashes = {each.hash for each in binaries if each.reason}
    pruned = [each for each in binaries if not each.reason]
    return Retention(
        binaries,
        tuple(sorted(hashes)),
        tuple(sorted(each.hash for each in pruned)),
        tuple(sorted(missing)),
        (
            *(answer.title for answer in answers if not is_met(answer, hashes)),
            *(line for found in covers for line in found.others),
        ),
        tuple(dict.fromkeys(note for found in covers for note in found.notes)),
        sum(each.size or 0 for each in pruned),
        sum(each.size is None for each in pruned),
    )


def _of_newest(lookups: Lookups, specs: Iterable[int], most: int) -> Iterator[int]:
    """Yield the specs of the newest versions of each package."""
    configuration = lookups.column("specs", "configuration")
    package = lookups.column("configurations", "package")
    version = lookups.column("configurations", "version")
    found: dict[int, dict[int, list[int]]] = {}
    for key in specs:
        of = configuration[key]
        found.setdefault(package[of], {}).setdefault(version[of], []).append(key)
    lookups.learn({key for versions in found.values() for key in versions}, set())
    names = lookups.words["version"]
    for versions in found.values():
        for key in sorted(versions, key=lambda key: preference(names[key]))[-most:]:
            yield from versions[key]


def _first_day(lookups: Lookups, newer_than: str | int) -> str:
    """Return the first day of the snapshots that are kept."""
    days = [each.date for each in lookups.releases.values() if each.date]
    try:
        if isinstance(newer_than, str):
            return date.fromisoformat(newer_than).isoformat()
        if days:
            return (date.fromisoformat(max(days)) - timedelta(newer_than)).isoformat()
        expected = "a day such as 2026-11-25: the database has no snapshot to count days from"
    except (ValueError, OverflowError):
        expected = "a day such as 2026-11-25, or days before the newest snapshot"
    raise ArgumentError(f"newer_than is {newer_than!r}, expected {expected}")


def is_met(answer: CoveredSpec, kept: Set[str]) -> bool:
    """Return whether one of the hashes kept, or an external, satisfies the spec of an answer."""
    is_provided = answer.external != ""
    return answer.hash in kept or is_provided or answer.status == "external"
