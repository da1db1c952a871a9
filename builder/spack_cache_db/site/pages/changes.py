"""`/diff/<old>...<new>`: the changes between two releases or stacks, or the difference
between two hashes.

`/diff` is the comparison of the two newest snapshots, with a form that chooses others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from spack_cache_db.query.answers.changes import Changes
from spack_cache_db.query.answers.diff import compare as compare_sides
from spack_cache_db.query.answers.diff_result import Amount
from spack_cache_db.query.answers.diff_specs import SpecDiff, diff_specs
from spack_cache_db.query.answers.rebuilds import Cause
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.site.change_words import (
    ChangedNumbers,
    ChangeWords,
    change_words,
    number_notes,
)
from spack_cache_db.site.charts.records import Change, Step
from spack_cache_db.site.filters import LABELS, DataLinks
from spack_cache_db.site.names_for_people import day_words
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.change_parts import Part, parts_of
from spack_cache_db.site.pages.changed_packages import (
    PackageOnOneSide,
    Upgrade,
    packages_on_one_side,
    stacks_of,
    steps_of,
    upgrades_of,
)
from spack_cache_db.site.pages.excerpts import Excerpt, Excerpts
from spack_cache_db.site.pages.feeds import Topic, date_of
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.sides import (
    ALL,
    Sides,
    comparisons,
    latest_comparisons,
    newest_comparison,
)
from spack_cache_db.site.pages.snapshots import branch_of
from spack_cache_db.site.pages.spec import is_hash_prefix
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.words import Vocabulary, vocabulary_of

MOST_EXPLAINED = 5_000
"""Limit of added and removed hashes up to which causes are searched; more would take
seconds.
"""
MOST_LISTED = 15_000
"""Limit of configurations in JSON or CSV; 15,000 take some 60 MB."""
TOO_MANY = (
    "{:,} configurations differ, but this site lists at most {:,}: add package, stack, target or"
    " host, or use the command diff on the downloaded file"
)
ONE_RELEASE = "this database has one {}: nothing can be compared yet"
"""The message of the page without two sides; it has the word for a release."""


def comparison(
    site: Site, request: PageRequest, old: str, new: str, form: str | None
) -> PageResponse:
    """Return `/diff/<old>...<new>`, as a page, `.json` or `.csv`."""
    specs = _specs_of(site.lookups, old, new)
    if specs is not None:
        return _spec_comparison(site, request, diff_specs(site.lookups, *specs), form)
    sides = replace(Sides.parse(request.pairs), old=old, new=new)
    if form is not None:
        return _as_data(compare_sides(site.lookups, **asdict(sides)), form)
    return _compared(site, request, sides)


def _compared(site: Site, request: PageRequest, sides: Sides) -> PageResponse:
    """Return the page of a comparison; with an unknown name, the form in which it can
    be corrected.
    """
    # A static export has no page of its own for all rows of a part.
    whole = None if site.settings.is_static else request.args.get(ALL, "")
    excerpts = Excerpts(sides, whole)

    def read() -> ChangesPage:
        changes = compare_sides(site.lookups, **asdict(sides))
        return load_changes(site.lookups, changes, excerpts)

    try:
        # Most visitors ask for the newest comparisons.
        page = site.lookups.recent(ChangesPage, excerpts, read)
    except UnknownNameError as error:
        return site.page(
            request, "changes.html", sides=sides, error=str(error), status=404
        )
    topic = Topic(package=sides.package, stack=sides.stack, host=sides.host)
    return site.page(
        request,
        "changes.html",
        page=page,
        sides=sides,
        links=DataLinks(None, sides.address("json"), sides.address("csv")),
        latest=latest_changes(site.lookups),
        feed=topic.feed,
    )


def _specs_of(lookups: Lookups, old: str, new: str) -> tuple[int, int] | None:
    """Return the ids of the specs whose hashes begin with two texts; None if one is
    not such a text.

    A release may have a name like the beginning of a hash, such as `develop`.
    """
    specs: list[int] = []
    for text in (old, new):
        if lookups.release(text) is not None or not is_hash_prefix(text):
            return None
        beginning = specs_beginning(lookups.conn, text, 2)
        if len(beginning) != 1:
            return None
        specs += beginning
    return specs[0], specs[1]


def _spec_comparison(
    site: Site, request: PageRequest, answer: SpecDiff, form: str | None
) -> PageResponse:
    """Return the difference between two specs, as a page, JSON or CSV."""
    if form is not None:
        return data(form_of(answer.as_dict(), answer.rows, form), form)
    path = f"/diff/{answer.old.hash}...{answer.new.hash}"
    links = DataLinks.of_page(path, "")
    return site.page(request, "spec_diff.html", diff=answer, links=links)


def _as_data(changes: Changes, form: str) -> PageResponse:
    """Return changes as JSON or CSV; an error if there are too many, or no binaries."""
    count = changes.configuration_count
    if count > MOST_LISTED:
        return refused(TOO_MANY.format(count, MOST_LISTED), form)
    if not any(changes.specs):
        neither = "neither {} nor {} has such a binary: nothing is compared"
        return refused(neither.format(*changes.sides), form, 404)
    diff = changes.in_words(MOST_EXPLAINED)
    return data(form_of(diff.as_dict(), diff.rows, form), form)


@dataclass(frozen=True, slots=True)
class Number:
    """One of the numbers at the top of a comparison, such as `5 packages lost their
    last binary`.

    Attributes:
        path: the address of the part of the page that lists them.
        count: the number.
        note: what it counts.
        is_alarming: whether it stands out.
    """

    path: str
    count: int
    note: str
    is_alarming: bool = False


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The variables of a comparison.

    Attributes:
        specs: the number of binaries in both sides, only in the new one, and only in
            the old one.
        place: the word before sides that exist beside each other (`Changes.place`).
        words: the words of the page.
        heading: the title with the names that narrow the comparison.
        span: both sides for people: `15 Nov 2026 → 22 Nov 2026`.
        chips: the names that narrow the comparison, each with the address without it.
        numbers: the numbers at the top.
        steps: the columns of the chart.
        lost: the packages that only the old side has.
        upgrades: the packages with other versions.
        new: the packages that only the new side has.
        stacks: the stacks with what they gained and lost.
        parts: the changed configurations.
        causes: why configurations were rebuilt; None beyond `MOST_EXPLAINED`.
    """

    specs: Amount
    place: str
    words: ChangeWords
    heading: str
    span: str
    chips: tuple[tuple[str, str], ...]
    numbers: tuple[Number, ...]
    steps: tuple[Step, ...]
    lost: Excerpt[PackageOnOneSide]
    upgrades: Excerpt[Upgrade]
    new: Excerpt[PackageOnOneSide]
    stacks: Excerpt[Change]
    parts: tuple[Part, ...]
    causes: tuple[Cause, ...] | None


