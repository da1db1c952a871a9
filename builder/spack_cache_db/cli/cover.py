"""The command `cover`, and what it prints for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.options import (
    GivenPath,
    baseline_option,
    file_argument,
    flag,
    junit_option,
    named,
    opened,
    scope_names,
    shared_options,
)
from spack_cache_db.cli.output import fail, form_of, print_answer, say_notes, width
from spack_cache_db.errors import counted
from spack_cache_db.row_forms import Rows

if TYPE_CHECKING:
    from spack_cache_db.query.conditions import Conditions
    from spack_cache_db.query.coverage import Baseline, Cover
    from spack_cache_db.query.covered_spec import CoveredSpec
    from spack_cache_db.query.database import Lookups
    from spack_cache_db.query.retention import Retention

    Names = dict[str, str | None]

_COLOURS = {
    "lost": "red",
    "missing": "red",
    "alike": "yellow",
    "rebuilt": "yellow",
    "unanswerable": "red",
    "none": "red",
    "near": "yellow",
    "unknown": "yellow",
    "external": None,
    "binary": "green",
    "installed": "green",
}
"""The statuses in the order in which the table has them, and their colours on a terminal."""
_ORDER = [*_COLOURS]
_MET = ("external", "binary", "installed")
_GAP = "  "
_INDENT = " " * 4
_WIDEST = 40
"""Columns that specs take in a table; an answer to a longer one stands behind it, or below."""
_SHORTEST = 30
"""Columns of an answer that is worth a column of its own."""
_THE_SAME = "(the same)"


class Covered(NamedTuple):
    """The answers for one environment; None, and an error, if it cannot be read."""

    path: str
    cover: Cover | None
    error: str = ""


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@file_argument
@shared_options("release", "stack", "host", "here")
@named("--os", "NAME", "Only binaries for this operating system.")
@named("--platform", "NAME", "Only binaries for this platform, such as linux.")
@shared_options("spack", "json", "csv", "markdown")
@click.option(
    "--only",
    type=click.Choice(_ORDER),
    multiple=True,
    help="Show only specs with this status. Repeatable.",
)
@flag("--strict", "Fail if an included file cannot be found.")
@flag(
    "--keeplist",
    "Print the hashes that a mirror has to keep, for `spack buildcache prune --keeplist`.",
)
@flag(
    "--allow-missing",
    "With --keeplist: print it although some specs have no binary that it could keep.",
)
@baseline_option
@junit_option
def cover(environment: str, file: Path, **options: Any) -> None:
    """Show which specs of an environment have a binary.

    ENVIRONMENT is a spack.yaml, a spack.lock, output of Spack, a list with one spec per line, or a
    folder of environments; - is standard input. Files that a spack.yaml includes are read as well.
    FILE is a database.

    Exit status: 0 if every spec has a binary, 1 if some have none, 2 for an error. With --baseline,
    1 only if some specs had a binary in the older database, and have none. With --keeplist, nothing
    is printed unless every spec is kept by a hash, or is external.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    from spack_cache_db.query.coverage import opened_baseline
    from spack_cache_db.query.names import scope_of

    is_keeplist = form_of(options, "keeplist") == "keeplist"
    if options["allow_missing"] and not is_keeplist:
        raise click.UsageError("--allow-missing goes with --keeplist only")
    if is_keeplist and (options["baseline"] or options["junit"]):
        raise click.UsageError("--keeplist goes with neither --baseline nor --junit")
    options["strict"] |= is_keeplist and not options["allow_missing"]
    names = scope_names(options)
    names |= {name: options[name] for name in ("os", "platform") if options[name]}
    is_folder, paths = environment_paths(environment)
    with opened(file) as lookups, opened_baseline(options["baseline"], names) as older:
        scope = scope_of(lookups, **names)
        say_notes(_notes_on_names(lookups, names))
        covered = [read_cover(lookups, path, scope, names, options, older) for path in paths]
        if is_keeplist:
            allow_missing = options["allow_missing"]
            retention = checked_retention(lookups, covered, scope, allow_missing=allow_missing)
            click.echo("\n".join(retention.keep))
            sys.exit(1 if retention.missing and not allow_missing else 0)
    if options["junit"]:
        write_junit(options["junit"], "cover", _cases(covered))
    if is_folder:
        _end_folder(environment, covered, options)
    (_, found, message), *_ = covered
    if found is None:
        fail(message)
    say_notes(found.notes)
    only = options["only"]
    print_answer(
        options,
        lambda: _shown(found, only).rows,
        cover_table(found, only),
        value=lambda: _value(found, only),
        markdown=_markdown(found, only),
        colours=_COLOURS,
    )
    _end(found, only)


