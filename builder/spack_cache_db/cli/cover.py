"""The command `cover`, and what it prints for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.forms import fail, form_of, say_notes
from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.options import (
    baseline_option,
    junit_option,
    scope_from,
    shared_options,
)
from spack_cache_db.cli.parameters import GivenPath, flag, value_option
from spack_cache_db.cli.tables import hanging, print_answer
from spack_cache_db.errors import counted, one_line
from spack_cache_db.query.rows import Rows

if TYPE_CHECKING:
    from spack_cache_db.query.answers.cover import Baseline
    from spack_cache_db.query.answers.covered import Cover, CoveredSpec
    from spack_cache_db.query.answers.retention import Retention, Rules
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
_ORDER = list(_COLOURS)
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
    --baseline, 1 only if some specs had a binary in the older database, and have none.
    With --keeplist, nothing is printed if a spec has neither a binary nor an external.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    from spack_cache_db.query.answers.cover import opened_baseline
    from spack_cache_db.query.answers.retention import Rules

    is_keeplist = form_of(options, "keeplist") == "keeplist"
    allow_missing = options["allow_missing"]
    if allow_missing and not is_keeplist:
        raise click.UsageError("--allow-missing goes with --keeplist only")
    if is_keeplist and (options["baseline"] or options["junit"]):
        raise click.UsageError("--keeplist goes with neither --baseline nor --junit")
    # An included file that is not found may need more binaries.
    options["strict"] |= is_keeplist and not allow_missing
    scope = scope_from(options)
    is_folder, paths = environment_paths(environment)
    with opened(file) as lookups, opened_baseline(options["baseline"], scope) as older:
        conditions = scope.conditions(lookups)
        say_notes(_notes_on_names(lookups, scope))
        covered = [read_cover(lookups, path, scope, options, older) for path in paths]
        if is_keeplist:
            retention = checked_retention(
                lookups, covered, conditions, Rules(), allow_missing=allow_missing
            )
            click.echo("\n".join(retention.keep))
            sys.exit(1 if retention.missing and not allow_missing else 0)
    if options["junit"]:
        write_junit(options["junit"], "cover", _cases(covered))
    if is_folder:
        _end_folder(environment, covered, options)
    answer = covered[0].cover
    if answer is None:
        fail(covered[0].error)
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
            names = ", ".join(values) or "none"
            close = hint(name, values, f"the database has {names}")
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
        return True, [str(path) for path in environments_in(Path(environment))]
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
    parser = parser_of(options["spack"])
    known = known_names(lookups)
    is_strict = options["strict"]
    try:
        if path == "-":
            around = surroundings(Path(), machine, parser, known, is_strict=is_strict)
            # One byte more than allowed, so that the reader refuses longer texts.
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
            environment = read_environment(data, "standard input", surroundings=around)
        else:
            environment = read_environment_file(
                Path(path), machine, parser, known, is_strict=is_strict
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
            text = f"{spec.status}: {_text(spec)}"
            if spec.missing:
                text += f"\nmissing: {', '.join(spec.missing)}"
            is_failure = not spec.is_met
            if answer.baseline:
                is_failure = spec.status == "lost"
            if is_failure:
                yield Case(path, spec.title, failure=text)
            elif not spec.is_met:
                yield Case(path, spec.title, skipped=text)
            else:
                yield Case(path, spec.title)


def checked_retention(
    lookups: Lookups,
    covered: list[Covered],
    scope: Conditions,
    rules: Rules,
    *,
    allow_missing: bool,
) -> Retention:
    """Return the binaries that environments and rules keep; an error if a spec is not
    kept.
    """
    from spack_cache_db.query.answers.retention import is_met, missing_texts, retained

    covers = {}
    for path, answer, error in covered:
        if answer is None:
            fail(error)
        covers[path] = answer
    retention = retained(lookups, list(covers.values()), scope, rules)
    say_notes(retention.notes)

    # Name the specs that nothing keeps, each with its line.
    keep = set(retention.keep)
    for path, answer in covers.items():
        file_name = "standard input" if path == "-" else path
        for spec in answer.specs:
            if is_met(spec, keep):
                continue
            location = f"{file_name}:{spec.line}" if spec.line else file_name
            text = f"nothing keeps {spec.spec}: {spec.status}: {_text(spec)}"
            say_notes([f"{location}: {text}"])
        for line in answer.others:
            say_notes([f"{path}: nothing keeps {line}: it is not a spec"])
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
    in_folder = []
    covers: list[tuple[str, Cover]] = []
    every_spec: list[CoveredSpec] = []
    for environment in covered:
        path = str(Path(environment.path).relative_to(folder))
        in_folder.append(environment._replace(path=path))
        if environment.cover is not None:
            covers.append((path, environment.cover))
            every_spec += environment.cover.specs
    baseline = str(options["baseline"] or "")
    total = Cover(tuple(every_spec), is_lock=False, baseline=baseline)

    def rows() -> Rows:
        records = []
        for path, answer in covers:
            for record in _shown(answer, only).rows.records:
                records.append({"environment": path, **record})
        return Rows(("environment", *COLUMNS), records)

    sentence = f"{total.share}, in {counted(len(in_folder), 'environment')}"
    lines = [_line_of_folder(environment) for environment in in_folder]
    print_answer(
        options,
        rows,
        (sentence, "", *_folder_table(lines)),
        value=lambda: _folder_value(in_folder, total, only),
        markdown=(f"{sentence}.", "", *_folder_markdown(lines, covers, only)),
    )
    if len(covers) < len(in_folder):
        sys.exit(2)
    if not total.specs:
        say_notes(["the environments have no specs"])
    _end(total, only)


def _folder_value(
    covered: Iterable[Covered], total: Cover, only: Sequence[str]
) -> dict[str, Any]:
    """Return the JSON of a folder of environments."""
    environments = []
    for path, answer, error in covered:
        value = {"error": error} if answer is None else _value(answer, only)
        environments.append({"path": path, **value})
    counts = {"binary": total.binary, "total": total.total}
    if total.baseline:
        counts["lost"] = total.counted("lost")
    return {"environments": environments, **counts}


class _Line(NamedTuple):
    """An environment of a folder: its path, its numbers, and how many specs have each
    status.
    """

    path: str
    numbers: str
    text: str


def _line_of_folder(environment: Covered) -> _Line:
    answer = environment.cover
    if answer is None:
        faults = [one_line(fault) for fault in environment.error.splitlines()]
        return _Line(environment.path, "-", f"cannot be read: {'; '.join(faults)}")
    numbers = f"{answer.available:,} of {answer.total:,}"
    return _Line(environment.path, numbers, answer.statuses)


def _folder_table(lines: Sequence[_Line]) -> Iterator[str]:
    longest_path = max((len(line.path) for line in lines), default=0)
    longest_numbers = max((len(line.numbers) for line in lines), default=0)
    for line in lines:
        cells = (line.path.ljust(longest_path), line.numbers.rjust(longest_numbers))
        yield from hanging(cells, line.text)


def _folder_markdown(
    lines: Sequence[_Line], covers: Iterable[tuple[str, Cover]], only: Sequence[str]
) -> Iterator[str]:
    yield "| environment | binaries | |"
    yield "| --- | ---: | --- |"
    for path, numbers, text in lines:
        yield f"| `{path}` | {numbers} | {text} |"
    for path, answer in covers:
        yield from ("", f"## {path}", "")
        yield from _markdown(answer, only)


def _end(answer: Cover, only: Sequence[str]) -> NoReturn:
    """End with the status of the answers."""
    if answer.specs and not _shown(answer, only).specs:
        say_notes([f"no spec has the status {' or '.join(only)}"])
    is_good = answer.available == answer.total
    if answer.baseline:
        is_good = answer.counted("lost") == 0
    sys.exit(0 if answer.specs and is_good else 1)


def _shown(answer: Cover, only: Sequence[str]) -> Cover:
    """Return the answers with the statuses in `only`, all if it is empty."""
    if not only:
        return answer
    specs = [spec for spec in answer.specs if spec.status in only]
    return replace(answer, specs=tuple(specs))


def _value(answer: Cover, only: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of an environment; its counts are those of all specs."""
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
    if specs:
        yield ""
    longest_status = max((len(spec.status) for spec in specs), default=0)
    longest_spec = max((len(spec.spec) for spec in specs), default=0)
    longest_spec = min(longest_spec, _WIDEST)
    before = None
    for spec in specs:
        text = _text(spec)
        answer_text = (spec.status, text)
        if answer_text == before and len(text) > len(_THE_SAME):
            text = _THE_SAME
        cells = (spec.status.ljust(longest_status), spec.spec.ljust(longest_spec))
        yield from hanging(cells, text)
        before = answer_text


