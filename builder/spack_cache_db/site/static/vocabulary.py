"""`vocabulary.json`: the names and lists with which a browser reads a search in words.

`static-site/words.js` reads words as `query/words` does. Each name, list and pattern
that it needs stands once, in Python, and is exported from here: the packages with their
binaries by toolchain, names of other package managers, processors and what runs on
them, graphics processors, systems and compilers.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from spack_cache_db.query.names.spellings import MOST_NEAR, SIMILARITY, package_counts
from spack_cache_db.query.open.lookups import Lookups, has_records, read_lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.words import (
    packages,
    reader,
    splitting,
    systems,
    vocabulary,
    word_reader,
)
from spack_cache_db.query.words.vocabulary import packages_providing
from spack_cache_db.site.pages.package_rows import ROWS_OF_WORDS
from spack_cache_db.site.pages.search_answers import SIGNS
from spack_cache_db.site.pages.search_tokens import KINDS
from spack_cache_db.site.search_words import PHRASES
from spack_cache_db.spack.facts import (
    GPU_ARCHITECTURES,
    GPU_SWITCHES,
    LEGACY_COMPILERS,
    VARIANTS_WITHOUT_RECIPE,
)
from spack_cache_db.spack.processors import LINUX, PROCESSORS, processor_of
from spack_cache_db.spack.targets import (
    MAC,
    ancestors,
    family,
    is_known,
    known_targets,
    macs_of,
)
from spack_cache_db.spack.versions import version_key

VOCABULARY = "vocabulary.json"
"""The name of the file, beside the catalogue."""
BUILDS = """
SELECT packages.name, compilers.compiler, operating_systems.name, platforms.name,
  targets.name, variant_set_id, sum(configurations.spec_count)
FROM configurations
JOIN packages ON packages.id = configurations.package_id
JOIN compilers ON compilers.id = configurations.compiler_id
JOIN operating_systems ON operating_systems.id = configurations.os_id
JOIN platforms ON platforms.id = configurations.platform_id
JOIN targets ON targets.id = configurations.target_id
GROUP BY package_id, compiler_id, os_id, platform_id, target_id, variant_set_id
ORDER BY 1, 2, 3, 4, 5, 6
"""
"""The number of binaries of each package by compiler, system, target and variants,
0 for those that were only listed once.
"""
OPTIONS = """
SELECT variant_set_id, variants.name, variants.value FROM variant_set_members
JOIN variants ON variants.id = variant_id
WHERE variants.name NOT IN (SELECT value FROM json_each(:left_out))
ORDER BY 1, 2, 3
"""
"""The variants of each set."""
SWITCHED = {"true": "+{name}", "false": "~{name}"}
"""How a spec has a variant that is on or off."""
DESCRIPTIONS = "SELECT 1 FROM known_packages WHERE description IS NOT NULL LIMIT 1"
VERSIONS = """
SELECT packages.name, versions.name FROM versions
JOIN packages ON packages.id = versions.package_id
WHERE EXISTS (
  SELECT 1 FROM configurations
  WHERE configurations.version_id = versions.id AND configurations.spec_count > 0)
