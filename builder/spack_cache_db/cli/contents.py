"""Commands that list the contents of a database, such as `releases`, `deps` and `retention`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from spack_cache_db.cli.options import (
    GivenPath,
    file_argument,
    flag,
    opened,
    shared_options,
    value_option,
)
from spack_cache_db.cli.output import form_of, print_json, print_rows, say, say_notes
from spack_cache_db.errors import counted
from spack_cache_db.query.rows import Rows

if TYPE_CHECKING:
    from spack_cache_db.query.answers.retention import Retention

_RULES = ("environment", "newest", "newer_than", "keep_stack")
"""The options of `retention` that keep binaries."""
_BEHIND = ("name", "newest_version", "latest_version", "versions_behind", "spec_count")
"""The columns of `behind` for people."""


@click.command()
@file_argument
@shared_options("json", "csv", "all")
def releases(file: Path, **options: Any) -> None:
    """List the releases of a database.

    Branches come first, then releases and snapshots from new to old.

    Exit status: 0 if there is a release, 1 if not, 2 for an error.

    Example: spack-cache-db releases dist/spack-cache.db
    """
    columns = ("name", "kind", "date", "package_count", "spec_count")
    nothing = "the database has no release: it was not built from pages, indexes or installations"
    _print_records(file, "releases", columns, options, nothing)


@click.command()
@file_argument
@shared_options("json", "csv", "all")
def stacks(file: Path, **options: Any) -> None:
    """List the stacks of a database.

    Each binary is counted once, also if several releases list it.

    Exit status: 0 if there is a stack, 1 if not, 2 for an error.

    Example: spack-cache-db stacks dist/spack-cache.db
    """
    columns = ("name", "release_count", "spec_count")
    nothing = "the database has no stack: its sources do not name any"
    _print_records(file, "stacks", columns, options, nothing)


def _print_records(
    file: Path, table: str, columns: tuple[str, ...], options: Any, nothing: str
) -> NoReturn:
    """Print columns of the releases or stacks, and end."""
    with opened(file) as lookups:
        records = [
            {name: getattr(record, name) for name in columns}
            for record in getattr(lookups, table).values()
        ]
    sys.exit(0 if print_rows(Rows(columns, records), options, nothing) else 1)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@shared_options("json", "csv", "all")
def deps(dag_hash: str, file: Path, **options: Any) -> None:
    """List what a spec depends on.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Direct
    dependencies come first, with their types; indirect link and run dependencies follow, without
    types.

    Exit status: 0 if there is a dependency, 1 if there is none or no data, 2 for an error.

    Example: spack-cache-db deps 2feova4 dist/spack-cache.db
    """
    _print_edges(dag_hash, file, options, is_reversed=False)


@click.command()
@click.argument("dag_hash", metavar="HASH")
@file_argument
@shared_options("json", "csv", "all")
def dependents(dag_hash: str, file: Path, **options: Any) -> None:
    """List what depends on a spec.

    HASH is the beginning of its hash. FILE must be built from indexes or mirrors. Direct
    dependents come first, with their types; specs that link or run it indirectly follow, without
    types.

    Exit status: 0 if there is a dependent, 1 if there is none or no data, 2 for an error.

    Example: spack-cache-db dependents 2feova4 dist/spack-cache.db
    """
    _print_edges(dag_hash, file, options, is_reversed=True)


def _print_edges(dag_hash: str, file: Path, options: Any, *, is_reversed: bool) -> NoReturn:
    """Print the dependencies of a spec or its dependents, direct ones first, and end."""
    from spack_cache_db.query.names.known import spec_of_hash
    from spack_cache_db.query.open.lookups import has_records
    from spack_cache_db.query.stored.graph import (
        read_dependencies,
        read_dependents,
        read_nodes,
        recorded_specs,
    )

    rows = []
    with opened(file) as lookups:
        conn, spec = lookups.conn, spec_of_hash(lookups, dag_hash)
        name, has_data = f"/{dag_hash.removeprefix('/')}", has_records(conn)
        edges = (read_dependents if is_reversed else read_dependencies)(conn, spec)
        for other, node in read_nodes(conn, edges).items():
            uses = (",".join(names) for names in (edges[other] or ((), (), ()))[1:])
            rows.append((node.package, node.version, node.hash, *uses, node.kind))
        is_known = has_data if is_reversed else bool(recorded_specs(conn, [spec]))
    if is_known:
        nothing = f"{name} has no dependencies"
        nothing = f"nothing in this database depends on {name}" if is_reversed else nothing
    else:
        why = "the database has no dependency data; build it from indexes or mirrors"
        why = "no index or mirror in this database has a record of it" if has_data else why
        kind = "dependents" if is_reversed else "dependencies"
        nothing = f"the {kind} of {name} are not known: {why}"
    rows.sort(key=lambda row: (not row[3], row))
    columns = ("package", "version", "hash", "types", "virtuals", "kind")
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    sys.exit(0 if print_rows(Rows(columns, records), options, nothing) else 1)


@click.command()
@file_argument
@shared_options("json")
def info(file: Path, as_json: bool) -> None:
    """Summarize the content and the sources of a database.

    `--json` prints all counts.
    """
    from spack_cache_db.query.open.info import info as info_of

    values = info_of(file)
    if as_json:
        print_json(values)
        return
    facts = dict(_facts(values))
    width = max(map(len, facts))
    say(f"{file}: {values['size'] / 1e6:,.1f} MB")
    for name, text in facts.items():
        say(f"{name:<{width}}  {text}")


def _facts(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of `info` for people: a name and a text."""
    packages = counted(values["packages"], "package")
    configurations = counted(values["configurations"], "configuration")
    yield "binaries", f"{values['specs']:,} in {configurations} of {packages}"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in values["releases_by_kind"].items())
    yield "releases", f"{values['releases']:,}" + (f" ({kinds})" if kinds else "")
    if values["first_snapshot"]:
        yield "snapshots", f"from {values['first_snapshot']} to {values['last_snapshot']}"
    if values["as_of"] != values["last_snapshot"]:
        yield "as of", values["as_of"]
    if values["looked_at"]:
        # A build of today may find nothing new in sources of last month.
        yield "last checked", f"{values['looked_at'][:10]}, when a build read the sources"
    yield "stacks", f"{values['stacks']:,}"
    yield (
        "built from",
        " and ".join(
            [
                *([counted(values["pages"], "page")] if values["pages"] else []),
                *([counted(values["indexes"], "index", "indexes")] if values["indexes"] else []),
                *(["package data"] if values["known_packages"] else []),
            ]
        ),
    )
    edges = counted(values["dependencies"], "dependency", "dependencies")
    yield "dependencies", edges if values["records"] else "none: pages do not list them"
    for name, count in values["compared_with_spack"].items():
        yield name.replace("_", " "), f"{count:,}"
    yield "problems", f"{values['problems']:,}"
    programs = ", ".join(f"{name} {version}" for name, version in values["origin"].items())
    yield "built with", f"{programs}, schema {values['schema_version']}"