def _notes_on_names(lookups: Lookups, names: Names) -> list[str]:
    """Return which names are spelled otherwise in the database, or are not in it.

    An operating system or a platform may be one that nobody has built for yet.
    """
    from spack_cache_db.query.names import hint, read_spellings

    spellings = read_spellings(lookups)
    notes = spellings.notes(names.items())
    for kind, what in (("os", "operating system"), ("platform", "platform")):
        name, known = names.get(kind), sorted(lookups.words[kind].values())
        if name is not None and spellings.canonical(kind, name) not in known:
            close = hint(name, known, f"the file has {', '.join(known) or 'none'}")
            notes.append(f"nothing here was built for the {what} {name!r}; {close}")
    return notes


def environment_paths(environment: str) -> tuple[bool, list[str]]:
    """Return whether a path is a folder of environments, and the paths of its environments."""
    from spack_cache_db.environment_files import environments_in
    from spack_cache_db.environments import UnreadableEnvironment

    if environment == "-" or not os.path.isdir(environment):  # noqa: PTH112 - any text may be a path
        return False, [environment]
    try:
        return True, [*map(str, environments_in(Path(environment)))]
    except UnreadableEnvironment as error:
        fail(str(error))


def read_cover(
    lookups: Lookups,
    path: str,
    scope: Conditions,
    names: Names,
    options: dict[str, Any],
    older: Baseline | None = None,
) -> Covered:
    """Return the answers for one environment, or why it cannot be read."""
    from spack_cache_db.environment_files import read_environment_file, surroundings
    from spack_cache_db.environments import UnreadableEnvironment
    from spack_cache_db.environments.formats import MAX_BYTES, read_environment
    from spack_cache_db.machine import this_machine
    from spack_cache_db.query.coverage import cover_environment
    from spack_cache_db.query.names import known_names
    from spack_cache_db.spack.parser import parser_of

    # The machine that an environment's conditions ask for: this one, or the one named.
    machine = this_machine()
    machine = replace(
        machine,
        target=names.get("host") or machine.target,
        os=names.get("os") or machine.os,
        platform=names.get("platform") or machine.platform,
    )
    given = machine, parser_of(options["spack"]), known_names(lookups)
    try:
        if path == "-":
            around = surroundings(Path(), *given, is_strict=options["strict"])
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
            environment = read_environment(data, "standard input", surroundings=around)
        else:
            environment = read_environment_file(Path(path), *given, is_strict=options["strict"])
    except UnreadableEnvironment as error:
        return Covered(path, None, str(error))
    return Covered(path, cover_environment(lookups, environment, scope, older=older))


def _cases(covered: Iterable[Covered]) -> Iterator[Case]:
    """Yield a test case for each spec; with a baseline, specs without a binary are skipped."""
    for path, found, error in covered:
        if found is None:
            yield Case(path, path, failure=error)
            continue
        for spec in found.specs:
            name = spec.title
            text, is_met = f"{spec.status}: {_text(spec)}", spec.status in _MET
            if is_met or (found.baseline and spec.status != "lost"):
                yield Case(path, name, skipped="" if is_met else text)
            else:
                yield Case(path, name, failure=text)


