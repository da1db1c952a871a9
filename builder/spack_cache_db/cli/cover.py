"""The command `cover`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from spack_cache_db.cli.options import (
    GivenPath,
    file_argument,
    markdown_option,
    scope_names,
    scope_options,
    spack_option,
)
from spack_cache_db.cli.terminal import (
    FaultyInput,
    Forms,
    fail,
    form_of,
    print_answer,
    printable_values,
    say_notes,
    width,
)
from spack_cache_db.environment_files import environments_in, read_environment_file, surroundings
from spack_cache_db.environments import Environment, UnreadableEnvironment
from spack_cache_db.environments.formats import MAX_BYTES, read_environment
from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.machine import Machine, this_machine
from spack_cache_db.query.cache import is_met, retained
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.connection import Lookups, opened
from spack_cache_db.query.coverage import cover_environment
from spack_cache_db.query.coverage_output import (
    OF_NODES,
    STATUSES,
    Cover,
    CoveredNode,
    CoveredSpec,
    EnvironmentCover,
    FolderCover,
    answer,
    cover_csv,
    cover_json,
    cover_markdown,
    cover_table,
    folder_csv,
    folder_json,
    folder_markdown,
    folder_table,
)
from spack_cache_db.query.known_names import known_names
from spack_cache_db.query.questions import hint, scope_of
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.spack.parser import parser_of


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@file_argument
@scope_options
@click.option("--os", metavar="NAME", help="Only binaries for this operating system.")
@click.option("--platform", metavar="NAME", help="Only binaries for this platform, such as linux.")
@spack_option
@markdown_option
@click.option(
    "--only",
    type=click.Choice([*STATUSES, *OF_NODES]),
    multiple=True,
    help="Show only specs with this status. Repeatable.",
)
@click.option("--strict", is_flag=True, help="Fail if an included file cannot be found.")
@click.option(
    "--keeplist",
    is_flag=True,
    help="Print the hashes that a mirror has to keep, for `spack buildcache prune --keeplist`.",
)
@click.option(
    "--allow-missing",
    is_flag=True,
    help="With --keeplist: print it although some specs have no binary that it could keep.",
)
def cover(environment: str, file: Path, **options: Any) -> None:
    """Show which specs of an environment have a binary.

    ENVIRONMENT is a spack.yaml, a spack.lock, output of Spack, a list with one spec per line, or a
    folder of environments; - is standard input. Files that a spack.yaml includes are read as well.
    FILE is a database.

    Exit status: 0 if every spec has a binary, 1 if some have none, 2 for an error. With --keeplist,
    nothing is printed unless every spec is kept by a hash, or is external.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    is_keeplist = form_of(options, "keeplist") == "keeplist"
    if options["allow_missing"] and not is_keeplist:
        raise click.UsageError("--allow-missing goes with --keeplist only")
    options["strict"] |= is_keeplist and not options["allow_missing"]
    is_folder = environment != "-" and os.path.isdir(environment)  # noqa: PTH112 - any text may be a path
    try:
        names = _names(options)
        paths = environments_in(Path(environment)) if is_folder else [environment]
        with opened(file) as lookups:
            scope = scope_of(lookups, **names)
            say_notes(_notes_on_names(lookups, names))
            found = [_covered(lookups, str(each), scope, names, options) for each in paths]
            if is_keeplist:
                _end_keeplist(lookups, found, scope, options)
    except BuilderError as error:
        fail(str(error))
    if is_folder:
        _end(_folder(Path(environment), found), _FOLDER, options)
    if found[0].cover is None:
        fail(found[0].error)
    say_notes(found[0].cover.notes)
    _end(found[0].cover, _ONE, options)