def load_changes(lookups: Lookups, changes: Changes, excerpts: Excerpts) -> ChangesPage:
    """Return the variables of the page of a comparison."""
    sides = excerpts.sides
    vocabulary = vocabulary_of(lookups.is_installed)
    place = changes.place
    words = change_words(sides.old, sides.new, place, vocabulary)
    upgrades = upgrades_of(changes, sides)
    upgraded = excerpts.of("upgraded", upgrades)
    lost = _on_one_side(lookups, changes, excerpts, "lost")
    new = _on_one_side(lookups, changes, excerpts, "new")
    parts = parts_of(lookups, changes, excerpts, words)

    # The page of one package has no numbers of packages.
    numbers: tuple[Number, ...] = ()
    if not sides.package:
        rebuilt = [part.packages for part in parts if part.change == "rebuilt"]
        lists: dict[str, Excerpt[Any]] = {
            "lost": lost,
            "upgraded": upgraded,
            "new": new,
            "rebuilt": rebuilt[0] if rebuilt else excerpts.of("rebuilt", ()),
        }
        major = sum(upgrade.is_major for upgrade in upgrades)
        numbers = _numbers(changes, sides, lists, major, vocabulary)

    # A side that is a stack of a release has no other stacks.
    has_stacks = not sides.package and not any(":" in side for side in changes.sides)
    stacks = stacks_of(changes.by_stack, sides) if has_stacks else ()
    return ChangesPage(
        specs=changes.specs,
        place=place,
        words=words,
        heading=words.title + _topic(sides),
        span=_span(lookups, sides),
        chips=_chips(sides),
        numbers=numbers,
        steps=() if place or sides.package else steps_of(lookups, sides),
        lost=lost,
        upgrades=upgraded,
        new=new,
        stacks=excerpts.of("stacks", stacks),
        parts=parts,
        causes=changes.causes(MOST_EXPLAINED),
    )


