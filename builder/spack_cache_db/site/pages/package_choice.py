"""The choices on the page of a package: version, machine, system, and options.

Each choice is a link. A value that no binary has together with the filters of the page
is not a link, and its note gives the reason. The values of the build whose commands are
shown are marked, whether a reader chose them or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import PLACE_KINDS
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.match.misses import Misses, positions_of_bits
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.package_data import VariantNote
from spack_cache_db.site.charts.records import Life
from spack_cache_db.site.filters import Filters, value_of
from spack_cache_db.site.names_for_people import compiler_name, system_name
from spack_cache_db.site.pages.package_processors import Processor, processors_of
from spack_cache_db.site.pages.package_versions import (
    RESULT,
    Versions,
    build_of,
    builds_of,
)
from spack_cache_db.site.words import vocabulary_of
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import Build

MOST_VERSIONS = 6
MOST_SYSTEMS = 6
MOST_SWITCHES = 6
KNOWN_OPTIONS = ("mpi", "cuda", "rocm", "openmp", "shared", "python")
"""Options that come first, the best known first."""
_OF_MACHINES = ("host", "platform", "target")
_OF_SYSTEMS = ("compiler", "os")


class Pick(NamedTuple):
    """A value that can be chosen.

    Attributes:
        name: its name for people.
        note: a few words below it; for an impossible value, the reason.
        path: the address of the page with it, or without it if it is one of the
            filters; None if no binary has it together with the filters.
        is_chosen: whether the build whose commands are shown has it.
        is_past: whether the newest snapshot does not list it any more.
    """

    name: str
    note: str
    path: str | None
    is_chosen: bool = False
    is_past: bool = False

    @property
    def kind(self) -> str:
        """The class of its element: `chosen`, `past`, `impossible`, or none."""
        if self.path is None:
            return "impossible"
        if self.is_chosen:
            return "chosen"
        return "past" if self.is_past else ""


class Group(NamedTuple):
    """The values of one choice, of which `rest` more are not shown."""

    label: str
    picks: tuple[Pick, ...]
    rest: int = 0


class Switch(NamedTuple):
    """An option that a build has or lacks.

    Attributes:
        name: the name of the variant.
        text: the variant as the build has it, such as `~mpi`.
        path: the address of the page with the opposite; None if no binary has that
            together with the filters.
        is_on: whether the build has it.
        reason: why the opposite is impossible; empty if it is possible.
        hint: what Spack says about the variant; empty without package data.
    """

    name: str
    text: str
    path: str | None
    is_on: bool
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Chooser:
    """All choices of a page."""

    groups: tuple[Group, ...]
    switches: tuple[Switch, ...]


@dataclass(frozen=True, slots=True)
class ChooserInput:
    """What the choices are made of.

    Attributes:
        misses: the filters that each configuration of the package does not satisfy.
        versions: the versions of the package, the newest first.
        lives: the days of the versions.
        newest: the newest version of a binary.
        notes: what Spack says about variants.
        proposed: the build whose commands are shown; None without one.
    """

    lookups: Lookups
    filters: Filters
    misses: Misses
    versions: Versions
    lives: Mapping[str, Life]
    newest: str | None
    notes: Mapping[str, VariantNote]
    proposed: Configuration | None


def chooser_of(given: ChooserInput) -> Chooser:
    """Return the choices of a package's page; choices of a single value are left out
    unless it is impossible.
    """
    groups = [_version_group(given), _machine_group(given), _system_group(given)]
    return Chooser(
        groups=tuple(group for group in groups if group.picks),
        switches=_switches(given),
    )


# Each test of a value is a function of a row.
Test = Callable[[Candidate], bool]


class _Left(NamedTuple):
    """What is left if the filters of one choice are left out.

    Attributes:
        rows: the configurations that satisfy all other filters.
        others: the positions of the conditions of these filters.
    """

    rows: Sequence[Candidate]
    own: frozenset[int]


def _without(given: ChooserInput, kinds: Iterable[str], texts: Sequence[str]) -> _Left:
    """Return what is left without the filters of some kinds and, of variants, only
    without these texts.
    """
    own = set()
    for position, condition in enumerate(given.misses.conditions):
        is_own_variant = condition.kind == "variant" and condition.text in texts
        if is_own_variant or condition.kind in kinds:
            own.add(position)
    return _Left(list(given.misses.fitting(own)), frozenset(own))


def _reason(given: ChooserInput, left: _Left, test: Test) -> str:
    """Return why no configuration with a value satisfies the other filters.

    Of the configurations with the value, the one that misses fewest filters counts.
    """
    misses = given.misses
    own = sum(1 << position for position in left.own)
    fewest: int | None = None
    for row, missed in zip(misses.rows, misses.missed, strict=True):
        if not row.spec_count or not test(row):
            continue
        bits = missed & ~own
        if fewest is None or bits.bit_count() < fewest.bit_count():
            fewest = bits
    words = vocabulary_of(given.lookups.is_installed)
    if fewest is None:
        return words.none([])
    positions = positions_of_bits(fewest)
    if not positions:
        # Its words satisfy all filters, so the release or the stack lacks it.
        positions = misses.positions_of(*PLACE_KINDS)
    conditions = [misses.conditions[position] for position in positions]
    return words.none([(item.kind, item.text) for item in conditions])


def _changed(filters: Filters, **changes: str | tuple[str, ...] | None) -> str:
    return f"{filters.address(**changes)}{RESULT}"


def _version_group(given: ChooserInput) -> Group:
    """Return the versions: the first of them, and the chosen one."""
    left = _without(given, ("version",), ())
    names = given.lookups.words["version"]
    possible = {names[row.key("version")] for row in left.rows}
    chosen = given.filters.version
    if given.proposed is not None:
        chosen = given.proposed.version
    picks: list[Pick] = []
    for version, rows in given.versions:
        # Versions whose binaries are all lost cannot be chosen.
        is_chosen = version == chosen
        is_shown = len(picks) < MOST_VERSIONS or given.filters.versions == "all"
        if not is_shown and not is_chosen:
            continue
        life = given.lives.get(version)
        if version not in possible:
            key = rows[0].key("version")
            reason = _reason(given, left, _has_version(key))
            picks.append(Pick(version, reason, None, is_chosen))
            continue
        is_pinned = version == given.filters.version
        path = _changed(given.filters, version=None if is_pinned else version)
        is_past = life is not None and life.is_gone
        note = _version_note(version, given.newest, life)
        picks.append(Pick(version, note, path, is_chosen, is_past))
    return Group("Version", tuple(picks), len(given.versions) - len(picks))


def _has_version(key: int) -> Test:
    return lambda row: row.key("version") == key


def _version_note(version: str, newest: str | None, life: Life | None) -> str:
    """Return what is said about a version: that it is the newest, or its days."""
    if version == newest:
        return "newest"
    return "" if life is None else life.words


def _machine_group(given: ChooserInput) -> Group:
    """Return the machine of the page, if it has one, and the processors."""
    lookups = given.lookups
    filters = given.filters
    left = _without(given, _OF_MACHINES, ())
    every_build = builds_of(lookups, given.misses.rows)
    possible = builds_of(lookups, left.rows)
    processors = processors_of(lookups, every_build)
    host = filters.host
    proposed = None
    if given.proposed is not None:
        proposed = Build(given.proposed.platform, given.proposed.target)

    picks = []
    is_processor = host in {processor.target for processor in processors}
    if host is not None and not is_processor:
        # The machine itself, and what is built for it.
        path = _changed(filters, host=None)
        note = f"{proposed.target} build" if proposed else "none"
        picks.append(Pick(host, note, path, is_chosen=True))
    for processor in processors:
        own = processor.host_filters(every_build)
        is_pinned = filters.host == own.host and filters.platform == own.platform
        is_pinned = is_pinned and filters.target is None
        is_chosen = is_pinned
        if host is None:
            is_chosen = proposed is not None and processor.has(proposed)
        elif host == own.host and proposed is not None:
            # The machine of the whole site has no platform.
            is_chosen = filters.target is None and processor.runs(proposed)
        if not any(processor.runs(build) for build in possible):
            reason = _reason(given, left, _runs_on(lookups, processor))
            picks.append(Pick(processor.name, reason, None, is_chosen))
            continue
        chosen = Filters() if is_pinned else own
        path = _changed(
            filters, host=chosen.host, platform=chosen.platform, target=None
        )
        note = processor.note or "only this processor"
        picks.append(Pick(processor.name, note, path, is_chosen))
    return Group("Machine", tuple(picks))


def _runs_on(lookups: Lookups, processor: Processor) -> Test:
    return lambda row: processor.runs(build_of(lookups, row))


def _system_group(given: ChooserInput) -> Group:
    """Return the operating systems with their compilers, those with most binaries
    first.
    """
    lookups = given.lookups
    filters = given.filters
    left = _without(given, _OF_SYSTEMS, ())
    possible = {(row.key("os"), row.key("compiler")) for row in left.rows}
    counts: Counter[tuple[int, int]] = Counter()
    for row in given.misses.rows:
        counts[row.key("os"), row.key("compiler")] += row.spec_count

    picks: list[Pick] = []
    most_first = sorted(counts, key=lambda key: (-counts[key], key))
    for key in most_first:
        os_name = lookups.words["os"][key[0]]
        compiler = lookups.words["compiler"][key[1]]
        compiler_value = value_of("compiler", compiler)
        is_pinned = (filters.os, filters.compiler) == (os_name, compiler_value)
        is_chosen = is_pinned
        if given.proposed is not None:
            own = (given.proposed.os, given.proposed.compiler)
            is_chosen = own == (os_name, compiler)
        is_full = len(picks) >= MOST_SYSTEMS
        if not counts[key] or (is_full and not is_chosen):
            continue
        name = system_name(os_name)
        if key not in possible:
            reason = _reason(given, left, _has_system(key))
            note = f"{compiler_name(compiler)}, {reason}"
            picks.append(Pick(name, note, None, is_chosen))
            continue
        path = _changed(
            filters,
            os=None if is_pinned else os_name,
            compiler=None if is_pinned else compiler_value,
        )
        picks.append(Pick(name, compiler_name(compiler), path, is_chosen))
    all_count = sum(1 for count in counts.values() if count)
    return Group("System", tuple(picks), all_count - len(picks))


def _has_system(key: tuple[int, int]) -> Test:
    return lambda row: (row.key("os"), row.key("compiler")) == key


def _switches(given: ChooserInput) -> tuple[Switch, ...]:
    """Return the options that some binaries of the package have and others lack.

    They are the same whatever is chosen, so that each keeps its place.
    """
    if given.proposed is None:
        return ()
    own_texts = set(given.proposed.variants)
    switches = []
    for name in _varying_options(given):
        on = f"+{name}"
        off = f"~{name}"
        # A build may lack the option altogether: then it cannot be switched.
        if not own_texts & {on, off}:
            continue
        is_on = on in own_texts
        opposite = off if is_on else on
        left = _without(given, (), (on, off))
        test = _has_variant(given.lookups, opposite)
        path = None
        reason = ""
        if any(test(row) for row in left.rows):
            kept = [text for text in given.filters.variant if text not in (on, off)]
            path = _changed(given.filters, variant=(*kept, opposite))
        else:
            reason = f"{opposite}: {_reason(given, left, test)}"
        text = on if is_on else off
        note = given.notes.get(text)
        hint = "" if note is None else note.hint
        switches.append(Switch(name, text, path, is_on, reason, hint))
    return tuple(switches)


def _has_variant(lookups: Lookups, text: str) -> Test:
    sets = lookups.words["variants"]
    return lambda row: text in sets[row.key("variants")]


def _varying_options(given: ChooserInput) -> list[str]:
    """Return the names of the first options: well-known ones, then those that divide
    the binaries most evenly.
    """
    spec_counts: Counter[int] = Counter()
    for row in given.misses.rows:
        spec_counts[row.key("variants")] += row.spec_count
    counts: Counter[str] = Counter()
    for key, count in spec_counts.items():
        for text in given.lookups.words["variants"][key]:
            if text[:1] in ("+", "~"):
                counts[text] += count

    evenness = {}
    for text in counts:
        name = text[1:]
        fewer = min(counts[f"+{name}"], counts[f"~{name}"])
        if fewer and readable_variant(text) is not None:
            evenness[name] = fewer

    def rank(name: str) -> tuple[int, int, str]:
        known = len(KNOWN_OPTIONS)
        if name in KNOWN_OPTIONS:
            known = KNOWN_OPTIONS.index(name)
        return known, -evenness[name], name

    return sorted(evenness, key=rank)[:MOST_SWITCHES]
