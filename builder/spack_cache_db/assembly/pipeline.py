"""Builds a database, from the input's paths to the published file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly import kept_releases as history
from spack_cache_db.assembly import replacement
from spack_cache_db.assembly.clock import Clock
from spack_cache_db.assembly.contradictions import problems
from spack_cache_db.assembly.counts import count
from spack_cache_db.assembly.documents import (
    installed_releases,
    module_faults,
    modules_of_installations,
)
from spack_cache_db.assembly.ids import Numbered, number
from spack_cache_db.assembly.known_packages import (
    PackageCatalogue,
    package_catalogue,
    package_problems,
    package_rows,
)
from spack_cache_db.assembly.merge import Merge, Merged
from spack_cache_db.assembly.modules import Modules, match_modules
from spack_cache_db.assembly.options import BuildOptions, Input
from spack_cache_db.assembly.output_lock import FileState
from spack_cache_db.assembly.reading import read_units
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.rows import table_rows
from spack_cache_db.assembly.search_words import full_text
from spack_cache_db.assembly.unchanged import Way, record_of, without
from spack_cache_db.assembly.workers import program_versions, uncollected
from spack_cache_db.data_source import DataSource, data_source
from spack_cache_db.errors import ArgumentError, Fault, InputError
from spack_cache_db.model import FILTERED, Problem
from spack_cache_db.releases import release_date
from spack_cache_db.schema.identity import AS_OF, COUNTED, LEFT_OUT, PATHS
from spack_cache_db.sources.facts import Origin
from spack_cache_db.sources.files import File, Unit
from spack_cache_db.sources.texts import as_json
from spack_cache_db.sources.units import plan
from spack_cache_db.sources.writer import Texts

_HAS_SOURCES = """
SELECT EXISTS (SELECT 1 FROM pages)
UNION ALL SELECT EXISTS (SELECT 1 FROM releases WHERE kind = 'installed')
"""
_MIRROR_URLS = """
SELECT DISTINCT url FROM mirrors JOIN releases ON releases.id = mirrors.release_id
WHERE releases.kind <> 'installed'
"""

Problems = Sequence[tuple[int | str, Problem]]
"""Problems, each with the number of its document, or with the path of a file of package
data.
"""

MOST_NAMED = 5
"""Number of releases that an error lists."""


class Content(NamedTuple):
    """What is written into a database, and what the report says about it."""

    numbered: Numbered
    packages: PackageCatalogue
    modules: Modules
    problems: Problems
    notes: list[str]


def build(
    inputs: Input, output: Path, way: Way, clock: Clock, state_before: FileState | None
) -> Report:
    """Build a database from the sources, whether they have anything new or not.

    Args:
        inputs: the sources and options.
        output: the database, which no other build writes at the same time.
        way: how it is made, for the record that the next build compares.
        clock: the time since the beginning of the build.
        state_before: the state of the output at the beginning of the build.
    """
    # Read the sources, and merge them.
    if inputs.options.snapshot:
        inputs = inputs._replace(paths=_paths_to_read(inputs, output))
    merged, inputs, checksum = read(inputs, output)
    faults = faults_of(merged)
    _require_good(merged, inputs, faults)
    if not inputs.options.force:
        _require_history_kept(merged, inputs, output)
    clock.stage("read")

    # Give everything its final number.
    bytes_read = merged.bytes_read
    snapshots = merged.snapshots
    content = _content(merged, inputs)
    notes = sorted(set(content.notes))
    del merged  # Its arrays are large, and nothing needs them from here on.
    clock.stage("number")

    # Write the database under a temporary name, check it, and give it its name, unless
    # another program has written the output since `state_before`.
    with replacement.replacing(output) as temporary:
        counts = _write(temporary, inputs, content, clock)
        del content  # The checks map the whole file into memory.
        sqlite_file.require_intact(temporary)
        clock.stage("check")
        # What the next build compares, to see whether anything is new. Without it, the
        # next build reads all sources: it reports the faults again, and fails if it
        # is told to drop a release that the sources no longer have.
        record: dict[str, Any] = {}
        if checksum is not None and not (faults or snapshots.drop):
            record = record_of(way, checksum, counts, notes)
        sha256, is_same = replacement.publish(temporary, output, record, state_before)
    clock.stage("publish")
    return Report(
        **counts,
        faults=faults,
        notes=tuple(notes),
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
    merged = read(inputs).merged
    contradictions = []
    for document, problem in problems(merged):
        location = merged.documents[document - 1].location
        contradictions.append(Fault(location, 0, problem.message))
    for facts, problem in package_problems(package_catalogue(merged.packages)):
        contradictions.append(Fault(facts.location, 0, problem.message))
    return faults_of(merged), tuple(sorted(contradictions))


def _paths_to_read(inputs: Input, output: Path) -> list[str]:
    """Return the input paths, without the output if this is the first build of a
    history.

    So one command can be used every day: `build x.db mirror/ -o x.db --snapshot DATE`.
    """
    if os.path.exists(output):  # noqa: PTH110 - Path.exists may raise
        return inputs.paths
    paths = without(output, inputs.paths)
    if paths or inputs.options.installations:
        return paths
    # Without another input, reading reports that the output is missing.
    return inputs.paths


class ReadSources(NamedTuple):
    """The merged sources, the options that they are built with, and a checksum of all
    files but the output; None if it is not known.
    """

    merged: Merged
    inputs: Input
    checksum: int | None


def read(inputs: Input, output: Path | None = None) -> ReadSources:
    """Return the merged sources; the output may be one of them.

    Raises:
        InputError: there is no input, or its databases were built with options that
            differ.
    """
    options = inputs.options
    units = plan(inputs.paths, options.installations, options.modules)
    merge = Merge()
    checksum = _read_into(merge, units, options, output)

    # Merge them.
    options = _with_options_of_databases(options, merge.origins)
    merged = merge.merged(options.first, options.snapshots)
    if not (merged.documents or merged.packages or merged.faults or merged.left_out):
        raise InputError(
            Fault(path, 0, "contains nothing to build from, expected pages or indexes")
            for path in inputs.every_path
        )

    # Installations and modules that were named, but do not exist, are faults. Other
    # faults may be the reason why they do not exist.
    installed = installed_releases(merged.documents)
    if not merged.faults:
        message = "is not an installation, expected a folder with .spack-db/index.json"
        for name, path in options.installations:
            if name not in installed:
                merged.faults.append(Fault(path, 0, message))
        merged.faults.extend(module_faults(options.modules, installed))
    # In place, because the attributes of `Merged` cannot be assigned.
    merged.modules[:] = modules_of_installations(merged.modules, installed)
    return ReadSources(merged, inputs._replace(options=options), checksum)


def _read_into(
    merge: Merge, units: Sequence[Unit], options: BuildOptions, output: Path | None
) -> int | None:
    """Read all units into a merge; return the checksum of all but the output.

    The columns of a unit are freed when this ends, before they are merged.
    """
    units_read = 0

    def report_progress(part: float) -> None:
        """Report the part of an index that is being read."""
        if options.progress:
            options.progress(units_read + part, len(units))

    checksums = []
    all_columns = read_units(units, options, report_progress)
    for unit, columns in zip(units, all_columns, strict=True):
        merge.add(columns)
        if not _is_output(unit, output):
            checksums.append(columns.checksum)
        units_read += 1
        report_progress(0)
    return _sum(checksums)


def _is_output(unit: Unit, output: Path | None) -> bool:
    """Return whether a unit is the database that is to be replaced."""
    if output is None:
        return False
    # A database is a unit of its own. `without` compares absolute paths.
    locations = [file.location for file in unit if isinstance(file, File)]
    return len(locations) == 1 and not without(output, locations)


def _sum(checksums: Iterable[int | None]) -> int | None:
    """Return the checksum of all units; None if that of one is not known."""
    total = 0
    for checksum in checksums:
        if checksum is None:
            return None
        total += checksum
    return total


def _with_options_of_databases(
    options: BuildOptions, origins: Iterable[Origin]
) -> BuildOptions:
    """Return the options; options that are not set come from the input's databases."""
    origins = sorted(origins, key=attrgetter("location"))

    # The recipes of each namespace.
    recipes = dict(options.recipes)
    namespaces = {name for origin in origins for name in origin.recipes}
    for namespace in sorted(namespaces - recipes.keys()):
        urls = []
        for origin in origins:
            if namespace in origin.recipes:
                urls.append((origin.recipes[namespace], origin.location))
        recipes[namespace] = _agreed(f"--recipes {namespace}=", urls)

    # The first release.
    first = options.first
    firsts = [(origin.first, origin.location) for origin in origins if origin.first]
    if not first and firsts:
        first = _agreed("--first ", firsts)

    # Paths that one database lacks are left out of the others too.
    without_paths = options.without_paths
    for origin in origins:
        without_paths = without_paths or origin.without_paths
    return replace(options, first=first, recipes=recipes, without_paths=without_paths)


