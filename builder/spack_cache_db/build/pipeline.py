"""Building a database, from the input's paths to the published file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.build import Input, Report, Snapshots, publication, sqlite_file
from spack_cache_db.build.counts import count
from spack_cache_db.build.ids import Numbered, number
from spack_cache_db.build.known_packages import (
    PackageCatalogue,
    package_catalogue,
    package_problems,
    package_rows,
)
from spack_cache_db.build.merge import Merge, Merged, installed_releases
from spack_cache_db.build.modules import Modules, matched, placed, unplaced
from spack_cache_db.build.problems import problems
from spack_cache_db.build.rows import table_rows
from spack_cache_db.build.search_words import (
    configuration_tokens,
    known_package_tokens,
    package_tokens,
)
from spack_cache_db.build.workers import program_versions, read_units, uncollected
from spack_cache_db.errors import ArgumentError, BuilderError, Fault, InputError
from spack_cache_db.records import FILTERED, Problem
from spack_cache_db.releases import release_date
from spack_cache_db.schema import AS_OF, COUNTED, LEFT_OUT, PATHS, STATEMENTS_SHA256
from spack_cache_db.sources import plan
from spack_cache_db.sources.columns import Origin, Texts
from spack_cache_db.sources.readers import input_files
from spack_cache_db.sources.strictness import as_json

Problems = Sequence[tuple[int | str, Problem]]
"""Problems, each with the number of its document, or with the path of a file of package data."""

MOST_NAMED = 5
"""Number of releases that an error names."""


@uncollected()
def build(given: Input, output: Path, *, keep_going: bool, force: bool) -> Report:
    """Build `output` (see `spack_cache_db.build.build`)."""
    clock = _Clock()
    publication.require_replaceable(output, given.every_path, force=force)
    # A folder there costs the inspect file alone, and `publish` says so.
    inspect_path = publication.inspect_path(output)
    if not os.path.isdir(inspect_path):  # noqa: PTH112 - Path.is_dir raises for a long name
        publication.require_replaceable(inspect_path, given.every_path, force=force)
    mark = None
    if given.snapshots.day:
        given = given._replace(paths=_begun(given, output))
        mark = _fingerprint(given, output)
        if mark and (report := _unchanged(mark, given.snapshots, output, clock)):
            return report
    merged, given = read(given)
    packages = package_catalogue(merged.packages)
    faults = faults_of(merged)
    if faults and not (keep_going and (merged.documents or merged.packages)):
        raise InputError(faults)
    if given.first and given.first not in merged.releases:
        known = ", ".join(merged.releases[:MOST_NAMED])
        raise ArgumentError(f"first is {given.first!r}, expected a release, such as {known}")
    modules = merged.modules
    if given.without_paths:
        leave_out_paths(merged.texts)
        modules = [*{each._replace(tree=None) for each in modules}]
    clock.stage("read")
    numbered, bytes_read = number(merged), merged.bytes_read
    loading = matched(numbered, modules)
    found = problems(merged)
    old = tuple(f"{each.location}/" for each in merged.origins)
    notes = {
        f"{location}: {problem.message}"
        for document, problem in found
        if problem.code == FILTERED
        and not (location := merged.documents[document - 1].location).startswith(old)
    }
    notes |= {loading.note} if given.modules else set()
    snapshots = merged.snapshots
    every: list[tuple[int | str, Problem]] = [*found]
    every += [(facts.path, problem) for facts, problem in package_problems(packages)]
    every += [*refused(merged, given.every_path), *loading.problems]
    del merged  # Its arrays are large, and nothing needs them from here on.
    clock.stage("number")
    with publication.replacing(output) as temporary:
        counts = _fill(temporary, given, numbered, packages, loading, every, clock)
        del numbered  # The checks map the whole file into memory.
        sqlite_file.require_intact(temporary)
        clock.stage("check")
        counts |= {"package_entries": sum(map(len, packages.facts.values()))}
        record = {"input": mark, "day": snapshots.day, "counts": counts}
        sha256, is_same = publication.publish(temporary, output, record if not faults else {})
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


def _begun(given: Input, output: Path) -> list[str]:
    """Return the paths of a history that begins: without the output, which does not exist yet."""
    place = os.path.abspath(output)  # noqa: PTH100 - the same for paths as they were typed
    others = [path for path in given.paths if os.path.abspath(path) != place]  # noqa: PTH100
    is_new = not os.path.exists(output) and (others or given.installations)  # noqa: PTH110
    return others if is_new else given.paths


def _fingerprint(given: Input, output: Path) -> str | None:
    """Return the checksum of all that decides a database's content; None if a file is unreadable.

    Without news in the other sources, the output itself, if it is built on, and the day of the
    snapshots change nothing: both are left out.
    """
    options = given._replace(paths=[], jobs=0, progress=None, executor=None)
    snapshots, recipes = given.snapshots._replace(day=None), {**given.recipes}
    options = options._replace(snapshots=snapshots, recipes=recipes)
    parts: list[object] = [options, STATEMENTS_SHA256, program_versions()]
    try:
        for file in chain.from_iterable(plan(given.paths, given.installations, given.modules)):
            if isinstance(file, Fault):
                return None
            place = Path(file.location)
            if file.kind == "database" and output.exists() and place.samefile(output):
                parts.append("output")
                continue
            for path in input_files(file):
                parts.append([file.path, os.path.relpath(path, place), sha256_of(path)])
        return hashlib.sha256(as_json(parts).encode()).hexdigest()
    except (OSError, ValueError, InputError):
        return None


def _unchanged(mark: str, snapshots: Snapshots, output: Path, clock: _Clock) -> Report | None:
    """Return the report of a build that has nothing new to read; None if it has."""
    try:
        found = publication.current_inspection(output)[publication.NAME]
        record = found[publication.RECORD]
        if mark != record["input"] or snapshots.day < record["day"]:
            return None
    except (BuilderError, KeyError, TypeError):
        return None  # There is no database, or its inspect file has no record.
    clock.stage("compare")
    values: dict[str, Any] = {**record["counts"], "file_size": found["size"]}
    values |= {"sha256": found["hash"], "seconds": clock.last - clock.start, "bytes_read": 0}
    return Report(**values, faults=(), notes=(), snapshots=snapshots, is_unchanged=True)


@uncollected()
def check(given: Input) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Return (faults, problems) of the input (see `spack_cache_db.build.check`)."""
    merged, given = read(given)
    found = [
        Fault(merged.documents[document - 1].location, 0, problem.message)
        for document, problem in problems(merged)
    ]
    found += [
        Fault(facts.location, 0, problem.message)
        for facts, problem in package_problems(package_catalogue(merged.packages))
    ]
    return faults_of(merged), tuple(sorted(found))