@click.command()
@file_argument
@shared_options("release", "stack", "json", "csv", "markdown", "all")
def behind(file: Path, release: str | None, stack: str | None, **options: Any) -> None:
    """List packages with binaries older than Spack's latest version.

    FILE must be built with package data. Deprecated versions and branches do not count.

    Exit status: 0 if no package is behind, 1 if some are or none has a binary, 2 for an error.

    Example: spack-cache-db behind dist/spack-cache.db --stack e4s
    """
    from spack_cache_db.query.answers.behind import compared_with_spack
    from spack_cache_db.query.names.spellings import read_spellings
    from spack_cache_db.query.stored.package_data import PackageStatus

    with opened(file) as lookups:
        say_notes(read_spellings(lookups).notes([("release", release), ("stack", stack)]))
        statuses = compared_with_spack(lookups, release=release, stack=stack)
    count = sum(status.newest_version is not None for status in statuses)
    nothing = f"no package is behind: {counted(count, 'package')} compared with Spack's versions"
    if not count:
        nothing = "no package has both a binary and package data, so none can be compared"
    records = [status._asdict() for status in statuses if status.versions_behind]
    is_any = print_rows(Rows(PackageStatus._fields, records), options, nothing, columns=_BEHIND)
    sys.exit(1 if is_any or not count else 0)