def _agreed(option: str, values: Sequence[tuple[str, str]]) -> str:
    """Return the value of an option in the input's databases.

    Args:
        option: the option as it is typed, up to its value, for the message: `--first `
            or `--recipes builtin=`.
        values: the value and the location of each database.

    Raises:
        InputError: the values differ.
    """
    value, location = values[0]
    for other_value, other_location in values:
        if other_value != value:
            message = (
                f"was built with another {option}… than {location}; give that option"
            )
            raise InputError([Fault(other_location, 0, message)])
    return value


def faults_of(merged: Merged) -> tuple[Fault, ...]:
    """Return the faults of the input, sorted, without duplicates."""
    faults = {*merged.faults}
    faults |= {refusal.fault for refusal in merged.refusals}
    return tuple(sorted(faults))


def _require_good(merged: Merged, inputs: Input, faults: Collection[Fault]) -> None:
    """Raise an error if the input cannot be built.

    Raises:
        ArgumentError: the first release is not a release.
        HistoryError: a database of the input cannot be read.
        InputError: the input has faults, and `keep_going` is off or nothing is left.
    """
    history.require_read(inputs, faults)
    is_empty = not (merged.documents or merged.packages)
    if faults and (is_empty or not inputs.options.keep_going):
        raise InputError(faults)
    first = inputs.options.first
    if first and first not in merged.releases:
        examples = ", ".join(merged.releases[:MOST_NAMED])
        raise ArgumentError(
            f"first is {first!r}, expected a release, such as {examples}"
        )


