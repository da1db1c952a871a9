"""Finds the spec in a text, or the specs in a line of a longer text.

`pasted_spec` reads a text that is one spec, `pasted_line` a line of a longer text. Both
read

| text | spec |
| --- | --- |
| a command, `$ spack install --fresh -j 8 hdf5+mpi` | `hdf5+mpi` |
| quotes and backticks, `'hdf5+mpi'` | `hdf5+mpi` |
| output of Spack 0.17 to 1.2, `[+]  2feova4  zlib@1.3` | `zlib@1.3 /2feova4` |
| a folder of an installation, `/opt/zlib-1.3-2feova4…` | `/2feova4…` |
| the name of a module, `hdf5/1.14.5-gcc-13.2.0` | `hdf5@1.14.5` |
| a version as pip and conda write it, `hdf5>=1.12` | `hdf5@1.12:` |
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.pasted.commands import spec_in_command
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.environments.pasted.modules import (
    HASH,
    spec_of_module,
    specs_of_modules,
)
from spack_cache_db.environments.pasted.prefixes import spec_of_prefix_line
from spack_cache_db.environments.pasted.printed import cells_of, hashes_of
from spack_cache_db.environments.pasted.quotes import (
    plain,
    quoted_part,
    unquoted,
    without_prompt,
)
from spack_cache_db.environments.pasted.version_signs import with_spack_versions
from spack_cache_db.spack.lexer import QuerySyntaxError, tokens
from spack_cache_db.spack.queries import SpecQuery

LONGEST = 10_000
"""Maximum length of a text that is searched for a spec."""
_BARE_HASH = re.compile(r"[a-z2-7]{7,32}")
"""The beginning of a hash, at least as long as Spack prints it."""
_BEFORE_A_DEPENDENCY = ("dependency", "edge_start", "edge_end")
"""The kinds of tokens behind which a name is that of a dependency: `^`, `%[`, `]`."""


def pasted_spec(text: str, known_names: KnownNames = ANY_NAME) -> PastedSpec:
    """Return the spec of a text that a person pasted.

    A text that cannot be read in another way is returned as it is, for the parser of
    specs. `known_names` decides, for example, which words are modules.
    """
    if len(text) > LONGEST:
        return PastedSpec(text)
    # A backslash at the end of a line continues it.
    text = re.sub(r"\\\s*\n\s*", " ", plain(text).strip())
    quoted = quoted_part(text)
    if quoted is not None:
        text = quoted.text
    text = unquoted(text)

    # The kinds of texts, from the most to the least certain.
    command = spec_in_command(text)
    if command is not None:
        return command
    prefix = spec_of_prefix_line(text, known_names)
    if prefix is not None:
        return prefix
    module = spec_of_module(text, known_names)
    if module is not None:
        return module
    # In output of Spack, a lone `-` is a state only behind a blank.
    cells = cells_of(f" {text}", known_names)
    if len(cells) == 1 and (cells[0].state or cells[0].hash):
        return cells[0].read("")
    return _typed(without_prompt(text), known_names)


def pasted_line(
    line: str,
    known_names: KnownNames = ANY_NAME,
    heading: str | None = None,
    *,
    is_module_list: bool = False,
) -> tuple[PastedSpec, ...]:
    """Return the specs of a line of a longer text.

    A line that cannot be read in another way is returned as it is, for the parser of
    specs.

    Args:
        line: the line, without terminal sequences.
        known_names: decides, for example, which words are modules.
        heading: constraints from a heading of Spack's output, as a spec; None outside
            such output.
        is_module_list: whether a heading of `module avail` is above the line.
    """
    text = line.strip()
    quoted = quoted_part(text)
    if quoted is not None:
        # In a sentence, only a command in quotes counts.
        is_alone = not quoted.before.strip("-*• ")
        if is_alone or "spack " in quoted.text:
            text = quoted.text
    text = unquoted(text)

    # The kinds of lines, from the most to the least certain.
    command = spec_in_command(text)
    if command is not None:
        return _separated(command)
    prefix = spec_of_prefix_line(text, known_names)
    if prefix is not None:
        return (prefix,)
    modules = specs_of_modules(text, known_names, is_list=is_module_list)
    if modules:
        return modules
    hashes = hashes_of(text, known_names)
    if hashes:
        return hashes
    # Output of Spack has no quotes, and the blanks at its beginning count.
    in_columns = line if text == line.strip() else text
    cells = cells_of(in_columns, known_names, is_output=heading is not None)
    if heading is not None or any(cell.state or cell.hash for cell in cells):
        return tuple(cell.read(heading or "") for cell in cells)
    return _separated(_typed(without_prompt(text), known_names))


def _separated(pasted: PastedSpec) -> tuple[PastedSpec, ...]:
    """Return each spec of a text such as `hdf5+mpi zlib` as a record of its own."""
    specs = separate_specs(pasted.spec)
    return tuple(replace(pasted, spec=spec) for spec in specs)


def _typed(text: str, known_names: KnownNames) -> PastedSpec:
    """Return the spec that a person typed, perhaps with a version as pip writes it."""
    if _is_bare_hash(text, known_names):
        return PastedSpec(f"/{text.lower()}")
    versions = with_spack_versions(text, known_names.is_package)
    if versions is None:
        return PastedSpec(text)
    return PastedSpec(versions.spec, note=versions.note)


def separate_specs(text: str) -> list[str]:
    """Split a text of several specs, such as the arguments of a command.

    `hdf5 +mpi ^zlib cmake` has `hdf5 +mpi ^zlib` and `cmake`: a name that does not
    follow a `%` or `^` begins a spec. A text with a syntax error is returned as one.
    """
    try:
        words = tokens(text)
    except QuerySyntaxError:
        return [text]
    starts = [0]
    for before, word in pairwise(words):
        if word.kind == "name" and before.kind not in _BEFORE_A_DEPENDENCY:
            starts.append(word.column)
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def is_visible(query: SpecQuery) -> bool:
    """Return whether the text of a query has the syntax of a spec, not only a name.

    Other texts parse as specs, too: `NAME=value` with capitals is a variable of a
    shell, `-name` may be an option of a command, and a slash may be part of a path.
    """
    if query.name is not None and query.name != query.name.lower():
        return False
    if query.versions or query.os or query.platform or query.target:
        return True
    if query.flags or query.dependencies:
        return True
    # Behind a name, a hash has seven or 32 characters.
    pattern = HASH if query.name else "[a-z2-7]+"
    if re.fullmatch(pattern, query.hash or ""):
        return True
    # `+mpi`, `~mpi` or `api=v18`, but not `-mpi`.
    for variant in query.variants:
        sign = query.text[variant.column : variant.column + 1]
        if variant.name == variant.name.lower() and sign != "-":
            return True
    return False


def has_options(query: SpecQuery) -> bool:
    """Return whether a query is a command with options, such as `gcc --version`.

    `--version` and `-v` parse as variants.
    """
    if is_visible(query):
        return False
    for variant in query.variants:
        start = query.text[variant.column : variant.column + 3]
        is_long = start.startswith("--")
        # `-v` ends behind its letter.
        is_short = start.startswith("-") and not start[2:].strip()
        if is_long or is_short:
            return True
    return False


def _is_bare_hash(text: str, known_names: KnownNames) -> bool:
    """Return whether a text is the beginning of a hash without its slash, as
    `spack find -l` prints it: `2feova4`.
    """
    if not _BARE_HASH.fullmatch(text.lower()):
        return False
    return not known_names.is_package(text) and known_names.is_hash(text.lower())