def _names(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the names that narrow an answer, those of an operating system and a platform too."""
    given = {name: options[name] for name in ("os", "platform") if options[name]}
    return scope_names(options) | given


def _notes_on_names(lookups: Lookups, names: dict[str, str | None]) -> list[str]:
    """Return which names are spelled otherwise in the database, or are not in it.

    An operating system or a platform may be one that nobody has built for yet.
    """
    spellings = read_spellings(lookups)
    notes = spellings.notes(names.items())
    for kind, what in (("os", "operating system"), ("platform", "platform")):
        name, known = names.get(kind), sorted(lookups.words[kind].values())
        if name is not None and spellings.canonical(kind, name) not in known:
            close = hint(name, known, f"the file has {', '.join(known) or 'none'}")
            notes.append(f"nothing here was built for the {what} {name!r}; {close}")
    return notes


def _covered(
    lookups: Lookups,
    path: str,
    scope: Conditions,
    names: dict[str, str | None],
    options: dict[str, Any],
) -> EnvironmentCover:
    """Return the answers for one environment, or why it cannot be read."""
    try:
        read = _read(lookups, path, names, options)
    except UnreadableEnvironment as error:
        return EnvironmentCover(path, None, str(error))
    found = cover_environment(lookups, read, scope)
    return EnvironmentCover(path, replace(found, only=options["only"]))


def _machine(names: dict[str, str | None]) -> Machine:
    """Return the machine that an environment's conditions ask for: this one, or the one named."""
    machine = this_machine()
    return replace(
        machine,
        target=names.get("host") or machine.target,
        os=names.get("os") or machine.os,
        platform=names.get("platform") or machine.platform,
    )


def _read(
    lookups: Lookups, path: str, names: dict[str, str | None], options: dict[str, Any]
) -> Environment:
    machine, parse, known = _machine(names), parser_of(options["spack"]), known_names(lookups)
    is_strict = options["strict"]
    if path != "-":
        return read_environment_file(Path(path), machine, parse, known, is_strict=is_strict)
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    around = surroundings(Path(), machine, parse, known, is_strict=is_strict)
    return read_environment(data, "standard input", surroundings=around)


def _end_keeplist(
    lookups: Lookups, covered: list[EnvironmentCover], scope: Conditions, options: dict[str, Any]
) -> NoReturn:
    """Print the hashes that a mirror has to keep, if they keep every spec."""
    for environment in covered:
        if environment.cover is None:
            fail(environment.error)
    covers = {environment.path: environment.cover for environment in covered if environment.cover}
    found = retained(lookups, [*covers.values()], scope)
    say_notes(found.notes)
    kept = {*found.keep}
    for path, cover in covers.items():
        say_notes(_not_kept(path, spec) for spec in cover.specs if not is_met(spec, kept))
        say_notes(f"{path}: nothing keeps {line}: it is not a spec" for line in cover.others)
    if found.unmet and not options["allow_missing"]:
        specs = counted(len(found.unmet), "spec")
        raise FaultyInput(
            f"no hash keeps {specs}, so no keep list is printed: correct the environment, or use "
            "--allow-missing to keep the rest only"
        )
    if not found.keep:
        fail("the keep list is empty, and pruning with it would delete every binary of the mirror")
    for dag_hash in found.keep:
        click.echo(dag_hash)
    say_notes([f"no binary here has the hash {each}, which is needed" for each in found.missing])
    sys.exit(1 if found.missing and not options["allow_missing"] else 0)


def _not_kept(path: str, spec: CoveredSpec | CoveredNode) -> str:
    """Return why no hash keeps a spec, and where it is written."""
    line = f":{spec.line}" if isinstance(spec, CoveredSpec) and spec.line else ""
    place = "standard input" if path == "-" else path
    return f"{place}{line}: nothing keeps {spec.spec}: {spec.status}: {answer(spec)}"


def _folder(folder: Path, found: list[EnvironmentCover]) -> FolderCover:
    """Return the answers for the environments of a folder, each by its place in it."""
    return FolderCover(
        tuple(replace(each, path=str(Path(each.path).relative_to(folder))) for each in found)
    )


_COLOURS = (
    dict.fromkeys(("unanswerable", "none", "missing"), "red")
    | dict.fromkeys(("near", "unknown", "alike", "rebuilt"), "yellow")
    | dict.fromkeys(("binary", "installed"), "green")
)
_ONE = Forms(
    lambda found: cover_table(printable_values(found), width()),
    cover_json,
    cover_csv,
    lambda found: cover_markdown(printable_values(found)),
    _COLOURS,
)
_FOLDER = Forms(
    lambda found: folder_table(printable_values(found), width()),
    folder_json,
    folder_csv,
    lambda found: folder_markdown(printable_values(found)),
)


def _end(found: Cover | FolderCover, forms: Forms, options: dict[str, Any]) -> NoReturn:
    """Print answers, and end with the status that they have."""
    print_answer(found, forms, options)
    if isinstance(found, FolderCover) and len(found.covers) < len(found.environments):
        sys.exit(2)
    whole = found.whole if isinstance(found, FolderCover) else found
    if isinstance(found, FolderCover) and not whole.specs:
        say_notes(["the environments have no specs"])
    elif whole.specs and not whole.rows:
        say_notes([f"no spec has the status {' or '.join(whole.only)}"])
    sys.exit(0 if whole.specs and whole.available == whole.total else 1)