def _require_history_kept(merged: Merged, inputs: Input, output: Path) -> None:
    """Raise an error if a release would be lost, or a snapshot be out of order."""
    removed = {*merged.snapshots.removed, *merged.snapshots.drop}
    history.require_releases_kept(inputs, output, merged.releases, removed)
    if inputs.options.snapshot:
        databases = [origin.location for origin in merged.origins]
        history.require_newest_day(merged, databases, inputs.options.snapshot)


def _content(merged: Merged, inputs: Input) -> Content:
    """Return the merged input with final numbers, and its problems."""
    packages = package_catalogue(merged.packages)
    modules = merged.modules
    if inputs.options.without_paths:
        _leave_out_paths(merged.texts)
        # Modules that differed only in the path of their folder are the same. Their
        # order does not matter, because `match_modules` sorts them.
        modules = list({module._replace(tree=None) for module in modules})
    numbered = number(merged)
    loading = match_modules(numbered, modules)

    # The problems of documents, of package data, of refused files and of modules.
    contradictions = problems(merged)
    every_problem: list[tuple[int | str, Problem]] = list(contradictions)
    for facts, problem in package_problems(packages):
        every_problem.append((facts.path, problem))
    every_problem += refusal_problems(merged, inputs.every_path)
    every_problem += loading.problems

    notes = list(_filter_notes(merged, contradictions))
    if inputs.options.modules:
        notes.append(loading.note)
    return Content(numbered, packages, loading, every_problem, notes)


def _leave_out_paths(texts: Texts) -> None:
    """Remove the paths of installed specs and externals from the texts."""
    installs = texts.installs.things
    for at, install in enumerate(installs):
        installs[at] = install._replace(prefix=None)
    nodes = texts.nodes.things
    for at, node in enumerate(nodes):
        if node.external is not None:
            external = json.loads(node.external)
            external.pop("path", None)
            nodes[at] = node._replace(external=as_json(external))