def checked_retention(
    lookups: Lookups,
    covered: Sequence[Covered],
    scope: Conditions,
    *rules: Any,
    allow_missing: bool,
) -> Retention:
    """Return which binaries are kept for some environments and by rules, if every spec is kept."""
    from spack_cache_db.query.retention import is_met, retained

    if errors := [error for _, found, error in covered if found is None]:
        fail(errors[0])
    covers = {path: found for path, found, _ in covered if found is not None}
    retention = retained(lookups, [*covers.values()], scope, *rules)
    say_notes(retention.notes)
    keep = {*retention.keep}
    for path, found in covers.items():
        for spec in found.specs:
            if not is_met(spec, keep):
                number = getattr(spec, "line", 0)
                place = "standard input" if path == "-" else path
                place += f":{number}" if number else ""
                say_notes([f"{place}: nothing keeps {spec.spec}: {spec.status}: {_text(spec)}"])
        say_notes(f"{path}: nothing keeps {line}: it is not a spec" for line in found.others)
    if retention.unmet and not allow_missing:
        fail(
            f"no hash keeps {counted(len(retention.unmet), 'spec')}, so no keep list is printed: "
            "correct the environment, or use --allow-missing to keep the rest only",
            status=1,
        )
    if not retention.keep:
        fail("the keep list is empty, and pruning with it would delete every binary of the mirror")
    missing = retention.missing
    say_notes(f"no binary here has the hash {dag_hash}, which is needed" for dag_hash in missing)
    return retention


def _end_folder(folder: str, covered: list[Covered], options: dict[str, Any]) -> NoReturn:
    """Print the answers for the environments of a folder, each with its path in the folder."""
    from spack_cache_db.query.coverage import Cover

    only = options["only"]
    covered = [each._replace(path=str(Path(each.path).relative_to(folder))) for each in covered]
    covers = [(path, found) for path, found, _ in covered if found is not None]
    specs = tuple(chain.from_iterable(found.specs for _, found in covers))
    whole = Cover(specs, is_lock=False, baseline=str(options["baseline"] or ""))
    total = f"{whole.share}, in {counted(len(covered), 'environment')}"

    def value() -> dict[str, Any]:
        records = [
            {"path": path, **(_value(found, only) if found else {"error": error})}
            for path, found, error in covered
        ]
        counts = {"binary": whole.binary, "total": whole.total}
        counts |= {"lost": whole.counted("lost")} if whole.baseline else {}
        return {"environments": records, **counts}

    def rows() -> Rows:
        parts = [(path, _shown(found, only).rows) for path, found in covers]
        records = [
            {"environment": path, **record} for path, part in parts for record in part.records
        ]
        columns = dict.fromkeys(name for record in records for name in record)
        return Rows([*columns] or ["environment", "spec", "status"], records)

    # The path of an environment, its numbers, and how many specs have each status.
    lines = [
        (path, f"{found.available:,} of {found.total:,}", found.statuses)
        if found
        else (path, "-", f"cannot be read: {'; '.join(map(_one_line, error.splitlines()))}")
        for path, found, error in covered
    ]
    first, second = (max((len(line[at]) for line in lines), default=0) for at in (0, 1))
    table = (
        part
        for path, numbers, text in lines
        for part in _wrapped(_GAP.join((path.ljust(first), numbers.rjust(second))), text)
    )
    markdown = [f"{total}.", "", "| environment | binaries | |", "| --- | ---: | --- |"]
    markdown += [f"| `{path}` | {numbers} | {text} |" for path, numbers, text in lines]
    for path, found in covers:
        markdown += ["", f"## {path}", "", *_markdown(found, only)]
    print_answer(options, rows, chain((total, ""), table), value=value, markdown=markdown)
    if len(covers) < len(covered):
        sys.exit(2)
    if not whole.specs:
        say_notes(["the environments have no specs"])
    _end(whole, only)


