"""The packages that a search finds, each with the processors that it has binaries for.

They are the packages that words mean (`packages_of_words`), or those of an answer that
asks for no package, such as `%gcc@13` (`packages_of_question`). A row has the counts of
its binaries by processor, and the build that its command installs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.choice.proposed import Proposal
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    StableVersions,
    Word,
    condition_value,
    only,
    without,
)
from spack_cache_db.query.match.candidates import Candidate, candidates_by_id
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import ResultSet, matching, spec_counts
from spack_cache_db.query.names.known import KnownName, known_name
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.gone import has_gone
from spack_cache_db.query.words.packages import find_packages
from spack_cache_db.site.charts.records import Cell
from spack_cache_db.site.filters import PLACES, Pagination, paginated
from spack_cache_db.site.pages.names import names_by_kind
from spack_cache_db.site.pages.processor_columns import (
    MACHINE_KINDS,
    NO_COUNTS,
    ProcessorColumns,
    counts_by_processor,
    processor_columns,
)
from spack_cache_db.spack.printing import variant_text
from spack_cache_db.spack.processors import OTHERS, Processor
from spack_cache_db.spack.queries import VariantConstraint

ROWS_OF_WORDS = 12
"""Limit of the packages of words that have a row; the others are named."""
ROWS_OF_QUESTION = 10
"""Packages on one page of an answer that asks for no package. Choosing the build of
each takes most of the time of the page.
"""


@dataclass(frozen=True, slots=True)
class PackageRow:
    """One package of an answer.

    Attributes:
        summary: the first sentence of its description; empty if it is not known.
        reason: why the package is shown, such as `provides lapack`; empty if its name
            or its description shows it.
        version: the version of the proposed build; empty without one.
        cells: the number of its binaries for each column.
        spec_count: the number of its binaries that satisfy the search.
        total: the number of all of its binaries.
        build: the proposed build in words; empty without one.
        why: why that build is proposed.
        commands: the commands that install or load it; None without one.
    """

    name: str
    summary: str
    reason: str
    version: str
    cells: tuple[Cell, ...]
    spec_count: int
    total: int
    build: str = ""
    why: str = ""
    commands: Commands | None = None

    @property
    def last_command(self) -> str:
        """The command that installs or loads the build; the lines before it prepare
        it.
        """
        if self.commands is None or not self.commands.commands:
            return ""
        return self.commands.commands[-1]


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages of an answer, the best first.

    Attributes:
        words: the words that mean them; empty for those of a question.
        processors: the columns of processors.
        rows: the packages with binaries, those with one that satisfies the search
            first.
        count: the number of packages with a binary that satisfies the search.
        asked: the number of all packages with binaries that the search is about.
        window: the page of the rows.
        more: names of packages with binaries that have no row.
        gone: packages whose mirror has lost all binaries.
        unbuilt: names of packages of Spack that have no binary in the database.
        reason: why the first of `unbuilt` matches, if its name does not show it.
        unmatched: the words that no package matches.
        is_guess: whether no word is known, and the packages have similar names.
        configuration_count: the configurations that satisfy a question; None for words.
        spec_count: the binaries that satisfy a question; None for words.
    """

    words: str
    processors: ProcessorColumns
    rows: tuple[PackageRow, ...]
    count: int
    asked: int
    window: Pagination
    more: tuple[str, ...] = ()
    gone: tuple[KnownName, ...] = ()
    unbuilt: tuple[str, ...] = ()
    reason: str = ""
    unmatched: tuple[str, ...] = ()
    is_guess: bool = False
    configuration_count: int | None = None
    spec_count: int | None = None

    def __bool__(self) -> bool:
        """Return whether there is a package."""
        return bool(self.rows or self.gone or self.unbuilt)


def packages_of_words(
    lookups: Lookups, words: Sequence[str], nouns: Sequence[str], scope: Conditions
) -> Packages:
    """Return the packages that words describe, or that `nouns` name.

    `scope` are the conditions on their binaries.
    """
    found = find_packages(lookups, words, nouns)

    # Packages with a binary, those that have lost all, and those that never had one.
    counts = package_counts(lookups)
    built = [name for name in found.reasons if counts[name]]
    without_binary = [name for name in found.reasons if not counts[name]]
    gone = _gone_among(lookups, without_binary)
    names_of_gone = {name.name for name in gone}
    unbuilt = [name for name in without_binary if name not in names_of_gone]

    packages = _table(lookups, built[:ROWS_OF_WORDS], found.reasons, scope)
    return replace(
        packages,
        words=" ".join(words),
        more=tuple(built[ROWS_OF_WORDS:]),
        gone=gone,
        unbuilt=tuple(unbuilt),
        reason=found.reasons[unbuilt[0]] if unbuilt else "",
        unmatched=found.unmatched,
        is_guess=found.is_guess,
    )


def packages_of_question(
    lookups: Lookups, question: Question, page: str | None
) -> Packages:
    """Return one page of the packages whose binaries satisfy a question, those with
    most of them first.
    """
    # Count the binaries of each package that satisfy the question.
    results = question.results
    counts = spec_counts(lookups, results)
    package_of = lookups.column("configurations", "package_id")
    of_package: Counter[int] = Counter()
    for key in results.ids:
        of_package[package_of[key]] += counts[key]

    # One page of them has rows.
    words = lookups.words["package"]
    names = {words[package]: count for package, count in of_package.items()}
    in_order = sorted(names, key=lambda name: (-names[name], name))
    window = paginated(len(in_order), page, ROWS_OF_QUESTION)
    shown = dict.fromkeys(in_order[window.rows], "")
    packages = _table(lookups, list(shown), shown, question.conditions)
    return replace(
        packages,
        count=len(in_order),
        asked=len(in_order),
        window=window,
        configuration_count=question.count(),
        spec_count=of_package.total(),
    )