def _filter_notes(
    merged: Merged, contradictions: Iterable[tuple[int, Problem]]
) -> Iterator[str]:
    """Yield the number of binaries that the filters of each mirror leave out, in
    words.
    """
    # The filters of mirrors in databases were reported by the build of the database.
    in_databases = tuple(f"{origin.location}/" for origin in merged.origins)
    for document, problem in contradictions:
        location = merged.documents[document - 1].location
        if problem.code == FILTERED and not location.startswith(in_databases):
            yield f"{location}: {problem.message}"


def refusal_problems(merged: Merged, paths: Iterable[str]) -> Problems:
    """Return a problem for each document that is left out, with its path within the
    input.

    Args:
        merged: the input with its refusals and faults.
        paths: the paths of the input as they were typed.
    """
    path_messages = {refusal.recorded for refusal in merged.refusals}
    path_messages |= set(merged.left_out)
    tops = [path.rstrip(os.sep) for path in paths]
    for fault in merged.faults:
        # Of `in/pages/zlib.md`, typed as `in`, the path `pages/zlib.md` is recorded; of
        # a file that was typed itself, its name.
        above = [top for top in tops if f"{fault.path}/".startswith(top + os.sep)]
        top = max(above, key=len, default="")
        path = fault.path[len(top) :].lstrip(os.sep)
        if not path:
            path = os.path.basename(top)  # noqa: PTH119
        message = fault.message
        if fault.line:
            message = f"line {fault.line}: {message}"
        path_messages.add((path, message))
    return [
        (path, Problem("refused", message)) for path, message in sorted(path_messages)
    ]


def _write(path: Path, inputs: Input, content: Content, clock: Clock) -> dict[str, int]:
    """Write the database and return the counts of its report."""
    numbered, packages, modules, every_problem, _ = content
    with closing(sqlite_file.create(path)) as db:
        # Tables. `_source` reads those of pages and mirrors, and package data refers to
        # the dependency types in theirs, so both come after them.
        sqlite_file.insert(db, "origin", origin_rows(inputs.options, numbered))
        recipes = sorted(inputs.options.recipes.items())
        sqlite_file.insert(db, "recipes", recipes)
        for table, rows in table_rows(
            numbered, count(numbered), packages, modules, every_problem
        ):
            sqlite_file.insert(db, table, rows)
        sqlite_file.insert(db, "origin", _source(db).rows())
        types = dict(db.execute("SELECT types, id FROM dependency_types"))
        for table, rows in package_rows(packages, types):
            sqlite_file.insert(db, table, rows)
        clock.stage("count and insert")

        # Full-text search, indexes and views.
        sqlite_file.index_text(db, full_text(numbered, packages))
        clock.stage("full text")
        sqlite_file.finish(db)
        clock.stage("index")
        return _report_counts(db, packages)


def _source(db: sqlite3.Connection) -> DataSource:
    """Return where the data is from, by the sources in the database."""
    # Two rows of one column.
    (has_pages,), (has_installations,) = db.execute(_HAS_SOURCES).fetchall()
    urls = [url for (url,) in db.execute(_MIRROR_URLS)]
    return data_source(
        has_pages=bool(has_pages), has_installations=bool(has_installations), urls=urls
    )


def _report_counts(
    db: sqlite3.Connection, packages: PackageCatalogue
) -> dict[str, int]:
    """Return the fields of `Report` that are counts, by their names."""
    counts = {}
    for field in fields(Report):
        if field.name in COUNTED:
            (counts[field.name],) = db.execute(COUNTED[field.name]).fetchone()
    # The entries of package data are compressed in the database.
    counts["package_entries"] = sum(len(facts) for facts in packages.facts.values())
    return counts


def origin_rows(options: BuildOptions, numbered: Numbered) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table `origin`; `as_of` is the newest date of a source."""
    # Days of installed specs, and of snapshots. The number 0 is a spec that is not
    # installed; a text such as 2026-11-25T08:00:00Z begins with the day.
    installs = numbered.texts.installs.things
    used = set(numbered.records["install"].tolist()) - {0}
    days = set()
    for number_of_install in used:
        installed_at = installs[number_of_install - 1].installed_at
        days.add((installed_at or "")[:10])
    for name in numbered.ids["releases"]:
        days.add(release_date(name) or "")
    as_of = max(days, default="")

    if as_of:
        yield AS_OF, as_of
    if options.first:
        yield "first", options.first
    if options.without_paths:
        yield PATHS, LEFT_OUT
    yield from program_versions().items()
