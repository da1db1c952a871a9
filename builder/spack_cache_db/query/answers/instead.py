"""What configurations have in place of a condition that is left out, as text.

Nothing satisfies `hdf5 ^openmpi@3`, but configurations of `hdf5` have other versions of
`openmpi`: `there are 5.0.10 and 4.1.6`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

from spack_cache_db.errors import series
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    PLACE_KINDS,
    Condition,
    Conditions,
    Verdict,
    configuration_conditions,
    readable_variants,
)
from spack_cache_db.query.match.candidates import Candidate, Candidates
from spack_cache_db.query.match.requirements import breaking_dependencies
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored import graph
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint
from spack_cache_db.spack.targets import Build, build_runs_on, runs_on
from spack_cache_db.spack.versions import newest_version, preference

SHORT = 7
"""Characters of a hash that Spack prints."""
_MOST_COMPARED = 100
"""Maximum of binaries whose dependencies are read for one text."""
_MOST_NODES = 2_000
"""Maximum of specs in the graph of these dependencies."""
_MOST_LISTED = 3
"""Maximum of values that a text names."""


def values_instead(
    candidates: Candidates,
    condition: Condition,
    rows: Sequence[Candidate],
    remaining: Conditions,
) -> str:
    """Return what configurations have in place of a condition, as text.

    Args:
        candidates: the database.
        condition: the condition that is left out.
        rows: the configurations that satisfy all other conditions.
        remaining: the other conditions on specs, releases and stacks: only specs that
            satisfy them count.

    Returns:
        A text such as `there is ~mpi`; empty if there is nothing to say.
    """
    expected = condition.value
    if isinstance(expected, Verdict) and expected.query is not None:
        if expected.named is None:
            # A dependency in the query.
            return _dependencies_instead(candidates, expected.query, rows, remaining)
        # A requirement of `packages:`, whose parts are on configurations.
        texts = []
        for part in configuration_conditions(expected.query):
            texts.append(values_instead(candidates, part, rows, ()))
        return "; ".join(text for text in texts if text)
    if condition.kind in PLACE_KINDS:
        return ""

    if condition.kind == "host":
        return _builds_instead(candidates, str(expected), rows)

    # The different words of the configurations, in their order.
    (column,) = COLUMNS[condition.kind]
    keys = dict.fromkeys(row.key(column) for row in rows)
    words = [candidates.lookups.words[column][key] for key in keys]
    if isinstance(expected, VariantConstraint):
        # A word is a tuple of variants.
        variants = []
        for texts_of_variants in words:
            variants += readable_variants(texts_of_variants, expected.name)
        there_are = _there_are(variant.text for variant in variants)
        return there_are or f"none has a variant {expected.name}"
    if condition.kind == "version":
        return f"newest {newest_version(words)}"
    if condition.kind == "target":
        running = _targets_on(candidates, str(expected), rows)
        if running:
            verb = "runs" if len(running) == 1 else "run"
            return f"{_in_sentence(running)} {verb} on {expected}"
    return _there_are(words)


def _targets_on(
    candidates: Candidates, host: str, rows: Sequence[Candidate]
) -> list[str]:
    """Return the targets of the configurations that run on a machine, each once."""
    words = candidates.lookups.words
    targets: dict[str, None] = {}
    for row in rows:
        platform = words["platform"][row.key("platform")]
        build = Build(platform, words["target"][row.key("target")])
        if build_runs_on(build, host):
            targets[build.target] = None
    return list(targets)


def _builds_instead(
    candidates: Candidates, host: str, rows: Sequence[Candidate]
) -> str:
    """Return the targets of configurations that do not run on a machine, as text.

    A target that runs on it has its platform beside it: `aarch64 for linux`.
    """
    words = candidates.lookups.words
    texts = []
    for row in rows:
        target = words["target"][row.key("target")]
        platform = words["platform"][row.key("platform")]
        texts.append(f"{target} for {platform}" if runs_on(target, host) else target)
    return _there_are(texts)


def _dependencies_instead(
    candidates: Candidates,
    part: SpecQuery,
    rows: Sequence[Candidate],
    conditions: Conditions,
) -> str:
    """Return the versions that configurations need of the one dependency in a query."""
    if len(part.dependencies) != 1:
        return ""
    dependency = part.dependencies[0]
    name = dependency.node.name
    if name is None:
        return ""

    # Read the dependencies of the first binaries.
    specs_of_row = candidates.specs_of(conditions, rows[:_MOST_COMPARED])
    specs = chain.from_iterable(specs_of_row.values())
    roots = tuple(spec.id for spec in islice(specs, _MOST_COMPARED))
    needs = candidates.once(("needs", roots), lambda: _needs(candidates.lookups, roots))
    if needs is None:
        return ""

    # Find the versions of those that could be meant.
    versions = set()
    for need in needs:
        if _could_be_meant(need, dependency, name):
            version = need.node.version
            is_named = need.node.package == name
            text = version if is_named else f"{need.node.package} {version}"
            versions.add(_NeededVersion(version, text))
    if not versions:
        expected = set(dependency.virtuals or (name,))
        return f"none needs {', '.join(sorted(expected))}"

    # The newest version first; the sorts are stable.
    ordered = sorted(versions)
    ordered.sort(key=lambda needed: preference(needed.version), reverse=True)
    return _there_are(needed.text for needed in ordered if needed.version)


class _NeededVersion(NamedTuple):
    """A version of a dependency, and its text: `4.1.6`, or `openmpi 4.1.6` for `^mpi`.

    An external may have no version.
    """

    version: str
    text: str


class _Need(NamedTuple):
    """A dependency of some specs.

    Attributes:
        virtuals: the virtual packages that it is needed for.
        is_direct: whether one of the specs itself needs it.
    """

    virtuals: tuple[str, ...]
    node: graph.Node
    is_direct: bool


def _could_be_meant(need: _Need, dependency: Dependency, name: str) -> bool:
    """Return whether a dependency is of the package, or for the virtual packages, that
    a query names: `openmpi`, or any provider for `^mpi=openmpi`.
    """
    expected = set(dependency.virtuals or (name,))
    if expected.isdisjoint((need.node.package, *need.virtuals)):
        return False
    return need.is_direct or not dependency.direct


def _needs(lookups: Lookups, specs: Iterable[int]) -> set[_Need] | None:
    """Return the dependencies of specs; None without dependency data."""
    roots = set(graph.recorded_specs(lookups.conn, specs))
    if not roots:
        return None
    needs = graph.read_needs(lookups, roots, _MOST_NODES)
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    result = set()
    for spec, edges in needs.edges.items():
        for edge in edges:
            node = nodes[edge.dependency]
            result.add(_Need(edge.virtuals, node, is_direct=spec in roots))
    return result


def nearest_binary(
    candidates: Candidates,
    left_out: Conditions,
    row: Candidate,
    remaining: Conditions,
) -> str:
    """Return the nearest binary, if requirements of `packages:` are left out, as text.

    Args:
        candidates: the database.
        left_out: the conditions that are left out.
        row: the nearest configuration.
        remaining: the other conditions.

    Returns:
        A text such as `nearest is hdf5@1.14.6 … /abcdefg, which uses zlib-ng@2.2.4`;
        empty without such requirements.
    """
    verdicts = []
    for condition in left_out:
        verdict = condition.value
        if isinstance(verdict, Verdict) and verdict.named is not None:
            verdicts.append(verdict)
    if not verdicts:
        return ""
    nearest = candidates.specs_of(remaining, [row])[row.id][0]
    summary = candidates.configuration(row).summary
    text = f"nearest is {summary} /{nearest.hash[:SHORT]}"
    # A requirement may be broken by a dependency of the binary.
    dependencies = breaking_dependencies(candidates.lookups, verdicts, nearest)
    if dependencies:
        text += f", which uses {_in_sentence(dependencies)}"
    return text


def _there_are(words: Iterable[str]) -> str:
    """Return what there is: `there are 1.14.6, 1.14.5 and 1.12.3`; empty for no
    words.
    """
    texts = list(dict.fromkeys(words))
    if not texts:
        return ""
    verb = "is" if len(texts) == 1 else "are"
    return f"there {verb} {_in_sentence(texts)}"


def _in_sentence(words: Sequence[str]) -> str:
    """Return words as a list in a sentence; of many, the first and the number of the
    others.
    """
    # `and 1 more` is no shorter than the last word.
    if len(words) == _MOST_LISTED + 1:
        return series(words, len(words))
    return series(words, _MOST_LISTED)