def _on_one_side(
    lookups: Lookups, changes: Changes, excerpts: Excerpts, part: str
) -> Excerpt[PackageOnOneSide]:
    """Return the packages that were lost or are new; none on the page of one package,
    which has its configurations.
    """
    sides = excerpts.sides
    change = {"lost": "removed", "new": "added"}[part]
    names = () if sides.package else getattr(changes.packages, change)
    excerpt = excerpts.of(part, names)
    packages = packages_on_one_side(lookups, changes, sides, change, excerpt.shown)
    return excerpt.with_rows(packages)


def _numbers(
    changes: Changes,
    sides: Sides,
    lists: Mapping[str, Excerpt[Any]],
    major: int,
    vocabulary: Vocabulary,
) -> tuple[Number, ...]:
    """Return the four numbers of a comparison, each with the way to its packages.

    `lists` are the packages that were lost, upgraded, new and rebuilt; `major` counts
    the upgrades by a major version.
    """
    found = ChangedNumbers(
        lost=lists["lost"].count,
        upgraded=lists["upgraded"].count,
        major=major,
        new_packages=changes.packages.added,
        rebuilt=lists["rebuilt"].count,
    )
    notes = number_notes(found, sides.old, sides.new, changes.place, vocabulary)
    numbers = []
    for part, packages in lists.items():
        count = packages.count
        is_alarming = part == "lost" and count > 0 and not changes.place
        numbers.append(Number(packages.path, count, notes[part], is_alarming))
    return tuple(numbers)


def _topic(sides: Sides) -> str:
    """Return the names that narrow a comparison: ` for hdf5, on zen3`."""
    host = f"on {sides.host}" if sides.host else None
    names = [name for name in (sides.package, sides.stack, sides.target, host) if name]
    return f" for {', '.join(names)}" if names else ""


def _span(lookups: Lookups, sides: Sides) -> str:
    """Return both sides for people: the days of two snapshots of a branch, or names."""
    old = lookups.release(sides.old)
    new = lookups.release(sides.new)
    if old is not None and new is not None and branch_of(old) == branch_of(new):
        old_day = date_of(old.date)
        new_day = date_of(new.date)
        if old_day is not None and new_day is not None:
            return f"{day_words(old_day)} → {day_words(new_day)}"
    return f"{sides.old} → {sides.new}"


def _chips(sides: Sides) -> tuple[tuple[str, str], ...]:
    """Return the names that narrow a comparison, each after the address without it."""
    chips = []
    for name, value in sides.pairs:
        if name not in ("old", "new"):
            without_name = sides.without(name).address()
            chips.append((without_name, f"{LABELS[name]} {value}"))
    return tuple(chips)


def compare(site: Site, request: PageRequest) -> PageResponse:
    """Return `/diff`: the newest comparison, or a redirect to that of two chosen
    releases.

    A database with one release has nothing to compare.
    """
    sides = Sides.parse(request.pairs)
    if sides.old and sides.new:
        return site.redirect(sides.address())
    sides = with_defaults(site.lookups, sides)
    if not sides.old or not sides.new:
        place = vocabulary_of(site.lookups.is_installed).place
        error = ONE_RELEASE.format(place)
        return site.page(request, "changes.html", sides=sides, error=error)
    return _compared(site, request, sides)


def with_defaults(lookups: Lookups, sides: Sides) -> Sides:
    """Return sides completed with those of the newest comparison.

    If no release follows another one, as with installations, these are the first two.
    """
    default = newest_comparison(comparisons(lookups))
    if default is None:
        names = [release.name for release in lookups.releases.values()]
        # A database may have less than two releases.
        newest = names[0] if names else ""
        second = names[1] if len(names) > 1 else ""
        default = Sides(second, newest)
    return replace(sides, old=sides.old or default.old, new=sides.new or default.new)


def latest_changes(lookups: Lookups, **narrowed: str) -> tuple[Sides, ...]:
    """Return the comparison of the newest release of each kind with the one before
    it.

    `narrowed` are names that narrow the comparison, such as `package="zlib"`.
    """
    latest = latest_comparisons(comparisons(lookups))
    return tuple(replace(sides, **narrowed) for sides in latest.values())
