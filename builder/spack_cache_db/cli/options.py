"""Options that several commands have, and the scope to which they narrow an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spack_cache_db.cli.databases import names_in_file
from spack_cache_db.cli.forms import say_notes
from spack_cache_db.cli.parameters import F, GivenPath, value_option

if TYPE_CHECKING:
    from spack_cache_db.query.names.scope import Scope


class _Shared(NamedTuple):
    """An option of several commands.

    Attributes:
        metavar: the value in the help; None for a flag.
        help: the help.
        variable: the name of the function's argument, if it is not that of the option.
        is_completed: whether a shell offers names of the database as its value.
    """

    metavar: str | None
    help: str
    variable: str | None = None
    is_completed: bool = False


_SHARED: Mapping[str, _Shared] = {
    "release": _Shared("NAME", "Only binaries in this release.", is_completed=True),
    "stack": _Shared("NAME", "Only binaries in this stack.", is_completed=True),
    "target": _Shared(
        "CPU",
        "Only binaries built for this CPU, such as x86_64_v3.",
        is_completed=True,
    ),
    "host": _Shared(
        "CPU",
        "Only binaries that run on a machine with this CPU, such as zen3.",
        is_completed=True,
    ),
    "here": _Shared(None, "Only binaries that run on this machine."),
    "maintainer": _Shared(
        "NAME",
        "Only packages whose recipe this account maintains.",
        is_completed=True,
    ),
    "tag": _Shared(
        "NAME", "Only packages with this tag, such as e4s.", is_completed=True
    ),
    "spack": _Shared(
        "VERSION", "Read specs as this version of Spack does, such as 0.23."
    ),
    "json": _Shared(None, "Print JSON.", variable="as_json"),
    "csv": _Shared(None, "Print CSV.", variable="as_csv"),
    "markdown": _Shared(None, "Print Markdown.", variable="as_markdown"),
    "all": _Shared(
        None, "Show all rows; by default, a terminal shows 50.", variable="every"
    ),
}
"""The options that `shared_options` adds, by their names without dashes."""


def shared_options(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds options of several commands, in this order.

    For example `@shared_options("release", "json")`.
    """

    def add(command: F) -> F:
        # Each option is put before those that were added earlier.
        for name in reversed(names):
            option = _SHARED[name]
            command = click.option(
                f"--{name}",
                option.variable or name,
                metavar=option.metavar,
                is_flag=option.metavar is None,
                help=option.help,
                shell_complete=names_in_file if option.is_completed else None,
            )(command)
        return command

    return add


baseline_option = value_option(
    "--baseline",
    "OLD.db",
    "Fail only for specs that lost the binary that they have in this older database.",
    type=GivenPath(path_type=Path),
)
junit_option = value_option(
    "--junit",
    "FILE",
    "Also write a JUnit report, which CI systems show.",
    type=GivenPath(path_type=Path),
)
export_folder_option = click.option(
    "-o",
    "--output",
    type=GivenPath(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write: a new one, or that of an earlier export.",
)


def scope_from(options: Mapping[str, Any]) -> Scope:
    """Return the scope to which the options of a command narrow its answer.

    With `--here`, the scope is this machine, and a note names it.

    Raises:
        UsageError: `--here` and `--host` are both given.
    """
    from spack_cache_db.query.names.scope import Scope

    # Only some commands have --os, --platform, --explicit and --stable.
    scope = Scope(
        release=options["release"],
        stack=options["stack"],
        host=options["host"],
        os=options.get("os") or None,
        platform=options.get("platform") or None,
        explicit=options.get("explicit", False),
        stable=options.get("stable", False),
    )
    if not options["here"]:
        return scope
    if options["host"]:
        raise click.UsageError("--here and --host exclude each other: give one of them")
    return _on_this_machine(scope)


def _on_this_machine(scope: Scope) -> Scope:
    from spack_cache_db.spack.machine import this_machine

    # A fact that is not known, such as the operating system, is None.
    machine = this_machine()
    facts = [machine.target, machine.os, machine.platform]
    note = f"this machine is {', '.join(fact for fact in facts if fact)}"
    for reason in machine.unknown:
        note += f"; {reason}: any operating system is shown"
    say_notes([note])

    # The options --os and --platform replace what the machine has.
    return replace(
        scope,
        host=machine.target,
        os=scope.os or machine.os,
        platform=scope.platform or machine.platform,
    )