@click.command()
@file_argument
@value_option(
    "--environment",
    "PATH",
    "Keep what an environment needs, or each environment of a folder. Repeatable.",
    type=GivenPath(),
    multiple=True,
)
@value_option(
    "--newest", "N", "Keep the newest N versions of each package.", type=click.IntRange(1)
)
@value_option(
    "--newer-than",
    "DATE|DAYS",
    "Keep snapshots from this day on, or of the last DAYS days before the newest snapshot, and all "
    "releases without a date.",
)
@value_option("--keep-stack", "NAME", "Keep the binaries in this stack. Repeatable.", multiple=True)
@value_option("--release", "NAME", "Release of the mirror, if the database has several releases.")
@value_option("--stack", "NAME", "Only binaries in this stack of the mirror.")
@flag("--keeplist", "Print the hashes that are kept, for `spack buildcache prune --keeplist`.")
@flag("--allow-missing", "Print the answer even if some specs of an environment are not kept.")
@shared_options("json", "csv", "all")
def retention(file: Path, release: str | None, stack: str | None, **options: Any) -> None:
    """Show which binaries of a mirror can be pruned.

    A binary is kept if one of the rules --environment, --newest, --newer-than and --keep-stack
    keeps it, or if a kept binary needs it at run time. FILE is a database of the mirror. Nothing is
    deleted.

    Exit status: 0 if every needed binary is kept, 1 if not, 2 for an error. Without
    --allow-missing, nothing is printed if a spec of an environment has no binary.

    Example: spack-cache-db retention dist/spack-cache.db --newest 2 --environment envs/
    """
    from spack_cache_db.cli.cover import checked_retention, environment_paths, read_cover
    from spack_cache_db.query.answers.retention import MOST_NAMED
    from spack_cache_db.query.names.scope import scope_of

    form, allow_missing = form_of(options, "keeplist"), options["allow_missing"]
    if not any(options[name] for name in _RULES):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _RULES)
        raise click.UsageError(f"no rule keeps a binary: give one or more of {names}")
    since = options["newer_than"]
    days = int(since) if since and since.isdecimal() and len(since) < len("20261125") else since
    reading = {"spack": None, "strict": not allow_missing}
    with opened(file) as lookups:
        place = {"release": release, "stack": stack}
        scope = scope_of(lookups, **place)
        covered = [
            read_cover(lookups, path, scope, place, reading)
            for environment in options["environment"]
            for path in environment_paths(environment)[1]
        ]
        rules = options["newest"], days, options["keep_stack"]
        result = checked_retention(lookups, covered, scope, *rules, allow_missing=allow_missing)
    if result.incomplete:
        shown = "; ".join(result.incomplete[:MOST_NAMED])
        more = len(result.incomplete) - MOST_NAMED
        say_notes(
            [f"kept, but not complete: {shown}" + (f"; and {more:,} more" if more > 0 else "")]
        )
    if form == "keeplist":
        click.echo("\n".join(result.keep))
    elif form == "json":
        print_json(result.as_dict())
    else:
        if form is None:
            say(_totals(result))
        print_rows(result.rows, options, "")
    sys.exit(1 if result.missing and not allow_missing else 0)


def _totals(result: Retention) -> str:
    """Return a line with the number of binaries that each rule keeps, and the freed size."""
    reasons = Counter(binary.reason for binary in result.binaries if binary.reason)
    texts = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
    keep, prune = (
        counted(len(binaries), "binary", "binaries") for binaries in (result.keep, result.prune)
    )
    freed = f", which frees {result.freed_bytes / 1e6:,.1f} MB" if result.freed_bytes else ""
    unknown = counted(result.unknown_sizes, "size is", "sizes are")
    more = f"; {unknown} unknown" if result.unknown_sizes else ""
    return f"keep {keep} ({texts}); prune {prune}{freed}{more}"