def read(given: Input) -> tuple[Merged, Input]:
    """Return the whole input, merged, and the options that it is built with.

    Raises:
        InputError: there is no input, or its databases were built with options that differ.
    """
    merge, units, done = Merge(), plan(given.paths, given.installations, given.modules), 0

    def share(part: float) -> None:
        if given.progress:
            given.progress(done + part, len(units))

    for columns in read_units(units, given, share):
        merge.add(columns)
        done += 1
        share(0)
    given = _as_databases(given, merge.origins)
    merged = merge.merged(given.first, given.snapshots)
    if not (merged.documents or merged.packages or merged.faults or merged.left_out):
        raise InputError(
            Fault(path, 0, "holds no file, expected pages or indexes") for path in given.every_path
        )
    known = installed_releases(merged.documents)
    if not merged.faults:
        message = "is not an installation, expected a folder with .spack-db/index.json"
        missing = (path for name, path in given.installations if name not in known)
        merged.faults.extend(Fault(path, 0, message) for path in missing)
        merged.faults.extend(unplaced(given.modules, known))
    merged.modules[:] = placed(merged.modules, known)
    return merged, given


def _as_databases(given: Input, origins: Sequence[Origin]) -> Input:
    """Return the options, with those of databases in the input where none are given.

    Raises:
        InputError: two databases were built with options that differ.
    """
    places: dict[str, dict[str, str]] = {}
    for origin in sorted(origins, key=lambda each: each.location):
        options = {f"--recipes {namespace}=": url for namespace, url in origin.recipes.items()}
        for option, value in (options | {"--first ": origin.first or ""}).items():
            if value:
                places.setdefault(option, {}).setdefault(value, origin.location)
    ours = {f"--recipes {namespace}=": url for namespace, url in given.recipes.items()}
    ours |= {"--first ": given.first} if given.first else {}
    for option in places.keys() - ours.keys():
        (value, place), *others = places[option].items()
        if others:
            message = f"was built with another {option}… than {place}; give that option"
            raise InputError([Fault(others[0][1], 0, message)])
        ours[option] = value
    first = ours.pop("--first ", None)
    return given._replace(
        first=first,
        recipes={option[len("--recipes ") : -1]: url for option, url in ours.items()},
        without_paths=given.without_paths or any(each.without_paths for each in origins),
    )