def package_of_question(lookups: Lookups, package: str, scope: Conditions) -> Packages:
    """Return the row of one package, without a build."""
    return _table(lookups, [package], {package: ""}, scope, with_builds=False)


def _gone_among(lookups: Lookups, names: Sequence[str]) -> tuple[KnownName, ...]:
    """Return the packages whose mirror has lost all binaries."""
    if not has_gone(lookups):
        return ()
    known = [known_name(lookups, name) for name in names]
    return tuple(name for name in known if name.kind == "gone")


def _table(
    lookups: Lookups,
    names: Sequence[str],
    reasons: Mapping[str, str],
    conditions: Conditions,
    *,
    with_builds: bool = True,
) -> Packages:
    """Return packages as rows, those with a binary that satisfies the conditions
    first.
    """
    # The binaries of each package, with and without conditions on the machine.
    conditions = without(conditions, "package")
    package = Condition("package", "", OneOf(frozenset(names)))
    on_any_machine = (package, *without(conditions, *MACHINE_KINDS))
    for_any = matching(lookups, on_any_machine, in_order=False)
    counts = counts_by_processor(lookups, for_any)
    processors = processor_columns(lookups, counts.values(), conditions)
    results = for_any
    if only(conditions, *MACHINE_KINDS):
        results = matching(lookups, (package, *conditions), in_order=False)
    matching_counts = spec_counts(lookups, results)

    # The configurations of each package that satisfy the conditions.
    package_of = lookups.column("configurations", "package_id")
    words = lookups.words["package"]
    ids_of: dict[str, list[int]] = defaultdict(list)
    for key in results.ids:
        ids_of[words[package_of[key]]].append(key)

    proposals = {}
    commands: Mapping[int, Commands] = {}
    if with_builds:
        proposals = _proposals(lookups, results)
        commands = _commands(lookups, proposals, conditions)
    totals = package_counts(lookups)
    known_names = names_by_kind(lookups)
    has_platforms = len(lookups.words["platform"]) > 1
    rows = []
    for name in names:
        proposal = proposals.get(name)
        known = known_names.get(("package", name))
        row = PackageRow(
            name=name,
            summary="" if known is None else known.summary,
            reason=reasons[name],
            version="",
            cells=_cells(
                name,
                processors,
                counts.get(name, NO_COUNTS),
                conditions,
                has_platforms=has_platforms,
            ),
            spec_count=sum(matching_counts[key] for key in ids_of[name]),
            total=totals[name],
        )
        if proposal is not None:
            row = replace(
                row,
                version=proposal.configuration.version,
                build=proposal.build,
                why=proposal.reason,
                commands=commands.get(proposal.spec),
            )
        rows.append(row)

    # The sort is stable: the order of the names is kept otherwise.
    rows.sort(key=lambda row: row.spec_count == 0)
    return Packages(
        words="",
        processors=processors,
        rows=tuple(rows),
        count=sum(row.spec_count > 0 for row in rows),
        asked=len(rows),
        window=paginated(len(rows), None, max(1, len(rows))),
    )


def _cells(
    package: str,
    processors: ProcessorColumns,
    counts: Mapping[Processor, int],
    conditions: Conditions,
    *,
    has_platforms: bool,
) -> tuple[Cell, ...]:
    """Return the counts of a package, each with the page of these binaries.

    `has_platforms` is whether the database has binaries for several platforms: then a
    target alone is not enough.
    """
    filters = _filters_of(without(conditions, *MACHINE_KINDS))
    cells = []
    for column in processors.columns:
        processor = column.processor
        # The page of a package has no filter for all other processors, and none for
        # some conditions of a spec.
        path = None
        if processor is not OTHERS and filters is not None:
            machine = []
            if processor.target:
                machine.append(("target", processor.target))
            if has_platforms or not processor.target:
                machine.append(("platform", processor.platform))
            path = f"/package/{quote(package)}?{urlencode([*machine, *filters])}"
        cells.append(Cell(counts.get(processor, 0), path))
    return tuple(cells)


def _filters_of(conditions: Conditions) -> list[tuple[str, str]] | None:
    """Return the filters of a package's page that are these conditions; None if it has
    no filter for one of them, such as a range of versions.
    """
    filters = []
    for condition in conditions:
        match condition.value:
            case _ if condition.kind in PLACES:
                filters.append((condition.kind, condition.text))
            case Word(text):
                filters.append((condition.kind, text))
            case StableVersions():
                filters.append(("stable", "1"))
            case VariantConstraint(kind="bool", propagate=False) as variant:
                filters.append(("variant", variant_text(variant)))
            case _:
                return None
    return filters


def _proposals(lookups: Lookups, results: ResultSet) -> dict[str, Proposal]:
    """Return the proposed build of each package that has one."""
    candidates_of: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates_by_id(lookups, results.ids):
        candidates_of[candidate.key("package")].append(candidate)

    proposals = {}
    for candidates in candidates_of.values():
        proposal = propose(lookups, candidates, results.conditions)
        if proposal is not None:
            proposals[proposal.configuration.package] = proposal
    return proposals


def _commands(
    lookups: Lookups, proposals: Mapping[str, Proposal], conditions: Conditions
) -> Mapping[int, Commands]:
    """Return the commands for the proposed builds, from the release that is asked
    for.
    """
    release = condition_value(conditions, "release")
    names = lookups.release_names([release] if release else [])
    specs = [proposal.spec for proposal in proposals.values()]
    return commands_of(lookups, specs, names[0] if names else None)
