"""Commands with the arguments SPEC... [FILE], in which a spec may be several words.

`find hdf5 +mpi -szip %gcc@13 x.db` needs no quotes: all words except the database form
one spec.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.databases import FILE_VARIABLE, only_database
from spack_cache_db.cli.parameters import GivenPath

_MARK = " "
"""Put before a dashed word of a spec, so that Click takes it for an argument."""

_VARIANT = re.compile(r"-[^-]")
"""The beginning of a word such as `-mpi`, the variant that is off."""

_DASHED = re.compile(r"-.")
"""The beginning of a variant, or of an option of Spack such as `--fresh`."""

_UNQUOTED = re.compile(r"""([\w.-]+:?==?)([^'"].*\s.*)""", re.DOTALL)
"""A name with `=`, and a value with a blank but without quotes: `cflags=-O2 -g`."""


class SpecCommand(click.Command):
    """A command whose function takes a `spec` and a `file`, from words of a user."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        argument = click.Argument(
            ["words"],
            nargs=-1,
            metavar="SPEC... [FILE]",
            shell_complete=click.Path().shell_complete,
        )
        self.params.insert(0, argument)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line into `ctx.params`, with `spec` and `file`."""
        marked = list(self._marked(ctx, args))
        remaining = super().parse_args(ctx, marked)
        words = []
        for word in ctx.params.pop("words"):
            is_marked = word.startswith(f"{_MARK}-")
            words.append(word.removeprefix(_MARK) if is_marked else word)
        spec, file = _spec_and_database(ctx, words)
        ctx.params["spec"] = spec
        ctx.params["file"] = file
        return remaining

    def _marked(self, ctx: click.Context, args: list[str]) -> Iterator[str]:
        """Yield the command line, with `_MARK` before dashed words of the spec."""
        own_options: dict[str, click.Option] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                for name in option.opts:
                    own_options[name] = option

        # A pasted command, such as `spack install --fresh hdf5`, has options of Spack.
        # Otherwise, a word with two dashes is an option of ours with a mistake.
        is_pasted = "spack" in args
        part_of_spec = _DASHED if is_pasted else _VARIANT

        is_value = False
        for word in args:
            name, equals, _ = word.partition("=")
            if is_value:
                # The value of the option before it.
                yield word
                is_value = False
            elif name in own_options:
                yield word
                # `--stack=e4s` has its value already.
                is_value = not own_options[name].is_flag and not equals
            elif word != "--" and part_of_spec.match(word):
                yield f"{_MARK}{word}"
            else:
                yield word


def _spec_and_database(ctx: click.Context, words: list[str]) -> tuple[str, Path | None]:
    """Return the spec and the database of the words of a command line.

    Raises:
        UsageError: there is no spec, no database, or more than one database.
    """
    # The database is the last word, or that of the environment.
    file = None
    if _ends_with_database(words):
        *words, last = words
        file = GivenPath(path_type=Path).convert(last, None, ctx)
    default = os.environ.get(FILE_VARIABLE)
    if file is None and default:
        file = Path(default)

    # A shell that completes a word needs no spec.
    if ctx.resilient_parsing:
        return "", file

    # All other words are the spec.
    for word in words:
        if _is_database(word):
            message = "is a database: give the spec first, then one database"
            raise click.UsageError(f"{word} {message}", ctx)
    if not words:
        raise click.UsageError("Missing argument 'SPEC...': such as hdf5 +mpi", ctx)
    return spec_of_words(words), file or only_database(ctx)


def _ends_with_database(words: Sequence[str]) -> bool:
    """Return whether the last word is a database, or any file after a spec.

    The only word may be a spec, although a file has the same name. An empty word comes
    from a variable that is not set; it is refused as a path.
    """
    if not words:
        return False
    last = words[-1]
    if len(words) > 1 and (_is_path(last) or last == ""):
        return True
    return _is_database(last)


def _is_database(word: str) -> bool:
    from spack_cache_db.database_file import is_database

    return word.endswith(".db") or (_is_path(word) and is_database(Path(word)))


def _is_path(word: str) -> bool:
    return os.path.exists(word)  # noqa: PTH110 - a word may be too long for a path


def spec_of_words(words: Sequence[str]) -> str:
    """Return the spec that several words of a command line form.

    A shell removes quotes, so a value with a blank is quoted again, as Spack does:
    `cflags="-O2 -g"` arrives as `cflags=-O2 -g`. A single word stays as it is, because
    it may be a whole spec.
    """
    from spack_cache_db.spack.normal_forms import quoted

    if len(words) == 1:
        return words[0]
    texts = []
    for word in words:
        pair = _UNQUOTED.fullmatch(word)
        if pair:
            name_with_equals, value = pair.groups()
            texts.append(name_with_equals + quoted(value))
        else:
            texts.append(word)
    return " ".join(texts)
