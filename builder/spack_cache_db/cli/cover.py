"""The command `cover`, and what it prints for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from spack_cache_db.cli.forms import fail, form_of, say_notes
from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.options import (
    GivenPath,
    baseline_option,
    file_argument,
    flag,
    junit_option,
    opened,
    scope_from,
    shared_options,
    value_option,
)
from spack_cache_db.cli.tables import hanging, print_answer
from spack_cache_db.errors import counted, one_line
from spack_cache_db.query.rows import Rows

if TYPE_CHECKING:
    from spack_cache_db.query.answers.cover import Baseline
    from spack_cache_db.query.answers.covered import Cover, CoveredSpec
    from spack_cache_db.query.answers.retention import Retention
    from spack_cache_db.query.conditions.conditions import Conditions
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups

_COLOURS = {
    "lost": "red",
    "missing": "red",
    "alike": "yellow",
    "rebuilt": "yellow",
    "unanswerable": "red",
    "none": "red",
    "near": "yellow",
    "incomplete": "yellow",
    "unknown": "yellow",
    "external": None,
    "binary": "green",
    "installed": "green",
}
"""The statuses in the order in which the table has them, and their colours on a
terminal.
"""
_ORDER = [*_COLOURS]
_WIDEST = 40
"""Widest column of specs in a table; the answer to a longer spec follows it, or goes
below.
"""
_THE_SAME = "(the same)"


class Covered(NamedTuple):
    """The answers for one environment; `cover` is None and `error` set if it cannot be
    read.
    """

    path: str
    cover: Cover | None
    error: str = ""


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@file_argument
@shared_options("release", "stack", "host", "here")
@value_option("--os", "NAME", "Only binaries for this operating system.")
@value_option("--platform", "NAME", "Only binaries for this platform, such as linux.")
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
    "With --keeplist: print the list even if some specs have no binary.",
)
@baseline_option
@junit_option
def cover(environment: str, file: Path, **options: Any) -> None:
    """Show which specs of an environment have a binary.

    ENVIRONMENT is a spack.yaml, a spack.lock, output of Spack, a list with one spec per
    line, or a folder of environments; - is standard input. Files that a spack.yaml
    includes are read as well. FILE is a database.

    A binary counts if Spack can install it with all that it links and runs, and if
    Spack's solver reuses it under the settings of the environment.

    Exit status: 0 if every spec has a binary, 1 if some have none, 2 for an error. With
    --baseline,
    1 only if some specs had a binary in the older database, and have none. With
    --keeplist, nothing is printed if a spec has neither a binary nor an external.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    from spack_cache_db.query.answers.cover import opened_baseline

    is_keeplist = form_of(options, "keeplist") == "keeplist"
    if options["allow_missing"] and not is_keeplist:
        raise click.UsageError("--allow-missing goes with --keeplist only")
    if is_keeplist and (options["baseline"] or options["junit"]):
        raise click.UsageError("--keeplist goes with neither --baseline nor --junit")
    options["strict"] |= is_keeplist and not options["allow_missing"]
    scope = scope_from(options)
    is_folder, paths = environment_paths(environment)
    with opened(file) as lookups, opened_baseline(options["baseline"], scope) as older:
        conditions = scope.conditions(lookups)
        say_notes(_notes_on_names(lookups, scope))
        covered = [read_cover(lookups, path, scope, options, older) for path in paths]
        if is_keeplist:
            allow_missing = options["allow_missing"]
            retention = checked_retention(
                lookups, covered, conditions, allow_missing=allow_missing
            )
            click.echo("\n".join(retention.keep))
            sys.exit(1 if retention.missing and not allow_missing else 0)
    if options["junit"]:
        write_junit(options["junit"], "cover", _cases(covered))
    if is_folder:
        _end_folder(environment, covered, options)
    (_, answer, message), *_ = covered
    if answer is None:
        fail(message)
    say_notes(answer.notes)
    only = options["only"]
    print_answer(
        options,
        lambda: _shown(answer, only).rows,
        cover_table(answer, only),
        value=lambda: _value(answer, only),
        markdown=_markdown(answer, only),
        colours=_COLOURS,
    )
    _end(answer, only)


def _notes_on_names(lookups: Lookups, scope: Scope) -> list[str]:
    """Return notes on names that the database spells differently, or systems that it
    lacks.
    """
    from spack_cache_db.query.names.scope import hint
    from spack_cache_db.query.names.spellings import read_spellings

    spellings = read_spellings(lookups)
    notes = spellings.notes(scope.names.items())
    for kind, noun in (("os", "operating system"), ("platform", "platform")):
        name = scope.names[kind]
        values = sorted(lookups.words[kind].values())
        if name is not None and spellings.canonical(kind, name) not in values:
            close = hint(
                name, values, f"the database has {', '.join(values) or 'none'}"
            )
            notes.append(f"no binary was built for the {noun} {name!r}; {close}")
    return notes