def _end(found: Cover, only: Sequence[str]) -> NoReturn:
    """End with the status of the answers."""
    if found.specs and not _shown(found, only).specs:
        say_notes([f"no spec has the status {' or '.join(only)}"])
    is_good = not found.counted("lost") if found.baseline else found.available == found.total
    sys.exit(0 if found.specs and is_good else 1)


def _shown(found: Cover, only: Sequence[str]) -> Cover:
    """Return the answers of some statuses, in the order of the table; all without `only`."""
    if not only:
        return found
    return replace(found, specs=tuple(spec for spec in found.specs if spec.status in only))


def _value(found: Cover, only: Sequence[str]) -> dict[str, Any]:
    return found.as_dict() | {"specs": _shown(found, only).as_dict()["specs"]}


def _in_order(specs: Iterable[CoveredSpec]) -> list[CoveredSpec]:
    """Return specs without a binary, then those with one, each in its order."""
    return sorted(specs, key=lambda spec: _ORDER.index(spec.status))


def cover_table(found: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    """Yield the totals and a line for each spec; an answer that several share stands once."""
    yield found.sentence
    yield from found.counts
    specs = _in_order(_shown(found, only).specs)
    first = max((len(spec.status) for spec in specs), default=0)
    second = min(max((len(spec.spec) for spec in specs), default=0), _WIDEST)
    before = None
    for number, spec in enumerate(specs):
        if not number:
            yield ""
        answer = (spec.status, _text(spec))
        is_same = answer == before and len(answer[1]) > len(_THE_SAME)
        head = _GAP.join((spec.status.ljust(first), spec.spec.ljust(second)))
        yield from _wrapped(head, _THE_SAME if is_same else answer[1])
        before = answer


def _wrapped(head: str, text: str) -> Iterator[str]:
    """Yield a line, or several as wide as the terminal with the text indented."""
    most, line = width(), f"{head}{_GAP}{text}".rstrip()
    column = len(head) + len(_GAP)
    if most is None or len(line) <= most:
        yield line
    elif most - column >= _SHORTEST:
        first, *more = wrap(text, most - column)
        yield f"{head}{_GAP}{first}"
        yield from (" " * column + part for part in more)
    else:
        yield from wrap(head.rstrip(), most, subsequent_indent=_INDENT)
        yield from wrap(text, most, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _markdown(found: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    yield from (f"{found.sentence}.", "", "| status | spec | answer |", "| --- | --- | --- |")
    for spec in _in_order(_shown(found, only).specs):
        cells = (_one_line(text).replace("|", "\\|") for text in (spec.spec, _text(spec)))
        yield f"| {spec.status} | `` {next(cells)} `` | {next(cells)} |"


def _text(spec: CoveredSpec) -> str:
    """Return the answer for one spec, on one line."""
    release = f" in {spec.release}" if spec.release else ""
    if spec.is_root is not None:
        if not spec.others:
            return f"/{spec.hash}{release}" + (" (root)" if spec.is_root else "")
        more = f" and {spec.other_count - 1:,} more" if spec.other_count > 1 else ""
        other = f"/{spec.others[0]}{more}{release}"
        if spec.status == "alike" or spec.differences:
            return f"/{spec.hash} is not {other}, which differs: {'; '.join(spec.differences)}"
        return f"/{spec.hash} would be replaced by {other}"
    if spec.status == "external":
        return spec.external
    also = f"; or the external {spec.external}" if spec.external else ""
    if spec.status in ("binary", "installed") and spec.configuration is not None:
        return f"{spec.configuration.summary} /{spec.hash}{release}{also}"
    instead = (f"perhaps you mean: {spec.corrected}",) if spec.corrected else ()
    return _one_line("; ".join((*spec.reasons, *instead))) + also


def _one_line(text: str) -> str:
    return " ".join(text.split())
