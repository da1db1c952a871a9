"""Finds the packages that words of a search mean, and returns them as cards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.choice.proposed import Proposal
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    asked,
)
from spack_cache_db.query.match.candidates import candidates_by_id
from spack_cache_db.query.match.selection import counted_part, matching
from spack_cache_db.query.names.known import KnownName, known_name
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.configurations import Counted
from spack_cache_db.query.stored.gone import has_gone
from spack_cache_db.query.stored.presence import first_releases
from spack_cache_db.query.words.packages import find_packages
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.spack.versions import newest_version

MOST_CARDS = 8
MOST_RELEASES = 2
MOST_COMPILERS = 2
OPTIONS = ("+cuda", "+rocm", "+mpi", "+openmp", "+python", "+fortran")
"""Variants that a card shows, the best known first."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that words mean, the best first.

    Attributes:
        more: names of packages with binaries that have no card.
        gone: packages whose mirror has lost all binaries.
        unbuilt: names of packages of Spack that have no binary in the database.
        reason: why the first of `unbuilt` matches, if its name does not show it.
        is_guess: whether no word is known, and the packages have similar names.
    """

    words: str
    cards: tuple[dict[str, Any], ...]
    more: tuple[str, ...]
    gone: tuple[KnownName, ...]
    unbuilt: tuple[str, ...]
    reason: str
    unmatched: tuple[str, ...]
    is_guess: bool

    def __bool__(self) -> bool:
        """Return whether there is a package."""
        return bool(self.cards or self.gone or self.unbuilt)


def packages_of(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str], scope: Conditions
) -> Packages:
    """Return the packages that words describe, or that `nouns` name."""
    counts, found = package_counts(lookups), find_packages(lookups, words, nouns)
    built = [name for name in found.reasons if counts[name]]
    without_binary = [name for name in found.reasons if not counts[name]]
    gone: tuple[KnownName, ...] = ()
    if has_gone(lookups):
        names = (known_name(lookups, name) for name in without_binary)
        gone = tuple(name for name in names if name.kind == "gone")
    lost = {name.name for name in gone}
    unbuilt = [name for name in without_binary if name not in lost]
    cards = cards_of(
        lookups, {name: found.reasons[name] for name in built[:MOST_CARDS]}, scope
    )
    return Packages(
        words=" ".join(words),
        cards=tuple(sorted(cards, key=lambda card: not card["spec_count"])),
        more=tuple(built[MOST_CARDS:]),
        gone=gone,
        unbuilt=tuple(unbuilt),
        reason=found.reasons[unbuilt[0]] if unbuilt else "",
        unmatched=found.unmatched,
        is_guess=found.is_guess,
    )


def cards_of(
    lookups: Lookups, reasons: Mapping[str, str], scope: Conditions
) -> list[dict[str, Any]]:
    """Return a card for each package, in their order: `total` counts all of its
    binaries.

    The other facts are about binaries in the scope; `commands` are for the proposed
    `build`.
    """
    counts = package_counts(lookups)
    results = matching(
        lookups, (Condition("package", "", OneOf(frozenset(reasons))), *scope)
    )
    groups: dict[str, list[Counted]] = defaultdict(list)
    for row in counted_part(lookups, results, slice(None)):
        groups[row.configuration.package].append(row)
    proposals: dict[str, Proposal] = {}
    for name, group in groups.items():
        configurations = candidates_by_id(lookups, [row.id for row in group])
        proposal = propose(lookups, configurations, results.conditions)
        if proposal is not None:
            proposals[name] = proposal
    chosen = lookups.release_names(filter(None, [asked(scope, "release")]))
    specs = [proposal.spec for proposal in proposals.values()]
    commands = commands_of(lookups, specs, next(iter(chosen), None))
    summaries = {
        name: text for name, kind, text in load_names(lookups) if kind == "package"
    }
    cards = []
    for name in reasons:
        group = groups[name]
        proposal = proposals.get(name)
        command = commands.get(proposal.spec) if proposal else None
        rows, ids = [row.configuration for row in group], [row.id for row in group]
        variants = {text for row in rows for text in row.variants}
        cards.append(
            {
                "name": name,
                "reason": reasons[name],
                "summary": summaries.get(name, ""),
                "total": counts[name],
                "version": newest_version({row.version for row in rows}) or "",
                "spec_count": sum(row.spec_count for row in group),
                "compilers": [*_compilers([row.compiler for row in rows])],
                "variants": [text for text in OPTIONS if text in variants],
                "releases": chosen or first_releases(lookups, ids, MOST_RELEASES),
                "commands": command,
                "build": proposal.build if proposal else "",
            }
        )
    return cards


def _compilers(compilers: Sequence[str]) -> Iterator[str]:
    """Yield the most frequent compilers, with their first and last major versions."""
    uses = Counter(text.partition("@")[0] for text in compilers if text != NO_COMPILER)
    for name, _ in uses.most_common(MOST_COMPILERS):
        texts = {text.partition(".")[0].removeprefix(f"{name}@") for text in compilers}
        majors = sorted(int(text) for text in texts if text.isdecimal())
        first_to_last = "\N{EN DASH}".join(map(str, majors[:1] + majors[1:][-1:]))
        yield f"{name} {first_to_last}".strip()
