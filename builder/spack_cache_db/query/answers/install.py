"""How to install or load the build that a spec finds: the answer of
`find --install`.

The rule of `choice.rule` chooses one of the builds that satisfy the spec. It is loaded
from an installation, if one has it, and installed from mirrors otherwise.
"""

from __future__ import annotations

import json

from spack_cache_db.arguments import checked
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.planned import Chosen, InstallPlan
from spack_cache_db.query.choice.proposal import propose_among
from spack_cache_db.query.choice.proposed import build_words
from spack_cache_db.query.commands.install import closures_in, commands_of_closure
from spack_cache_db.query.conditions.conditions import Condition, Word, condition_value
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import ResultSet, counted_part, matching
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, Lookups, Release, opened
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_in_scope
from spack_cache_db.spack.legacy import parser_of

EXAMPLES = ("hdf5", "py-numpy", "zlib-ng", "zlib", "cmake")
"""Packages for a new user to install: the first that a release has."""
# A subquery, because before SQLite 3.39 a LEFT JOIN of json_each leaves out packages
# without a row.
EXAMPLE = """
SELECT packages.name, (SELECT key FROM json_each(:names) WHERE value = packages.name) AS wanted
FROM releases
JOIN release_packages ON release_packages.release_id = releases.id
JOIN packages ON packages.id = release_packages.package_id
WHERE releases.name = :release AND packages.spec_count > 0
ORDER BY wanted IS NULL, wanted, release_packages.configuration_count DESC, packages.name
LIMIT 1
"""


@checked
def install_plan(
    db: Database,
    query: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    spack: str | None = None,
    explicit: bool = False,
    stable: bool = False,
) -> InstallPlan | None:
    """Return how to install or load the build that a spec finds; None if it finds
    nothing.

    `release`, `stack`, `host`, `os`, `platform`, `explicit` and `stable` narrow the
    choice: see `Scope`. With a release, all of it is installed from the mirrors of this
    release, or loaded from this installation.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`.
        spack: the version of Spack for which the query is written; None for 1.0 and
            later.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the query is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such
            host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(
        release=release,
        stack=stack,
        host=host,
        os=os,
        platform=platform,
        explicit=explicit,
        stable=stable,
    )
    parsed = parser_of(spack)(query)
    with opened(db) as lookups:
        question = Question(lookups, parsed, scope.conditions(lookups))
        chosen = chosen_build(lookups, question.results)
        return None if chosen is None else chosen.plan


def chosen_build(lookups: Lookups, results: ResultSet) -> Chosen | None:
    """Return the build to install or load, of those that an answer has; None without
    any.
    """
    proposal = propose_among(lookups, results)
    if proposal is None:
        return _lost_build(lookups, results)
    release = _release_name(lookups, results)
    return _chosen(lookups, proposal.spec, proposal.build, proposal.reason, release)


def _lost_build(lookups: Lookups, results: ResultSet) -> Chosen | None:
    """Return the first build of an answer, if the mirrors have lost all; it has no
    commands.

    None if the answer is empty.
    """
    rows = counted_part(lookups, results, slice(1))
    if not rows:
        return None
    row = rows[0]
    specs = specs_in_scope(lookups.conn, [row.id], results.conditions).get(row.id, ())
    if not specs:
        return None
    build = build_words(row.configuration)
    return _chosen(lookups, specs[0].id, build, None, _release_name(lookups, results))


def choose_example(lookups: Lookups, release: Release) -> Chosen | None:
    """Return the build for a new user of a release, of a well-known package that it
    has, or else of the package with most configurations.

    None if no mirror lists any of its binaries now.
    """
    names = json.dumps(EXAMPLES)
    rows = list(select(lookups.conn, EXAMPLE, release=release.name, names=names))
    if not rows:
        return None
    package, _ = rows[0]
    of_package = Condition("package", package, Word(package))
    of_release = Condition("release", release.name, release.id)
    chosen = chosen_build(lookups, matching(lookups, (of_package, of_release)))
    # A build that the mirrors have lost has no commands.
    if chosen is None or not chosen.commands.commands:
        return None
    return chosen


def plan_of_spec(
    lookups: Lookups,
    spec: int,
    configuration: Configuration,
    release: str | None = None,
) -> InstallPlan | None:
    """Return how to install or load one spec, given by id; None if nothing ever listed
    it.

    Args:
        lookups: the database.
        spec: the id of the spec.
        configuration: its configuration.
        release: the release to install from, or the installation to load from; None for
            any.
    """
    chosen = _chosen(lookups, spec, build_words(configuration), None, release)
    return None if chosen is None else chosen.plan


def _chosen(
    lookups: Lookups, spec: int, build: str, reason: str | None, release: str | None
) -> Chosen | None:
    """Return a build with its commands, which load it where it is installed; None if
    nothing ever listed it.
    """
    closure = closures_in(lookups, [spec], release)[spec]
    commands = commands_of_closure(lookups, closure, release)
    return None if commands is None else Chosen(build, reason, closure, commands)


def _release_name(lookups: Lookups, results: ResultSet) -> str | None:
    """Return the name of the release of the question; None if it names none."""
    release = condition_value(results.conditions, "release")
    return None if release is None else lookups.releases[release].name
