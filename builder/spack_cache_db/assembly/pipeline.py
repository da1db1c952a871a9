"""Builds a database, from the input's paths to the published file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly import kept_releases as history
from spack_cache_db.assembly.contradictions import problems
from spack_cache_db.assembly.counts import count
from spack_cache_db.assembly.documents import installed_releases, placed, unplaced
from spack_cache_db.assembly.ids import Numbered, number
from spack_cache_db.assembly.known_packages import (
    PackageCatalogue,
    package_catalogue,
    package_problems,
    package_rows,
)
from spack_cache_db.assembly.merge import Merge, Merged
from spack_cache_db.assembly.modules import Modules, matched
from spack_cache_db.assembly.options import Input
from spack_cache_db.assembly.output_lock import alone_at, state_of
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.rows import table_rows
from spack_cache_db.assembly.search_words import full_text
from spack_cache_db.assembly.unchanged import (
    Clock,
    begun,
    fingerprint,
    leave_out_paths,
    unchanged,
)
from spack_cache_db.assembly.workers import program_versions, read_units, uncollected
from spack_cache_db.database_file import inspect_path, require_sqlite
from spack_cache_db.errors import ArgumentError, Fault, InputError
from spack_cache_db.model import FILTERED, Problem
from spack_cache_db.releases import release_date
from spack_cache_db.schema.identity import AS_OF, COUNTED, LEFT_OUT, PATHS
from spack_cache_db.sources.facts import Origin
from spack_cache_db.sources.readers import plan

Problems = Sequence[tuple[int | str, Problem]]
"""Problems, each with the number of its document, or with the path of a file of package
data.
"""

MOST_NAMED = 5
"""Number of releases that an error lists."""


def build(inputs: Input, output: Path, *, keep_going: bool, force: bool) -> Report:
    """Build `output` (see `spack_cache_db.assembly.builds.build`)."""
    require_sqlite()
    sqlite_file.require_replaceable(output, inputs.every_path, force=force)
    inspect_file = inspect_path(output)
    sqlite_file.require_replaceable(inspect_file, inputs.every_path, force=force)
    with uncollected(), alone_at(output):
        return _build(inputs, output, keep_going=keep_going, force=force)


def _build(inputs: Input, output: Path, *, keep_going: bool, force: bool) -> Report:
    """Build `output`, which no other build writes at the same time."""
    clock = Clock()
    before = state_of(output)
    mark = None
    if inputs.snapshots.day:
        inputs = inputs._replace(paths=begun(inputs, output))
        mark = fingerprint(inputs, output)
        if mark and (report := unchanged(mark, inputs.snapshots, output, clock)):
            return report
    merged, inputs = read(inputs)
    packages = package_catalogue(merged.packages)
    faults = faults_of(merged)
    history.require_read(inputs, faults)
    if faults and not (keep_going and (merged.documents or merged.packages)):
        raise InputError(faults)
    if inputs.first and inputs.first not in merged.releases:
        examples = ", ".join(merged.releases[:MOST_NAMED])
        raise ArgumentError(
            f"first is {inputs.first!r}, expected a release, such as {examples}"
        )
    if not force:
        removed = {*merged.snapshots.removed, *merged.snapshots.drop}
        history.require_releases_kept(inputs, output, merged.releases, removed)
        if inputs.snapshots.day:
            databases = [origin.location for origin in merged.origins]
            history.require_newest_day(merged, databases, inputs.snapshots.day)
    modules = merged.modules
    if inputs.without_paths:
        leave_out_paths(merged.texts)
        modules = [*{module._replace(tree=None) for module in modules}]
    clock.stage("read")
    numbered, bytes_read, snapshots = (
        number(merged),
        merged.bytes_read,
        merged.snapshots,
    )
    loading = matched(numbered, modules)
    contradictions = problems(merged)
    notes = {
        *_notes(merged, contradictions),
        *([loading.note] if inputs.modules else []),
    }
    every: list[tuple[int | str, Problem]] = [*contradictions]
    every += [(facts.path, problem) for facts, problem in package_problems(packages)]
    every += [*refused(merged, inputs.every_path), *loading.problems]
    del merged  # Its arrays are large, and nothing needs them from here on.
    clock.stage("number")
    with sqlite_file.replacing(output) as temporary:
        counts = _fill(temporary, inputs, numbered, packages, loading, every, clock)
        del numbered  # The checks map the whole file into memory.
        sqlite_file.require_intact(temporary)
        clock.stage("check")
        counts |= {"package_entries": sum(map(len, packages.facts.values()))}
        record = {"input": mark, "day": snapshots.day, "counts": counts}
        sha256, is_same = sqlite_file.publish(
            temporary, output, {} if faults else record, before
        )
    clock.stage("publish")
    return Report(
        **counts,
        faults=faults,
        notes=tuple(sorted(notes)),
        bytes_read=bytes_read,
        file_size=output.stat().st_size,
        sha256=sha256,
        seconds=round(clock.last - clock.start, 3),
        stages=clock.stages,
        snapshots=snapshots,
        is_unchanged=is_same,
    )


@uncollected()
def check(inputs: Input) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return (faults, problems) of the input (see
    `spack_cache_db.assembly.builds.check`).
    """
    merged, inputs = read(inputs)
    located = [
        (merged.documents[document - 1].location, problem)
        for document, problem in problems(merged)
    ]
    located += [
        (facts.location, problem)
        for facts, problem in package_problems(package_catalogue(merged.packages))
    ]
    contradictions = sorted(
        Fault(location, 0, problem.message) for location, problem in located
    )
    return faults_of(merged), tuple(contradictions)