def environment_paths(environment: str) -> tuple[bool, list[str]]:
    """Return whether a path is a folder of environments, and the paths of its
    environments.
    """
    from spack_cache_db.environment_files import environments_in
    from spack_cache_db.environments.model import UnreadableEnvironment

    if environment == "-" or not os.path.isdir(environment):  # noqa: PTH112 - any text may be a path
        return False, [environment]
    try:
        return True, [*map(str, environments_in(Path(environment)))]
    except UnreadableEnvironment as error:
        fail(str(error))


def read_cover(
    lookups: Lookups,
    path: str,
    scope: Scope,
    options: dict[str, Any],
    older: Baseline | None = None,
) -> Covered:
    """Return the answers for one environment, or the error if it cannot be read."""
    from spack_cache_db.environment_files import read_environment_file, surroundings
    from spack_cache_db.environments.model import UnreadableEnvironment
    from spack_cache_db.environments.reading import MAX_BYTES, read_environment
    from spack_cache_db.query.answers.cover import cover_environment
    from spack_cache_db.query.names.known import known_names
    from spack_cache_db.spack.legacy import parser_of
    from spack_cache_db.spack.machine import this_machine

    # Conditions in an environment refer to this machine, or to the one in the options.
    machine = this_machine()
    machine = replace(
        machine,
        target=scope.host or machine.target,
        os=scope.os or machine.os,
        platform=scope.platform or machine.platform,
    )
    arguments = machine, parser_of(options["spack"]), known_names(lookups)
    try:
        if path == "-":
            around = surroundings(Path(), *arguments, is_strict=options["strict"])
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
            environment = read_environment(data, "standard input", surroundings=around)
        else:
            environment = read_environment_file(
                Path(path), *arguments, is_strict=options["strict"]
            )
    except UnreadableEnvironment as error:
        return Covered(path, None, str(error))
    conditions = scope.conditions(lookups)
    return Covered(path, cover_environment(lookups, environment, conditions, older))


def _cases(covered: Iterable[Covered]) -> Iterator[Case]:
    """Yield a test case for each spec; with a baseline, specs without a binary are
    skipped.
    """
    for path, answer, error in covered:
        if answer is None:
            yield Case(path, path, failure=error)
            continue
        for spec in answer.specs:
            is_met, text = spec.is_met, f"{spec.status}: {_text(spec)}"
            is_failure = spec.status == "lost" if answer.baseline else not is_met
            if spec.missing:
                text += f"\nmissing: {', '.join(spec.missing)}"
            skipped = "" if is_met or is_failure else text
            yield Case(
                path, spec.title, failure=text if is_failure else "", skipped=skipped
            )


def checked_retention(
    lookups: Lookups,
    covered: list[Covered],
    scope: Conditions,
    *rules: Any,
    allow_missing: bool,
) -> Retention:
    """Return the binaries that environments and rules keep; an error if a spec is not
    kept.
    """
    from spack_cache_db.query.answers.retention import is_met, missing_texts, retained

    if errors := [error for _, answer, error in covered if answer is None]:
        fail(errors[0])
    covers = {path: answer for path, answer, _ in covered if answer is not None}
    retention = retained(lookups, [*covers.values()], scope, *rules)
    say_notes(retention.notes)
    keep = {*retention.keep}
    for path, answer in covers.items():
        for spec in (spec for spec in answer.specs if not is_met(spec, keep)):
            location = "standard input" if path == "-" else path
            location += f":{spec.line}" if spec.line else ""
            say_notes(
                [f"{location}: nothing keeps {spec.spec}: {spec.status}: {_text(spec)}"]
            )
        say_notes(
            f"{path}: nothing keeps {line}: it is not a spec" for line in answer.others
        )
    if retention.unmet and not allow_missing:
        fail(
            f"no hash keeps {counted(len(retention.unmet), 'spec')}, so no keep list is printed: "
            "correct the environment, or use --allow-missing to keep the rest only",
            status=1,
        )
    if not retention.keep:
        fail(
            "the keep list is empty, and pruning with it would delete every binary of the mirror"
        )
    say_notes(missing_texts(lookups, retention.missing, scope))
    return retention


