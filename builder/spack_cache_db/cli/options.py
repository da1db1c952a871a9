"""Options and arguments of several commands: the database, the input, output formats,
filters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.cli.forms import say_notes
from spack_cache_db.errors import DatabaseError

if TYPE_CHECKING:
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups

F = TypeVar("F", bound=Callable[..., Any])

FILE_VARIABLE = "SPACK_CACHE_DB"
"""The environment variable with the path of the default database."""

_PAIR = re.compile(r"""([\w.-]+:?==?)([^'"].*\s.*)""", re.DOTALL)
"""A name and an unquoted value with a blank in it."""


class ByteSize(click.ParamType[int]):
    """Bytes, with an optional K, M or G (powers of 1024)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        size = re.fullmatch(r"(0*[1-9]\d*)([KMG]?)", str(value).upper())
        if not size:
            expected = "bytes such as 500000, 64M or 1G"
            self.fail(f"{value!r} is not a size, expected {expected}", param, ctx)
        return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]


class GivenPath(click.Path):
    """A path that is not empty: an empty path usually comes from an unset variable of a
    script.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path."""
        if value == "":
            self.fail("it is empty, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def flag(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option without a value, with this help."""
    return click.option(name, is_flag=True, help=text, **more)


def value_option(name: str, metavar: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option with a value, with this help."""
    return click.option(name, metavar=metavar, help=text, **more)


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


def export_folder_option() -> Callable[[F], F]:
    """Return a decorator that adds `--output`, the folder that an export writes."""
    return click.option(
        "-o",
        "--output",
        type=GivenPath(file_okay=False, path_type=Path),
        required=True,
        help="Folder to write: a new one, or that of an earlier export.",
    )


def opened(file: Path) -> AbstractContextManager[Lookups]:
    """Open a database with `query.database.opened`, imported late because it is slow to
    import.
    """
    from spack_cache_db.query.open.lookups import opened

    return opened(file)


def file_argument(command: F) -> F:
    """Add the argument FILE, a database; optional if there is only one database."""
    return click.argument(
        "file",
        type=GivenPath(path_type=Path),
        required=False,
        envvar=FILE_VARIABLE,
        callback=_given_or_usual,
    )(command)


def _given_or_usual(
    ctx: click.Context, parameter: click.Parameter, file: Path | None
) -> Path | None:
    return file or _usual_database(ctx)


def _usual_database(ctx: click.Context) -> Path | None:
    """Return the only database in `dist/` and the current folder; None while a shell
    completes.

    Raises:
        UsageError: there is none, or there are several.
    """
    if ctx.resilient_parsing or ctx.params.get("databases"):
        return None
    from spack_cache_db.database_file import is_database

    databases = []
    for folder in ("dist", "."):
        for path in sorted(Path(folder).glob("*.db")):
            if is_database(path):
                databases.append(path)
    if len(databases) != 1:
        count = f"there are {len(databases)}" if databases else "there is none"
        raise click.UsageError(
            f"Missing argument 'FILE': {count} in dist/ and the current folder. "
            f"Give the path of a database, or set {FILE_VARIABLE}.",
            ctx,
        )
    return databases[0]


class SpecCommand(click.Command):
    """A command with the arguments SPEC... [FILE]: its function takes `spec` and
    `file`.

    All words except the database form one spec, so that `hdf5 +mpi` needs no quotes.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        files = click.Path().shell_complete
        argument = click.Argument(
            ["words"], nargs=-1, metavar="SPEC... [FILE]", shell_complete=files
        )
        self.params.insert(0, argument)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line into `ctx.params`."""
        remaining = super().parse_args(ctx, list(self._marked(ctx, args)))
        words = []
        for word in ctx.params.pop("words"):
            is_marked = word.startswith(" -")
            words.append(word.removeprefix(" ") if is_marked else word)
        ctx.params["spec"], ctx.params["file"] = _spec_and_database(ctx, words)
        return remaining

    def _marked(self, ctx: click.Context, args: list[str]) -> Iterator[str]:
        """Yield the command line, with a blank before each dashed word that belongs to
        the spec.

        These are variants (`-mpi`), and options of Spack in a pasted command.
        """
        options: dict[str, click.Option] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                options |= dict.fromkeys(option.opts, option)
        # Only a pasted command has options of Spack, which may begin with --.
        part_of_spec = re.compile(r"-." if "spack" in args else r"-[^-]")
        is_value = False
        for word in args:
            if is_value:
                yield word
                is_value = False
                continue
            name, equals, _ = word.partition("=")
            own_option = options.get(name)
            if own_option is not None:
                yield word
                is_value = not own_option.is_flag and not equals
            elif word != "--" and part_of_spec.match(word):
                yield f" {word}"
            else:
                yield word


def _spec_and_database(ctx: click.Context, words: list[str]) -> tuple[str, Path | None]:
    """Return the spec and the database of a command line.

    The last word is the database if it is a file or ends in `.db`. The only word is the
    database only if it ends in `.db` or is one.
    """
    file = None
    if words:
        last = words[-1]
        # An empty word, of an unset variable, is refused as a path.
        is_path = len(words) > 1 and (_is_path(last) or last == "")
        if is_path or _is_database(last):
            file = GivenPath(path_type=Path).convert(words.pop(), None, ctx)
    default = os.environ.get(FILE_VARIABLE)
    if file is None and default:
        file = Path(default)
    if ctx.resilient_parsing:
        return "", file
    for word in words:
        if _is_database(word):
            message = "is a database: give the spec first, then one database"
            raise click.UsageError(f"{word} {message}", ctx)
    if not words:
        raise click.UsageError("Missing argument 'SPEC...': such as hdf5 +mpi", ctx)
    return spec_of_words(words), file or _usual_database(ctx)


def _is_database(word: str) -> bool:
    from spack_cache_db.database_file import is_database

    return word.endswith(".db") or (_is_path(word) and is_database(Path(word)))


def _is_path(word: str) -> bool:
    return os.path.exists(word)  # noqa: PTH110 - a word may be too long for a path


def spec_of_words(words: Sequence[str]) -> str:
    """Return the spec that several words of a command line form.

    A shell removes quotes, so a value with a blank is quoted again, as in Spack.
    """
    from spack_cache_db.spack.normal_forms import quoted

    if len(words) == 1:
        return words[0]
    texts = []
    for word in words:
        pair = _PAIR.fullmatch(word)
        texts.append(f"{pair[1]}{quoted(pair[2])}" if pair else word)
    return " ".join(texts)


def input_options(command: F) -> F:
    """Add the arguments and options that `build`, `check` and `verify` share."""
    for option in (
        click.argument(
            "paths", nargs=-1, type=GivenPath(), metavar="PATH...", callback=_given
        ),
        shared_options("json"),
        value_option(
            "--max-page-size",
            "SIZE",
            "Refuse larger pages (bytes, or 64M, 1G).",
            type=ByteSize(),
            default=f"{DEFAULT_MAX_PAGE_SIZE >> 20}M",
            show_default=True,
        ),
        value_option(
            "--jobs",
            "N",
            "Number of processes that read the input.",
            type=click.IntRange(1),
            default=lambda: os.cpu_count() or 1,
            show_default="number of cores",
        ),
        click.option(
            "--installation",
            "installations",
            metavar="NAME=PATH",
            help="Installation, and the name of its release, such as a machine. Repeatable.",
            multiple=True,
            callback=pairs,
            is_eager=True,
        ),
        value_option(
            "--keep-snapshots",
            "N",
            "Keep N daily snapshots of a branch, then N weekly ones, then monthly ones. Needs "
            "--snapshot.",
            type=click.IntRange(1),
        ),
        value_option(
            "--drop",
            "RELEASE",
            "Leave out a release of the databases among the input, such as a snapshot. Repeatable.",
            multiple=True,
        ),
        value_option(
            "--modules",
            "[NAME=]PATH",
            "Modules of an installation: Spack's module-index.yaml, or JSON of Lmod's spider. "
            "Repeatable.",
            multiple=True,
            callback=_modules,
        ),
        value_option(
            "--snapshot",
            "DATE",
            "Also list mirrors as snapshots of this day, such as 2026-11-25.",
        ),
        value_option(
            "--stack",
            "NAME",
            "Stack of the indexes and mirrors; by default, the name of their folder.",
        ),
        value_option(
            "--release",
            "NAME",
            "Release of the indexes and mirrors; by default, the name of their folder.",
        ),
    ):
        command = option(command)
    return command


def pairs(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return name and value of each text of an option such as NAME=PATH."""
    names_and_values = []
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            expected = getattr(parameter, "metavar", "")
            raise click.BadParameter(
                f"{text!r} is not a pair, expected {expected}", ctx
            )
        names_and_values.append((name, value))
    return tuple(names_and_values)


def _modules(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> list[str | tuple[str, str]]:
    """Return paths, and pairs of a name and a path."""
    paths: list[str | tuple[str, str]] = []
    for text in texts:
        name, _, path = text.partition("=")
        # A path may have a = in the name of a folder.
        is_pair = path and os.sep not in name
        paths.append((name, path) if is_pair else text)
    return paths


def _given(
    ctx: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> Any:
    """Return the paths; they may be missing only with `--example` or
    `--installation`.
    """
    if not (paths or ctx.params.get("example") or ctx.params.get("installations")):
        raise click.MissingParameter(ctx=ctx, param=parameter)
    return paths


def names_in_file(
    ctx: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return the releases, stacks or targets that start with a text, for completion in
    a shell.

    The database is the file before this word, or else `spack-cache.db` in the current
    folder.
    """
    # Click stops parsing at an option without a value, and leaves the arguments in
    # `args`.
    typed = [ctx.params.get("file"), *reversed(ctx.args), "spack-cache.db"]
    files = [Path(word) for word in typed if word and Path(word).is_file()]
    if not files:
        return []
    try:
        with opened(files[0]) as lookups:
            if parameter.name == "stack":
                names = [stack.name for stack in lookups.stacks.values()]
            elif parameter.name in ("host", "target"):
                names = sorted(lookups.families)
            else:
                names = [release.name for release in lookups.releases.values()]
    except DatabaseError:
        return []
    return [name for name in names if name.startswith(begun)]


_SHARED = {
    "release": ("NAME", "Only binaries in this release."),
    "stack": ("NAME", "Only binaries in this stack."),
    "target": ("CPU", "Only binaries built for this CPU, such as x86_64_v3."),
    "host": ("CPU", "Only binaries that run on this CPU, such as zen3."),
    "here": (None, "Only binaries that run on this machine."),
    "spack": ("VERSION", "Read specs as this version of Spack does, such as 0.23."),
    "json": (None, "Print JSON."),
    "csv": (None, "Print CSV."),
    "markdown": (None, "Print Markdown."),
    "all": (None, "Show all rows; by default, a terminal shows 50."),
}
"""Options of several commands: metavar (None for a flag) and help."""
_COMPLETED = ("release", "stack", "target", "host")
_VARIABLES = {
    "json": "as_json",
    "csv": "as_csv",
    "markdown": "as_markdown",
    "all": "every",
}


def shared_options(*names: str) -> Callable[[F], F]:
    """Add options of several commands, in this order."""

    def add(command: F) -> F:
        for name in reversed(names):
            metavar, text = _SHARED[name]
            command = click.option(
                f"--{name}",
                _VARIABLES.get(name, name),
                metavar=metavar,
                is_flag=metavar is None,
                help=text,
                shell_complete=names_in_file if name in _COMPLETED else None,
            )(command)
        return command

    return add


def scope_from(options: dict[str, Any]) -> Scope:
    """Return the scope that options narrow an answer to; for `--here`, print the
    machine.
    """
    from spack_cache_db.query.names.scope import Scope

    # Only some commands have --os, --platform and --explicit.
    scope = Scope(
        release=options["release"],
        stack=options["stack"],
        host=options["host"],
        os=options.get("os") or None,
        platform=options.get("platform") or None,
        explicit=options.get("explicit", False),
    )
    if not options["here"]:
        return scope
    if options["host"]:
        raise click.UsageError("--here and --host exclude each other: give one of them")
    from spack_cache_db.spack.machine import this_machine

    machine = this_machine()
    facts = ", ".join(
        value for value in (machine.target, machine.os, machine.platform) if value
    )
    unknown = "".join(
        f"; {fact}: any operating system is shown" for fact in machine.unknown
    )
    say_notes([f"this machine is {facts}{unknown}"])
    # An option names the system for which to answer instead of that of the machine.
    return replace(
        scope,
        host=machine.target,
        os=scope.os or machine.os,
        platform=scope.platform or machine.platform,
    )