def faults_of(merged: Merged) -> tuple[Fault, ...]:
    """Return what is wrong with the input, sorted, each fault once."""
    return tuple(sorted({*merged.faults, *(each.fault for each in merged.refusals)}))


def refused(merged: Merged, paths: Iterable[str]) -> Problems:
    """Return a problem for each document that is left out, with its path within the input.

    Args:
        merged: the whole input.
        paths: the input as the user named it.
    """
    found = {each.recorded for each in merged.refusals} | {*merged.left_out}
    for fault in merged.faults:
        line = f"line {fault.line}: " if fault.line else ""
        found.add((_within(fault.path, paths), line + fault.message))
    return [(path, Problem("refused", message)) for path, message in sorted(found)]


def _within(location: str, paths: Iterable[str]) -> str:
    """Return a place as its path within the input."""
    tops = (path.rstrip(os.sep) for path in paths)
    above = [top for top in tops if location == top or location.startswith(top + os.sep)]
    top = max(above, key=len, default="")
    return location[len(top) :].lstrip(os.sep) if location != top else os.path.basename(location)  # noqa: PTH119


def _fill(
    path: Path,
    given: Input,
    numbered: Numbered,
    packages: PackageCatalogue,
    modules: Modules,
    found: Problems,
    clock: _Clock,
) -> dict[str, int]:
    """Write the whole file; return what is counted in it."""
    db = sqlite_file.create(path)
    try:
        sqlite_file.insert(db, "origin", origin_rows(given, numbered))
        sqlite_file.insert(db, "recipes", sorted(given.recipes.items()))
        for table, rows in table_rows(numbered, count(numbered), packages, modules, found):
            sqlite_file.insert(db, table, rows)
        types = dict(db.execute("SELECT types, id FROM dependency_types"))
        for table, rows in package_rows(packages, types):
            sqlite_file.insert(db, table, rows)
        clock.stage("count and insert")
        sqlite_file.index_text(
            db,
            {
                "configurations": map(configuration_tokens, numbered.ids["configurations"]),
                "packages": map(package_tokens, numbered.ids["packages"]),
                "known_packages": (
                    known_package_tokens(name, each.texts.get("description", ""))
                    for name, each in packages.packages.items()
                ),
            },
        )
        clock.stage("full text")
        sqlite_file.finish(db)
        clock.stage("index")
        reported = {each.name for each in fields(Report)}
        return {name: _count(db, rows) for name, rows in COUNTED.items() if name in reported}
    finally:
        db.close()


def _count(db: Any, rows: str) -> int:
    (count,) = db.execute(f"SELECT count(*) FROM {rows}").fetchone()  # noqa: S608 - our own names
    return int(count)


class _Clock:
    """Wall time by stage, in seconds."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        now = time.perf_counter()
        self.stages[name] = round(now - self.last, 3)
        self.last = now


def origin_rows(given: Input, numbered: Numbered) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table `origin`; `as_of` is the newest date that a source has."""
    installs = numbered.texts.installs.things
    used = set(numbered.records["install"].tolist()) - {0}
    days = {(installs[number - 1].installed_at or "")[:10] for number in used}
    days |= {release_date(name) or "" for name in numbered.ids["releases"]}
    if newest := max(days, default=""):
        yield AS_OF, newest
    if given.first:
        yield "first", given.first
    if given.without_paths:
        yield PATHS, LEFT_OUT
    yield from program_versions().items()


def leave_out_paths(texts: Texts) -> None:
    """Remove the paths of installed specs and externals from what indexes say."""
    texts.installs.things[:] = [each._replace(prefix=None) for each in texts.installs.things]
    for at, node in enumerate(texts.nodes.things):
        if node.external is not None:
            external = json.loads(node.external)
            external.pop("path", None)
            texts.nodes.things[at] = node._replace(external=as_json(external))