def read(inputs: Input) -> tuple[Merged, Input]:
    """Return the merged input, and the options that it is built with.

    Raises:
        InputError: there is no input, or its databases were built with options that
            differ.
    """
    merge, units, done = (
        Merge(),
        plan(inputs.paths, inputs.installations, inputs.modules),
        0,
    )

    def share(part: float) -> None:
        if inputs.progress:
            inputs.progress(done + part, len(units))

    for columns in read_units(units, inputs, share):
        merge.add(columns)
        done += 1
        share(0)
    inputs = _as_databases(inputs, merge.origins)
    merged = merge.merged(inputs.first, inputs.snapshots)
    if not (merged.documents or merged.packages or merged.faults or merged.left_out):
        raise InputError(
            Fault(path, 0, "contains no file, expected pages or indexes")
            for path in inputs.every_path
        )
    installed = installed_releases(merged.documents)
    if not merged.faults:
        message = "is not an installation, expected a folder with .spack-db/index.json"
        missing = (path for name, path in inputs.installations if name not in installed)
        merged.faults.extend(Fault(path, 0, message) for path in missing)
        merged.faults.extend(unplaced(inputs.modules, installed))
    merged.modules[:] = placed(merged.modules, installed)
    return merged, inputs


def _as_databases(inputs: Input, origins: Sequence[Origin]) -> Input:
    """Return the options; options that are not set come from the input's databases."""
    origins = sorted(origins, key=lambda origin: origin.location)
    names = {*inputs.recipes, *(name for origin in origins for name in origin.recipes)}
    recipes = {
        name: inputs.recipes.get(name)
        or _agreed(
            f"--recipes {name}=",
            [
                (url, origin.location)
                for origin in origins
                if (url := origin.recipes.get(name))
            ],
        )
        for name in names
    }
    firsts = [(origin.first, origin.location) for origin in origins if origin.first]
    return inputs._replace(
        first=inputs.first or (_agreed("--first ", firsts) if firsts else None),
        recipes=recipes,
        without_paths=inputs.without_paths
        or any(origin.without_paths for origin in origins),
    )


def _agreed(option: str, values: Sequence[tuple[str, str]]) -> str:
    """Return the value of an option, of values and their databases; `InputError` if
    they differ.
    """
    value, location = values[0]
    if other := next((path for different, path in values if different != value), None):
        message = f"was built with another {option}… than {location}; give that option"
        raise InputError([Fault(other, 0, message)])
    return value


def faults_of(merged: Merged) -> tuple[Fault, ...]:
    """Return the faults of the input, sorted, without duplicates."""
    return tuple(
        sorted({*merged.faults, *(refusal.fault for refusal in merged.refusals)})
    )


def _notes(
    merged: Merged, contradictions: Iterable[tuple[int, Problem]]
) -> Iterator[str]:
    """Yield the number of binaries that the filters of each mirror leave out, in
    words.
    """
    databases = tuple(f"{origin.location}/" for origin in merged.origins)
    for document, problem in contradictions:
        location = merged.documents[document - 1].location
        if problem.code == FILTERED and not location.startswith(databases):
            yield f"{location}: {problem.message}"


def refused(merged: Merged, paths: Iterable[str]) -> Problems:
    """Return a problem for each document that is left out, with its path within the
    input.
    """
    rows = {refusal.recorded for refusal in merged.refusals} | {*merged.left_out}
    tops = [path.rstrip(os.sep) for path in paths]
    for fault in merged.faults:
        above = [top for top in tops if f"{fault.path}/".startswith(top + os.sep)]
        top = max(above, key=len, default="")
        path = fault.path[len(top) :].lstrip(os.sep) or os.path.basename(top)  # noqa: PTH119
        line = f"line {fault.line}: " if fault.line else ""
        rows.add((path, line + fault.message))
    return [(path, Problem("refused", message)) for path, message in sorted(rows)]


def _fill(
    path: Path,
    inputs: Input,
    numbered: Numbered,
    packages: PackageCatalogue,
    modules: Modules,
    problem_rows: Problems,
    clock: Clock,
) -> dict[str, int]:
    """Write the database and return its counts."""
    with closing(sqlite_file.create(path)) as db:
        sqlite_file.insert(db, "origin", origin_rows(inputs, numbered))
        sqlite_file.insert(db, "recipes", sorted(inputs.recipes.items()))
        for table, rows in table_rows(
            numbered, count(numbered), packages, modules, problem_rows
        ):
            sqlite_file.insert(db, table, rows)
        types = dict(db.execute("SELECT types, id FROM dependency_types"))
        for table, rows in package_rows(packages, types):
            sqlite_file.insert(db, table, rows)
        clock.stage("count and insert")
        sqlite_file.index_text(db, full_text(numbered, packages))
        clock.stage("full text")
        sqlite_file.finish(db)
        clock.stage("index")
        counts = {}
        for name in (field.name for field in fields(Report) if field.name in COUNTED):
            sql = f"SELECT count(*) FROM {COUNTED[name]}"
            (counts[name],) = db.execute(sql).fetchone()
        return counts


def origin_rows(inputs: Input, numbered: Numbered) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table `origin`; `as_of` is the newest date of a source."""
    installs = numbered.texts.installs.things
    used = set(numbered.records["install"].tolist()) - {0}
    days = {(installs[number - 1].installed_at or "")[:10] for number in used}
    days |= {release_date(name) or "" for name in numbered.ids["releases"]}
    if newest := max(days, default=""):
        yield AS_OF, newest
    if inputs.first:
        yield "first", inputs.first
    if inputs.without_paths:
        yield PATHS, LEFT_OUT
    yield from program_versions().items()