def _end_folder(
    folder: str, covered: list[Covered], options: dict[str, Any]
) -> NoReturn:
    """Print the answers for the environments of a folder, each with its path in the
    folder.
    """
    from spack_cache_db.query.answers.covered import COLUMNS, Cover

    only = options["only"]
    covered = [
        cover._replace(path=str(Path(cover.path).relative_to(folder)))
        for cover in covered
    ]
    covers = [(path, answer) for path, answer, _ in covered if answer is not None]
    specs = tuple(chain.from_iterable(answer.specs for _, answer in covers))
    total_cover = Cover(specs, is_lock=False, baseline=str(options["baseline"] or ""))
    total = f"{total_cover.share}, in {counted(len(covered), 'environment')}"

    def value() -> dict[str, Any]:
        records = [
            {"path": path, **(_value(answer, only) if answer else {"error": error})}
            for path, answer, error in covered
        ]
        counts = {"binary": total_cover.binary, "total": total_cover.total}
        counts |= {"lost": total_cover.counted("lost")} if total_cover.baseline else {}
        return {"environments": records, **counts}

    def rows() -> Rows:
        records = [
            {"environment": path, **record}
            for path, answer in covers
            for record in _shown(answer, only).rows.records
        ]
        return Rows(("environment", *COLUMNS), records)

    # The path of an environment, its numbers, and how many specs have each status.
    lines = [
        (path, f"{answer.available:,} of {answer.total:,}", answer.statuses)
        if answer
        else (
            path,
            "-",
            f"cannot be read: {'; '.join(map(one_line, error.splitlines()))}",
        )
        for path, answer, error in covered
    ]
    first, second = (max((len(line[at]) for line in lines), default=0) for at in (0, 1))
    table = chain.from_iterable(
        hanging((path.ljust(first), numbers.rjust(second)), text)
        for path, numbers, text in lines
    )
    markdown = [f"{total}.", "", "| environment | binaries | |", "| --- | ---: | --- |"]
    markdown += [f"| `{path}` | {numbers} | {text} |" for path, numbers, text in lines]
    for path, answer in covers:
        markdown += ["", f"## {path}", "", *_markdown(answer, only)]
    print_answer(
        options, rows, chain((total, ""), table), value=value, markdown=markdown
    )
    if len(covers) < len(covered):
        sys.exit(2)
    if not total_cover.specs:
        say_notes(["the environments have no specs"])
    _end(total_cover, only)


def _end(answer: Cover, only: Sequence[str]) -> NoReturn:
    """End with the status of the answers."""
    if answer.specs and not _shown(answer, only).specs:
        say_notes([f"no spec has the status {' or '.join(only)}"])
    is_good = (
        not answer.counted("lost")
        if answer.baseline
        else answer.available == answer.total
    )
    sys.exit(0 if answer.specs and is_good else 1)


def _shown(answer: Cover, only: Sequence[str]) -> Cover:
    """Return the answers with the statuses in `only`, all if it is empty."""
    if not only:
        return answer
    return replace(
        answer, specs=tuple(spec for spec in answer.specs if spec.status in only)
    )


def _value(answer: Cover, only: Sequence[str]) -> dict[str, Any]:
    return answer.as_dict() | {"specs": _shown(answer, only).as_dict()["specs"]}


def _in_order(specs: Iterable[CoveredSpec]) -> list[CoveredSpec]:
    """Return specs in the order of their status: those without a binary first."""
    return sorted(specs, key=lambda spec: _ORDER.index(spec.status))


def cover_table(answer: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    """Yield the totals and a line for each spec; a repeated answer is printed once."""
    yield answer.sentence
    if "," in answer.statuses:
        yield answer.statuses
    yield from answer.groups
    yield from answer.totals
    specs = _in_order(_shown(answer, only).specs)
    first = max((len(spec.status) for spec in specs), default=0)
    second = min(max((len(spec.spec) for spec in specs), default=0), _WIDEST)
    before = None
    yield from [""] if specs else []
    for spec in specs:
        answer_text = (spec.status, _text(spec))
        is_same = answer_text == before and len(answer_text[1]) > len(_THE_SAME)
        cells = (spec.status.ljust(first), spec.spec.ljust(second))
        yield from hanging(cells, _THE_SAME if is_same else answer_text[1])
        before = answer_text


def _markdown(answer: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    yield f"{answer.sentence}."
    for total in answer.totals:
        yield from ("", f"{total[:1].upper()}{total[1:]}.")
    yield from ("", "| status | spec | answer |", "| --- | --- | --- |")
    for spec in _in_order(_shown(answer, only).specs):
        cells = (
            one_line(text).replace("|", "\\|") for text in (spec.spec, _text(spec))
        )
        yield f"| {spec.status} | `` {next(cells)} `` | {next(cells)} |"


def _text(spec: CoveredSpec) -> str:
    """Return the answer for one spec, on one line."""
    release = f" in {spec.release}" if spec.release else ""
    if spec.is_root is not None:
        if not spec.others:
            root = " (root)" if spec.is_root else ""
            return "; ".join((f"/{spec.hash}{release}{root}", *spec.reasons))
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
    # The binary is there, but Spack may not take it.
    if spec.hash is not None and spec.configuration is not None:
        found = f"{spec.configuration.summary} /{spec.hash}{release}"
        return f"{found}: {one_line('; '.join(spec.reasons))}{also}"
    instead = (f"perhaps you mean: {spec.corrected}",) if spec.corrected else ()
    return one_line("; ".join((*spec.reasons, *instead))) + also
