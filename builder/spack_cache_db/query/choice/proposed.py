"""The build that is proposed for a question, and why, as a record and in words.

For `hdf5 +mpi target=:zen3`, the words may be `hdf5@1.14.6 +mpi, gcc 13.2.0,
ubuntu22.04, x86_64_v3` and `chosen for zen3: newest version, default options`.
`options` makes the choice, and the steps that decided it are those of `rule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spack_cache_db.model import NO_COMPILER, Configuration
from spack_cache_db.query.choice.options import Choice
from spack_cache_db.query.choice.ranks import UNNAMED, Facts
from spack_cache_db.query.choice.rule import Criterion, Reason, Step, decisive_steps
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import family, is_generic
from spack_cache_db.spack.versions import (
    is_git_version,
    is_stable,
    newest_version,
)

MOST_OPTIONS = 6
"""Maximum of options that the words of a build name."""
PHRASES = {
    "only": "the only build",
    "first": "the first of equal builds",
    "chosen": "chosen",
    "chosen for": "chosen for {}",
    "any machine": "any {} machine",
    "installed": "installed",
    "current": "listed by a branch or release",
    "last listed": "last listed",
    "complete": "with all dependencies",
    "portable": "needs nothing of the system",
    "address": "in a mirror with a known address",
    "package": "{} has most binaries",
    "stable": "stable version",
    "preferred": "preferred version",
    "machine": "for a usual machine",
    "newest": "newest version",
    "default options": "default options",
    "commonest options": "commonest options",
    "no compiler": "no compiler",
    "system": "{} is the commonest system",
    "nearest": "nearest target",
    "target": "{} runs on most machines",
    "order": "first of equal builds",
    "more options": "and {} more options",
}
"""The phrases of reasons, and of the words for a build; the scripts of a static export
have the same.
"""
_REASON_OF_FIELD = {
    "is_current": Reason.CURRENT,
    "is_complete": Reason.COMPLETE,
    "is_portable": Reason.PORTABLE,
    "has_address": Reason.ADDRESS,
}
"""The part of step 2 that reads each field of a `Standing`."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The build that is proposed, and why.

    Options are variants such as `+mpi`.

    Attributes:
        configuration: its configuration, in words.
        configuration_id: the id of its configuration.
        spec: the id of its spec.
        hash: the hash of its spec.
        decided: the steps that excluded another match; empty if there is no other.
        host: the CPU target of the machine that the question chooses; None if it
            chooses none.
        is_newest: whether no match that the step on versions excluded has a newer
            version; versions of git do not count.
        has_defaults: whether it has the default options of the package. Options that
            the question names, and options without a known default, do not count.
        options: the options by which the words describe it: those that differ from the
            package's defaults, or without package data those that other matches of this
            version do not share; and those that the question names.
        is_current: whether a branch, a release or an installation lists it.
        is_complete: whether its dependencies are in mirrors too, as far as the database
            knows.
    """

    configuration: Configuration
    configuration_id: int
    spec: int
    hash: str
    decided: tuple[Reason, ...]
    host: str | None
    is_newest: bool
    has_defaults: bool
    options: tuple[str, ...]
    is_current: bool
    is_complete: bool

    @property
    def build(self) -> str:
        """The build in a few words:
        `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04, x86_64_v3`.
        """
        return build_words(self.configuration, self.options)

    @property
    def reason(self) -> str:
        """Why it was chosen:
        `chosen for zen3: newest version, default options, gcc 13.2.0`.
        """
        if not self.decided:
            return PHRASES["only"]
        # The order of equal builds is of no interest beside other steps.
        steps = [step for step in self.decided if step != Reason.ORDER]
        if not steps:
            return PHRASES["first"]

        # The machine is named before the colon: the chosen one, or those of a family.
        target = self.configuration.target
        machine = self.host
        if machine is None and Reason.MACHINE in steps and is_generic(target):
            machine = PHRASES["any machine"].format(family(target))
            steps.remove(Reason.MACHINE)
        chosen = PHRASES["chosen"]
        if machine:
            chosen = PHRASES["chosen for"].format(machine)
        # Two steps may have the same phrase.
        phrases = ", ".join(dict.fromkeys(map(self._phrase_of, steps)))
        return f"{chosen}: {phrases}" if phrases else chosen

    def _phrase_of(self, step: Reason) -> str:
        """Return why a step preferred this build, such as `gcc 13.2.0`."""
        build = self.configuration
        match step:
            case Reason.CURRENT:
                return PHRASES["current" if self.is_current else "last listed"]
            case Reason.PACKAGE:
                return PHRASES["package"].format(build.package)
            case Reason.STABLE:
                # Or a branch that the recipe prefers.
                return PHRASES["stable" if is_stable(build.version) else "preferred"]
            case Reason.VERSION:
                return PHRASES["newest" if self.is_newest else "preferred"]
            case Reason.OPTIONS:
                options = "default" if self.has_defaults else "commonest"
                return PHRASES[f"{options} options"]
            case Reason.COMPILER:
                if build.compiler == NO_COMPILER:
                    return PHRASES["no compiler"]
                return _spoken(build.compiler)
            case Reason.OS:
                return PHRASES["system"].format(build.os)
            case Reason.TARGET:
                if self.host:
                    return PHRASES["nearest"]
                return PHRASES["target"].format(build.target)
            case _:
                # The phrases of the other steps have their names.
                return PHRASES[step]


def build_words(configuration: Configuration, options: Sequence[str] = ()) -> str:
    """Return a configuration in a few words, such as `hdf5@1.14.6 +mpi, gcc 13.2.0,
    ubuntu22.04, x86_64_v3`, with these options.
    """
    # The package with its options has no commas.
    name_and_version = f"{configuration.package}@{configuration.version}"
    package = " ".join((name_and_version, *options[:MOST_OPTIONS]))
    hidden_count = len(options) - MOST_OPTIONS
    if hidden_count > 0:
        package += " " + PHRASES["more options"].format(hidden_count)

    parts = [package]
    if configuration.compiler != NO_COMPILER:
        parts.append(_spoken(configuration.compiler))
    parts += [configuration.os, configuration.target]
    return ", ".join(parts)


def _spoken(compiler: str) -> str:
    """Return `gcc 13.2.0` for `gcc@13.2.0`."""
    return compiler.replace("@", " ")


def proposal_of(
    choice: Choice,
    rows: Sequence[Candidate],
    facts: Facts,
    criteria: Sequence[Criterion],
    before: Iterable[Reason] = (),
) -> Proposal:
    """Return a choice as a proposal.

    Args:
        choice: the chosen spec.
        rows: the matches: configurations with ids in place of words.
        facts: what the rule knows about them.
        criteria: the steps that compared them.
        before: steps that excluded other matches before these were compared.
    """
    # Collect the steps that decided, and bring them into the order of the rule.
    chosen = choice.option.row
    steps = decisive_steps(rows, criteria, chosen)
    decided = [*before, *_reasons_of_standing(choice)]
    decided += [step.reason for step in steps]
    if not choice.option.is_alone:
        decided.append(Reason.ORDER)
    order = list(Reason)
    decided.sort(key=order.index)

    # Look up the words of the configuration.
    words = []
    for column in CONFIGURATION:
        words.append(facts.words[column][chosen.key(column)])
    configuration = Configuration._make(words)

    excluded_versions = _excluded_numbers(steps, facts)
    newest = newest_version([*excluded_versions, configuration.version])
    return Proposal(
        configuration=configuration,
        configuration_id=chosen.id,
        spec=choice.option.spec.id,
        hash=choice.option.spec.hash,
        decided=tuple(decided),
        host=facts.host,
        is_newest=newest == configuration.version,
        has_defaults=facts.has_defaults(configuration.variants),
        options=described_options(chosen, rows, facts),
        is_current=choice.standing.is_current,
        is_complete=choice.standing.is_complete,
    )


def _reasons_of_standing(choice: Choice) -> list[Reason]:
    """Return the parts of step 2 that decided: the choice passes them, but a row that
    comes before it in the other steps does not.
    """
    reasons = []
    for field, reason in _REASON_OF_FIELD.items():
        is_passed = getattr(choice.standing, field)
        others = [getattr(standing, field) for standing in choice.passed_over.values()]
        if is_passed and not all(others):
            reasons.append(reason)
    return reasons


def _excluded_numbers(steps: Iterable[Step], facts: Facts) -> list[str]:
    """Return the versions that the step on versions excluded, without those of git."""
    ids: set[int] = set()
    for step in steps:
        if step.reason == Reason.VERSION:
            ids.update(row.key("version") for row in step.excluded)
    versions = [facts.words["version"][key] for key in ids]
    return [version for version in versions if not is_git_version(version)]


def described_options(
    chosen: Candidate, rows: Sequence[Candidate], facts: Facts
) -> tuple[str, ...]:
    """Return the variants that describe a build; see `Proposal.options`."""
    # Find the variants that all matches of this version have.
    texts_of_set = facts.words["variants"]
    own_texts = texts_of_set[chosen.key("variants")]
    version = chosen.key("version")
    sets_of_version = {
        row.key("variants") for row in rows if row.key("version") == version
    }
    shared = set(own_texts)
    for variant_set in sets_of_version:
        shared.intersection_update(texts_of_set[variant_set])

    # Keep those that differ from the defaults or, without any, from other matches.
    options = []
    for text in own_texts:
        parsed = readable_variant(text)
        if parsed is None or parsed.name in UNNAMED:
            continue
        default = facts.defaults.get(parsed.name)
        if default is not None:
            differs = parsed.values != default
        else:
            # Whether it differs is not known if package data lists others only.
            differs = not facts.defaults and text not in shared
        if differs or parsed.name in facts.named_variants:
            options.append(text)
    return tuple(options)