def _markdown(answer: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    yield f"{answer.sentence}."
    for total in answer.totals:
        yield ""
        yield f"{total[:1].upper()}{total[1:]}."
    yield ""
    yield "| status | spec | answer |"
    yield "| --- | --- | --- |"
    for spec in _in_order(_shown(answer, only).specs):
        name = one_line(spec.spec).replace("|", "\\|")
        text = one_line(_text(spec)).replace("|", "\\|")
        yield f"| {spec.status} | `` {name} `` | {text} |"


def _text(spec: CoveredSpec) -> str:
    """Return the answer for one spec, on one line."""
    if spec.is_root is not None:
        return _text_of_node(spec)
    if spec.status == "external":
        return spec.external
    also = f"; or the external {spec.external}" if spec.external else ""
    if spec.hash is not None and spec.configuration is not None:
        release = f" in {spec.release}" if spec.release else ""
        found = f"{spec.configuration.summary} /{spec.hash}{release}"
        if spec.status in ("binary", "installed"):
            return found + also
        # The binary is there, but Spack may not take it.
        return f"{found}: {one_line('; '.join(spec.reasons))}{also}"
    sentences = list(spec.reasons)
    if spec.corrected:
        sentences.append(f"perhaps you mean: {spec.corrected}")
    return one_line("; ".join(sentences)) + also


def _text_of_node(node: CoveredSpec) -> str:
    """Return the answer for one node of a lockfile, on one line."""
    release = f" in {node.release}" if node.release else ""
    if not node.others:
        root = " (root)" if node.is_root else ""
        return "; ".join((f"/{node.hash}{release}{root}", *node.reasons))
    other = f"/{node.others[0]}"
    if node.other_count > 1:
        other += f" and {node.other_count - 1:,} more"
    other += release
    if node.status == "alike" or node.differences:
        differences = "; ".join(node.differences)
        return f"/{node.hash} is not {other}, which differs: {differences}"
    return f"/{node.hash} would be replaced by {other}"
