"""Compiler flags of a spec: the words of an option, and whether a spec was built with them.

The rules are those of Spack 1.1's `compilers/flags.py` and `FlagMap.satisfies`.
"""

from collections.abc import Iterable, Mapping, Sequence

from spack_cache_db.spack.constraints import Flag


def flag_words(value: str) -> tuple[str, ...]:
    """Split the value of an option in flags: `-O2 -I /usr` is `-O2` and `-I /usr`.

    A word without a dash is the value of the flag before it.
    """
    found: list[str] = []
    for word in value.split():
        if found and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return tuple(found)


def flags_match(asked: Iterable[Flag], flags: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a spec has each flag asked for, in any order.

    Args:
        asked: the options of a query; of a doubled sign Spack asks no more than of a single one.
        flags: what the spec was built with, by the name of the option.
    """
    return all(set(flag_words(flag.value)) <= set(flags.get(flag.name, ())) for flag in asked)
