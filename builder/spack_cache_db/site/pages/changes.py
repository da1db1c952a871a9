"""`/diff/<old>...<new>`: the changes between two releases or stacks, or the difference
between two hashes.

`/diff` is the form that chooses them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

from spack_cache_db.query.answers.diff import Changes
from spack_cache_db.query.answers.diff import compare as compare_sides
from spack_cache_db.query.answers.diff_specs import SpecDiff, diff_specs
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import grouped
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.site.filters import DataLinks
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.pages.spec import is_hash_prefix
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

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
MOST_ROWS = 150
"""Limit of configurations that are listed; beyond it, packages link to their own
comparison.
"""


def comparison(
    site: Site, request: PageRequest, old: str, new: str, form: str | None
) -> PageResponse:
    """Return `/diff/<old>...<new>`, as a page, `.json` or `.csv`."""
    specs = _specs_of(site.lookups, old, new)
    if specs is not None:
        return _spec_comparison(site, request, diff_specs(site.lookups, *specs), form)
    sides = replace(Sides.parse(request.pairs), old=old, new=new)
    try:
        changes = compare_sides(site.lookups, **asdict(sides))
    except UnknownNameError as error:
        # A page shows the form, in which the name can be corrected.
        if form is not None:
            raise
        return site.page(
            request, "changes.html", sides=sides, error=str(error), status=404
        )
    if form is not None:
        return _as_data(changes, form)
    topic = Topic(package=sides.package, stack=sides.stack, host=sides.host)
    return site.page(
        request,
        "changes.html",
        page=load_changes(site.lookups, changes, sides.package),
        sides=sides,
        links=DataLinks(None, sides.address("json"), sides.address("csv")),
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
    count = len(changes.amounts)
    if count > MOST_LISTED:
        return refused(TOO_MANY.format(count, MOST_LISTED), form)
    if not any(changes.specs):
        neither = "neither {} nor {} has such a binary: nothing is compared"
        return refused(neither.format(*changes.sides), form, 404)
    diff = changes.in_words(MOST_EXPLAINED)
    return data(form_of(diff.as_dict(), diff.rows, form), form)


def load_changes(
    lookups: Lookups, changes: Changes, package: str | None
) -> dict[str, Any]:
    """Return the variables of the page: `counts` and `rows` are configurations by
    package.

    There are rows for one package or for few changes. Causes are None beyond
    `MOST_EXPLAINED`.
    """
    # The number of changed configurations, by the word for the change and by package.
    names = lookups.words["package"]
    package_of = lookups.column("configurations", "package_id")
    counts = {}
    for change, keys in changes.by_change.items():
        counts[change] = Counter(sorted(names[package_of[key]] for key in keys))

    # Two snapshots may differ in thousands of configurations.
    rows = {}
    if package or len(changes.amounts) <= MOST_ROWS:
        for change, configurations in changes.configurations().items():
            rows[change] = grouped(
                (row.configuration.package, row) for row in configurations[:MOST_ROWS]
            )

    versions = {
        change: grouped(pairs) for change, pairs in changes.versions._asdict().items()
    }
    return {
        "diff": changes,
        "counts": counts,
        "rows": rows,
        "versions": versions,
        "upgrades": sorted(versions["added"].keys() & versions["removed"].keys()),
        "causes": changes.causes(MOST_EXPLAINED),
    }


def compare(site: Site, request: PageRequest) -> PageResponse:
    """Return `/diff`, the form that chooses two releases, or a redirect to their
    comparison.
    """
    sides = Sides.parse(request.pairs)
    if sides.old and sides.new:
        return site.redirect(sides.address())
    return site.page(
        request,
        "compare.html",
        sides=with_defaults(site.lookups, sides),
        latest=latest_changes(site.lookups),
    )


def with_defaults(lookups: Lookups, sides: Sides) -> Sides:
    """Return sides completed with the two newest snapshots, or the first two
    releases.
    """
    releases = lookups.releases.values()
    names = [release.name for release in releases if release.kind == "snapshot"]
    if len(names) < 2:
        names = [release.name for release in releases]
    # A database may have less than two releases.
    newest = names[0] if names else ""
    second = names[1] if len(names) > 1 else ""
    return replace(sides, old=sides.old or second, new=sides.new or newest)


def latest_changes(lookups: Lookups, **narrowed: str) -> tuple[Sides, ...]:
    """Return the comparison of the newest release of each kind with the one before
    it.

    `narrowed` are names that narrow the comparison, such as `package="zlib"`.
    """
    sides_of_kind: dict[str, Sides] = {}
    for release in lookups.releases.values():
        before = lookups.before(release)
        # Releases have the order from new to old.
        if before is not None and release.kind not in sides_of_kind:
            sides_of_kind[release.kind] = Sides(before.name, release.name, **narrowed)
    return tuple(sides_of_kind.values())
