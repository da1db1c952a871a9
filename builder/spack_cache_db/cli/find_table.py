"""The table of `find`: a row for each configuration, or for each binary.

```
7 configurations, 91 binaries
all: py-mpi4py build_system=python_pip

version  compiler    os           platform  target       binaries  releases  stacks
4.0.1    gcc@11.4.0  ubuntu22.04  linux     x86_64_v3    30        develop   e4s hep
4.0.1    gcc@11.4.0  ubuntu22.04  linux     neoverse_v2  12        develop   e4s-arm
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spack_cache_db.cli.tables import NOTHING, Table, more_rows, wrapped
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration

if TYPE_CHECKING:
    from spack_cache_db.query.answers.find import Found
    from spack_cache_db.query.stored.presence import FoundSpec

_WORDS = tuple(name for name in Configuration._fields if name != "variants")
"""The columns from `package` to `target`, whose texts are one word."""

PROVIDED = "provided by the system"
GONE = "gone from its mirror"

_LONG = ("releases", "variants", "stacks", "differences", "module", PROVIDED, GONE)
"""The last columns, with long texts, which may go below their row."""

_PRESENCE = ("last seen", *_LONG)
"""The columns that say where binaries are, and how they differ."""

_OPTIONAL = ("last seen", "platform", "stacks", "releases")
"""The columns that a narrow terminal leaves out, the least useful first."""

_MOST_DIFFERENCES = 5
"""The most differences that are printed for a binary."""


def find_table(
    configurations: Sequence[Found],
    total: int | None = None,
    max_rows: int | None = None,
    *,
    hashes: bool,
    installations: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of the table, with a summary above it.

    Values that all configurations share are printed once, above the table.

    Args:
        configurations: configurations to print, at least one.
        total: number of configurations that satisfy the spec; None if all are printed.
        max_rows: rows of the table; None for all.
        hashes: one row per binary instead of one per configuration.
        installations: names of the releases that are installations. A row names all of
            those that have its binary, and only one other release.
    """
    from spack_cache_db.query.stored.configurations import shared_variants

    total = total or len(configurations)
    # An installation also has specs that are not binaries.
    singular, plural = ("spec", "specs") if installations else ("binary", "binaries")
    yield _summary(configurations, total, singular, plural)

    # Values that all rows share stand above the table. The version stays in the table
    # too, so that it has a column for the configuration.
    common_variants = shared_variants([found.variants for found in configurations])
    names = list(_WORDS)
    if len(configurations) > 1:
        same = [name for name in _WORDS if _is_same(configurations, name)]
        shared = _shared_values(configurations[0], same, common_variants)
        if shared:
            yield from wrapped(f"all: {' '.join(shared)}")
        names = [name for name in _WORDS if name not in same or name == "version"]

    # A row is a configuration with the number of its binaries, or a binary with its
    # hash.
    rows = []
    for found in configurations:
        words = [getattr(found, name) for name in names]
        own_variants = [text for text in found.variants if text not in common_variants]
        variants = " ".join(own_variants)
        if hashes:
            for spec in found.specs or ():
                cells = _presence_cells(spec, variants, installations, spec.differences)
                rows.append([*words, spec.hash, *cells])
        else:
            cells = _presence_cells(found, variants, installations)
            rows.append([*words, f"{found.spec_count:,}", *cells])
    headings = [*names, "hash" if hashes else plural, *_PRESENCE]
    shown = rows[:max_rows]
    yield ""
    yield from Table(headings, shown, optional=_OPTIONAL, long=_LONG).lines()

    # Rows that were made and cut, and configurations that were not read at all.
    hidden_count = len(rows) - len(shown) + total - len(configurations)
    if max_rows is not None and hidden_count:
        yield ""
        yield more_rows(hidden_count)


def _summary(
    configurations: Sequence[Found], total: int, singular: str, plural: str
) -> str:
    """Return a line such as `50 of 120 configurations, 61 binaries`.

    The binaries are those of the configurations that are printed.
    """
    count = len(configurations)
    part = f"{count:,} of " if count < total else ""
    specs = sum(found.spec_count for found in configurations)
    return (
        f"{part}{counted(total, 'configuration')}, {counted(specs, singular, plural)}"
    )


def _is_same(configurations: Sequence[Found], name: str) -> bool:
    values = {getattr(found, name) for found in configurations}
    return len(values) == 1


def _shared_values(
    first: Found, same: Sequence[str], variants: Sequence[str]
) -> list[str]:
    """Return the values that all configurations share, such as `hdf5@1.14.6`, `rhel9`.

    Args:
        first: one of the configurations.
        same: the columns in which they do not differ.
        variants: the variants that they share.
    """
    shared = []
    if "package" in same:
        version = f"@{first.version}" if "version" in same else ""
        shared.append(f"{first.package}{version}")
    for name in same:
        if name not in ("package", "version"):
            shared.append(getattr(first, name))
    return [*shared, *variants]


def _presence_cells(
    row: Found | FoundSpec,
    variants: str,
    installations: Sequence[str],
    differences: Sequence[str] = (),
) -> list[str]:
    """Return the cells of a row in the columns `_PRESENCE`.

    Args:
        row: a configuration, or a binary.
        variants: the variants that not all configurations share.
        installations: the releases that are installations.
        differences: how a binary differs from the others of its configuration.
    """
    shown_differences = list(differences[:_MOST_DIFFERENCES])
    hidden_count = len(differences) - len(shown_differences)
    if hidden_count > 0:
        shown_differences.append(f"and {hidden_count} more")
    cells = {
        "last seen": row.last_seen,
        "releases": _releases(row.releases, installations),
        "variants": variants,
        "stacks": " ".join(row.stacks),
        "differences": ", ".join(shown_differences),
        "module": "" if row.is_external else _module(row),
        PROVIDED: _provided(row) if row.is_external else "",
        GONE: "yes" if row.is_gone else "",
    }
    return [cells[name] or NOTHING for name in _PRESENCE]


def _releases(releases: Sequence[str], installations: Sequence[str]) -> str:
    """Return installations, or else the first release, and how many others there are.

    For example `frontier perlmutter`, or `develop +4`.
    """
    named = [name for name in installations if name in releases]
    if not named:
        named = list(releases[:1])
    text = " ".join(named)
    hidden_count = len(releases) - len(named)
    if hidden_count > 0:
        text += f" +{hidden_count}"
    return text


def _provided(row: Found | FoundSpec) -> str:
    """Return the folder of a package of the system, and the modules that load it."""
    texts = []
    if row.prefix:
        texts.append(row.prefix)
    if row.modules:
        texts.append(f"module load {_module(row)}")
    return ", ".join(texts) or "yes"


def _module(row: Found | FoundSpec) -> str:
    """Return the modules to load, with their folder if several folders have this
    module.
    """
    modules = " ".join(row.modules)
    return f"{modules} in {row.module_tree}" if row.module_tree else modules
