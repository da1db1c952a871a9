"""Answers the specs of an environment for which no binary is known.

The database may lack the data for a condition (`unknown`), a mirror may have lost the
last binary, other binaries may satisfy the spec without one or two conditions (`near`),
or there is nothing like it (`none`).
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import replace

from spack_cache_db.environments.rules import PackageRules, required_query
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.answers.spec_matches import Match, Matcher
from spack_cache_db.query.answers.why_not import explained
from spack_cache_db.query.choice.search import lost_sentence
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Verdict,
    only,
    without,
)
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.candidates import satisfies
from spack_cache_db.query.match.misses import misses_of
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.open.sql import select, select_ids
from spack_cache_db.query.stored.binary import SPEC_COLUMNS, Spec
from spack_cache_db.query.stored.gone import has_gone
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

GONE = "SELECT id FROM specs WHERE is_gone"
"""The specs that a mirror has lost."""
GONE_OF_CONFIGURATIONS = f"""
SELECT {SPEC_COLUMNS}, specs.configuration_id
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration_id = wanted.value
WHERE specs.is_gone ORDER BY specs.last_seen DESC, specs.id
"""
"""Those of configurations; the one that was listed last comes first."""
NOTHING = "nothing here satisfies it"
"""The reason if there is no other."""
MOST_UNKNOWN = 20
"""Maximum of unknown packages whose answers list similar names, which take milliseconds
each.
"""


class UncoveredSpecs:
    """Answers the specs of one environment for which no binary is known.

    The answers do not have the text of the spec and its place in the environment
    (`CoveredSpec.spec`, `line` and `group`).

    Args:
        matcher: matches the specs of the environment.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._candidates = matcher.candidates
        self._lookups = matcher.lookups
        self._unknown_count = 0

    @property
    def gone(self) -> Set[int]:
        """The ids of the specs that a mirror has lost."""
        lookups = self._lookups
        if not has_gone(lookups):
            return frozenset()
        return lookups.once(GONE, lambda: select_ids(lookups.conn, GONE))

    def unknown_answer(self, query: str, match: Match) -> CoveredSpec | None:
        """Return the answer if binaries satisfy all conditions for which the database
        has data; otherwise None.
        """
        # Let specs pass of which it is unknown whether they satisfy a condition.
        ids = self._matcher.specs_of_package(match.query.name)
        unknown_for: dict[str, Set[int]] = {}
        lenient: list[Condition] = []
        for condition in match.conditions:
            verdict = condition.value
            if isinstance(verdict, Verdict) and verdict.unknown & ids:
                unknown_for[condition.text] = verdict.unknown
                possible = (verdict.matching | verdict.unknown) & ids
                lenient.append(replace(condition, value=Verdict(possible)))
            else:
                lenient.append(condition)
        if not unknown_for:
            return None
        conditions = tuple(lenient)
        rows = list(misses_of(self._candidates, conditions).fitting())
        if not rows:
            return None

        # Name the first of them, and the conditions that are unknown for it.
        row = rows[0]
        spec = self._candidates.specs_of(conditions, [row])[row.id][0]
        texts = [text for text, specs in unknown_for.items() if spec.id in specs]
        configuration = self._candidates.configuration(row)
        reason = f"the database does not show whether it satisfies {', '.join(texts)}"
        return CoveredSpec(
            "",
            "unknown",
            query=query,
            configuration=configuration,
            reasons=(f"{configuration.summary} /{spec.hash}: {reason}",),
        )

    def why_legacy(
        self, legacy: SpecQuery | None, rules: PackageRules
    ) -> WhyNot | None:
        """Return the spec that Spack before 1.0 reads in the same text, or why that has
        no binary either.

        Args:
            legacy: this spec; None if it is the same spec.
            rules: the requirements on it.

        Returns:
            None if it is the same spec, or if the database cannot answer it.
        """
        if legacy is None:
            return None
        try:
            match = self._matcher.match(legacy, rules)
            if match.rows:
                return WhyNot(corrected=spec_text(required_query(match.query, rules)))
            return replace(self._why_not(match), read_as=spec_text(legacy))
        except UnsupportedQuery:
            return None

    def answer(self, query: str, match: Match, why: WhyNot | None) -> CoveredSpec:
        """Return the answer for a spec that nothing satisfies.

        Args:
            query: the spec with its requirements, as text.
            match: what satisfies it, without rows.
            why: the reasons, if they are known (`why_legacy`).
        """
        if why is None:
            why = self._why_not(match)
        # A binary that the mirror has lost is nearer than any other.
        lost = self._lost(match)
        if lost is not None:
            # If nothing is known but that the package has no binaries, `lost` says
            # more. The notes would say again that the mirror has lost it.
            others = () if why.known is not None else replace(why, notes=()).sentences()
            return replace(
                lost,
                query=query,
                reasons=(*lost.reasons, *others),
                corrected=why.corrected,
            )
        nearest: Configuration | None = None
        if why.without:
            nearest = why.without[0].nearest
        elif why.nearest is not None:
            nearest = why.nearest.configuration
        return CoveredSpec(
            "",
            "near" if why.without else "none",
            query=query,
            configuration=nearest,
            why=why,
            reasons=why.sentences() or (NOTHING,),
            corrected=why.corrected,
        )

    def _why_not(self, match: Match) -> WhyNot:
        """Return why nothing matches; of many unknown packages, similar names of the
        first only.
        """
        name = str(match.query.name)
        if name not in self._lookups.packages:
            self._unknown_count += 1
            if self._unknown_count > MOST_UNKNOWN:
                return WhyNot(known=known_name(self._lookups, name, with_near=False))
        return explained(self._candidates, match.query, match.conditions)

    def _lost(self, match: Match) -> CoveredSpec | None:
        """Return the answer with the last binary that a mirror has lost, if one
        satisfies the spec; otherwise None.
        """
        if not self.gone:
            return None
        # No release lists it now, and requirements of `packages:` were checked only for
        # what mirrors have.
        conditions = tuple(
            condition
            for condition in without(match.conditions, "release", "stack")
            if not _is_of_requirement(condition)
        )
        ids = configuration_ids(self._lookups, conditions, every=True)
        on_specs = only(conditions, "hash", "specs")
        rows = select(self._lookups.conn, GONE_OF_CONFIGURATIONS, ids=json.dumps(ids))
        for *values, configuration_id in rows:
            spec = Spec._make(values)
            if not all(satisfies(spec, condition) for condition in on_specs):
                continue
            rows_of_package = self._candidates.rows(match.query.name)
            row = next(row for row in rows_of_package if row.id == configuration_id)
            configuration = self._candidates.configuration(row)
            sentence = lost_sentence(spec.last_seen)
            reason = f"{configuration.summary} /{spec.hash}: {sentence}"
            return CoveredSpec(
                "", "near", configuration=configuration, reasons=(reason,)
            )
        return None


def _is_of_requirement(condition: Condition) -> bool:
    """Return whether a condition is a requirement of `packages:`."""
    return isinstance(condition.value, Verdict) and condition.value.named is not None