ORDER BY packages.name, versions.position
"""
"""The versions of each package that have a binary, the oldest first."""


def search_vocabulary(conn: sqlite3.Connection) -> dict[str, Any]:
    """Return the vocabulary of a database, for `vocabulary.json`."""
    lookups = read_lookups(conn)
    return {
        **_names_of_people(),
        **_names_of_database(lookups),
        **_targets(lookups),
        **_packages(lookups),
        "patterns": _patterns(),
        "limits": _limits(),
        "labels": KINDS,
        "phrases": PHRASES,
    }


def _names_of_people() -> dict[str, Any]:
    """Return what people call things, from `words.toml`, and what Spack calls them."""
    generations = {
        name: list(targets) for name, targets in vocabulary.GENERATIONS.items()
    }
    return {
        "fillers": sorted(vocabulary.FILLERS),
        "negations": sorted(vocabulary.NEGATIONS),
        "targetNames": vocabulary.TARGET_NAMES,
        "generations": generations,
        "platformNames": vocabulary.PLATFORM_NAMES,
        "processorsOfLinux": sorted(vocabulary.PROCESSORS_OF_LINUX),
        "systemNames": vocabulary.SYSTEM_NAMES,
        "systemsOfSpack": sorted(vocabulary.SYSTEMS_OF_SPACK),
        "compilerNames": vocabulary.COMPILER_NAMES,
        "legacyCompilers": LEGACY_COMPILERS,
        "variantNames": vocabulary.VARIANT_NAMES,
        "packageNames": vocabulary.PACKAGE_NAMES,
        "packageForms": [
            [_whole(form), text.replace("{}", "$1")]
            for form, text in vocabulary.PACKAGE_FORMS
        ],
        "packagePrefixes": vocabulary.PREFIXES,
        "languagePrefixes": packages.LANGUAGE_PREFIXES,
        "gpus": GPU_ARCHITECTURES,
        "gpuSwitches": GPU_SWITCHES,
    }


def _names_of_database(lookups: Lookups) -> dict[str, Any]:
    """Return the names of the database that are not those of packages."""
    # The names of virtual packages, and what people call some of them.
    virtuals = {*lookups.providers, *vocabulary.PROVIDERS, *vocabulary.LANGUAGE_NAMES}
    providers = {name: packages_providing(lookups, name) for name in sorted(virtuals)}
    # Systems in the order of their versions: the newest of several is the last one.
    known_systems = set(lookups.words["os"].values())
    has_descriptions = any(select(lookups.conn, DESCRIPTIONS))
    return {
        "releases": [release.name for release in lookups.releases.values()],
        "stacks": [stack.name for stack in lookups.stacks.values()],
        "systems": sorted(known_systems, key=version_key),
        "platforms": sorted(set(lookups.words["platform"].values())),
        "compilers": sorted(lookups.compilers),
        "providers": {name: found for name, found in providers.items() if found},
        "virtuals": sorted(lookups.providers),
        "hasDependencies": has_records(lookups.conn),
        "hasDescriptions": has_descriptions,
    }


def _targets(lookups: Lookups) -> dict[str, Any]:
    """Return the targets that archspec knows, each with its family and all other
    targets whose binaries run on it; those of the database that it does not know; and
    which machines are Macs.
    """
    targets = {name: [family(name), *ancestors(name)] for name in known_targets()}
    of_database = set(lookups.words["target"].values())
    unknown = sorted(name for name in of_database if not is_known(name))
    return {
        "targets": targets,
        "unknownTargets": unknown,
        "macs": macs_of(known_targets()),
        "mac": MAC,
        "linux": LINUX,
    }


def _packages(lookups: Lookups) -> dict[str, Any]:
    """Return the packages with what they have binaries for.

    A package is a list: its name, its builds as numbers in one list, and its versions,
    the oldest first. A build is three numbers: a toolchain, a set of options, and the
    number of binaries. Toolchains, options and sets of options are positions in their
    own lists.
    """
    conn = lookups.conn
    sets, options = _sets_of_options(conn)
    set_numbers = _Positions()
    toolchains = _Positions()
    builds: dict[str, list[int]] = defaultdict(list)
    for name, *toolchain, variant_set, count in select(conn, BUILDS):
        toolchain_number = toolchains.of(tuple(toolchain))
        set_number = set_numbers.of(sets.get(variant_set, ()))
        builds[name] += (toolchain_number, set_number, count)

    versions: dict[str, list[str]] = defaultdict(list)
    for name, version in select(conn, VERSIONS):
        versions[name].append(version)

    # A package without lists is one of Spack's that no release lists.
    has_release = {
        name: bool(count) for name, count in select(conn, word_reader.PACKAGES)
    }
    rows: list[list[Any]] = []
    for name, count in package_counts(lookups).items():
        is_listed = count > 0 or has_release.get(name, False)
        rows.append([name, builds[name], versions[name]] if is_listed else [name])
    return {
        "processors": [list(column) for column in PROCESSORS],
        "toolchains": [
            [*toolchain, PROCESSORS.index(processor_of(toolchain[2], toolchain[3]))]
            for toolchain in toolchains
        ],
        "options": list(options),
        "optionSets": list(set_numbers),
        "packages": rows,
    }


def _sets_of_options(
    conn: sqlite3.Connection,
) -> tuple[Mapping[int, tuple[int, ...]], _Positions]:
    """Return the options of each set of variants, as positions, and all options.

    Options are written as in a spec: `+cuda`, `cuda_arch=80`. Patches and commits are
    left out: they are long, and nobody searches for them.
    """
    options = _Positions()
    sets: dict[int, tuple[int, ...]] = defaultdict(tuple)
    left_out = json.dumps(sorted(VARIANTS_WITHOUT_RECIPE))
    for variant_set, name, value in select(conn, OPTIONS, left_out=left_out):
        option = SWITCHED.get(value, "{name}={value}")
        text = option.format(name=name, value=value)
        sets[variant_set] += (options.of(text),)
    return sets, options


def _patterns() -> dict[str, Any]:
    """Return the patterns of the reader for JavaScript: a pattern and its flags."""
    return {
        "signs": [SIGNS.pattern, ""],
        "separators": [splitting.SEPARATORS.pattern, ""],
        "comparison": [splitting.COMPARISON.pattern, "g"],
        "otherCommand": [splitting.OTHER_COMMAND.pattern, ""],
        "withGpu": [splitting.WITH_GPU.pattern, "gi"],
        "number": [_whole(splitting.NUMBER), ""],
        "namesAndVersions": [
            [_whole(pattern), ""] for pattern in splitting.NAMES_AND_VERSIONS
        ],
        "syntax": [f"^(?:{word_reader.SPACK_SYNTAX.pattern})", ""],
        "gpu": [_whole(word_reader.GPU), ""],
        "gpuArchitecture": [_whole(word_reader.GPU_ARCHITECTURE), ""],
        "system": [_whole(systems.SYSTEM), ""],
        "notInSystems": [systems.NOT_IN_SYSTEMS.pattern, "g"],
    }


def _limits() -> dict[str, Any]:
    """Return the numbers of the reader, and the signs that join words."""
    return {
        "words": reader.MOST_WORDS,
        "joined": reader.MOST_JOINED,
        "joints": word_reader.JOINTS,
        "ranges": splitting.RANGES,
        "shortestPart": packages.SHORTEST_PART,
        "shortestInside": packages.SHORTEST_INSIDE,
        "guessed": packages.MOST_GUESSED,
        "near": MOST_NEAR,
        "similarity": SIMILARITY,
        "rows": ROWS_OF_WORDS,
    }


class _Positions:
    """Assigns consecutive numbers to values."""

    def __init__(self) -> None:
        self._positions: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        """Return the number of a value, the next one if it is new."""
        return self._positions.setdefault(value, len(self._positions))

    def __iter__(self) -> Iterator[Any]:
        """Yield the values in the order of their numbers."""
        return iter(self._positions)


def _whole(pattern: re.Pattern[str]) -> str:
    """Return a pattern for JavaScript that matches a whole text, as `fullmatch`."""
    named_groups = pattern.pattern.replace("(?P<", "(?<")
    return f"^(?:{named_groups})$"
