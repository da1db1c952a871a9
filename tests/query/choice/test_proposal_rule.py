"""query.choice.rule: laws of the rule, for any matches."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.choice.options import (
    Choice,
    Standing,
    best_option,
    options_in_order,
)
from spack_cache_db.query.choice.proposed import proposal_of
from spack_cache_db.query.choice.ranks import Facts, Uses
from spack_cache_db.query.choice.rule import (
    Criterion,
    Reason,
    criteria_of,
    decisive_steps,
    in_order,
)
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.schema.tables import CONFIGURATION

WORDS: dict[str, Sequence[Any]] = {
    "package": ["aa", "bb"],
    "version": ["1.9", "1.10", "develop", "git.abc=1.9", "1.10-rc1"],
    "compiler": ["gcc@12.1.0", "gcc@13.2.0", "llvm@20.1.0", "cce@18.0.0", "none"],
    "os": ["ubuntu22.04", "rhel8"],
    "platform": ["linux", "darwin"],
    "target": ["x86_64", "x86_64_v3", "zen3", "aarch64", "neoverse_v1", "unknown"],
    "variants": [(), ("+x",), ("+x", "~y"), ("~x", "~y"), ("no variant",)],
}
_FAMILIES = {"x86_64_v3": "x86_64", "zen3": "x86_64", "neoverse_v1": "aarch64"}
_COUNTS = st.builds(Uses, st.integers(0, 2), st.integers(0, 2))

_WORDS_BY_ID = {column: dict(enumerate(words)) for column, words in WORDS.items()}
_FAMILY_OF = {word: _FAMILIES.get(word, word) for word in WORDS["target"]}
_USES = st.fixed_dictionaries(
    {
        "compiler": st.dictionaries(st.sampled_from(["gcc", "llvm"]), _COUNTS),
        "os": st.dictionaries(st.sampled_from(WORDS["os"]), _COUNTS),
        "family": st.dictionaries(st.sampled_from(["x86_64", "aarch64"]), _COUNTS),
    }
)
# The same numbers for each version.
_OPTION_USES = st.dictionaries(st.integers(0, 4), st.integers(0, 3)).map(
    lambda uses: lambda version: uses
)
_PACKAGE_COUNTS = st.dictionaries(st.sampled_from(WORDS["package"]), st.integers(0, 3))
FACTS = st.builds(
    Facts,
    words=st.just(_WORDS_BY_ID),
    families=st.just(_FAMILY_OF),
    uses=_USES,
    option_uses=_OPTION_USES,
    package_counts=_PACKAGE_COUNTS,
    host=st.sampled_from([None, "zen4", "x86_64_v3"]),
    latest=st.sampled_from([None, "1.9", "develop"]),
    deprecated=st.frozensets(st.sampled_from(WORDS["version"]), max_size=1),
    has_stable=st.booleans(),
    defaults=st.sampled_from([{}, {"x": ("true",)}, {"x": ("true",), "y": ("false",)}]),
    named_variants=st.frozensets(st.just("x")),
    installed=st.dictionaries(st.integers(0, 5), st.integers(1, 2), max_size=1),
)
_KEYS = st.tuples(*(st.integers(0, len(WORDS[column]) - 1) for column in CONFIGURATION))
ROWS = st.lists(_KEYS, min_size=1, max_size=12, unique=True).map(
    lambda keys: [Candidate(number, key, 1) for number, key in enumerate(keys)]
)
STANDINGS = st.builds(
    Standing, *[st.sampled_from([True, True, False])] * len(Standing._fields)
)
SPECS_OF_EACH = 2


def _specs_of(rows: Sequence[Candidate]) -> Mapping[int, Sequence[Spec]]:
    """Return the specs of configurations; the third one has none, because it is
    gone.
    """
    specs = {}
    for row in rows:
        if row.id != 2:
            first = row.id * SPECS_OF_EACH
            numbers = range(first, first + SPECS_OF_EACH)
            specs[row.id] = [_spec(number) for number in numbers]
    return specs


def _spec(number: int) -> Spec:
    return Spec(number, f"{number:032}", 0, None, None)


def _choice(
    rows: Sequence[Candidate],
    criteria: Sequence[Criterion],
    standings: Sequence[Standing],
) -> Choice | None:
    def standings_of(specs: Sequence[Spec]) -> Mapping[int, Standing]:
        return {spec.id: standings[spec.id % len(standings)] for spec in specs}

    options = options_in_order(in_order(rows, criteria), _specs_of)
    return best_option(options, standings_of)


def _rank(row: Candidate, criteria: Sequence[Criterion]) -> list[Any]:
    return [criterion.rank(row) for criterion in criteria]


QUESTIONS = given(
    rows=ROWS, facts=FACTS, standings=st.lists(STANDINGS, min_size=1, max_size=7)
)


@QUESTIONS
def test_the_best_of_all_is_chosen(
    rows: list[Candidate], facts: Facts, standings: list[Standing]
) -> None:
    """The choice is the best by installation, standing, the criteria in order, and the
    hash.
    """
    criteria = criteria_of(facts)
    options = [
        (standings[spec.id % len(standings)], _rank(row, criteria), -spec.id)
        for row in rows
        for spec in _specs_of([row]).get(row.id, ())
    ]

    choice = _choice(rows, criteria, standings)

    if choice is None:
        assert not options
    else:
        option = choice.option
        best = (choice.standing, _rank(option.row, criteria), -option.spec.id)
        assert option.row in rows
        assert best == max(options)


@QUESTIONS
def test_the_order_of_the_matches_is_of_no_account(
    rows: list[Candidate], facts: Facts, standings: list[Standing]
) -> None:
    """The same matches in another order give the same choice for the same reasons."""
    criteria = criteria_of(facts)

    choice = _choice(rows, criteria, standings)
    other = _choice(rows[::-1], criteria, standings)

    assert (choice is None) == (other is None)
    if choice is not None and other is not None:
        first = proposal_of(choice, rows, facts, criteria)
        assert first == proposal_of(other, rows[::-1], facts, criteria)


@QUESTIONS
def test_a_worse_match_changes_nothing(
    rows: list[Candidate], facts: Facts, standings: list[Standing]
) -> None:
    """Without a match that was not chosen, the choice is the same."""
    criteria = criteria_of(facts)
    choice = _choice(rows, criteria, standings)

    for row in rows:
        if choice is not None and row != choice.option.row:
            fewer = _choice(
                [other for other in rows if other != row], criteria, standings
            )
            assert fewer is not None
            assert fewer.option.spec == choice.option.spec


@QUESTIONS
def test_a_reason_is_a_step_that_excluded_a_match(
    rows: list[Candidate], facts: Facts, standings: list[Standing]
) -> None:
    """A step is a reason exactly if a match that was equal until then is worse in
    it.
    """
    criteria = criteria_of(facts)
    choice = _choice(rows, criteria, standings)
    if choice is None:
        return
    chosen = _rank(choice.option.row, criteria)

    expected = set()
    for row in rows:
        rank = _rank(row, criteria)
        different = [at for at in range(len(criteria)) if rank[at] != chosen[at]]
        if different and rank[different[0]] < chosen[different[0]]:
            expected.add(criteria[different[0]].reason)
    steps = decisive_steps(rows, criteria, choice.option.row)
    proposal = proposal_of(choice, rows, facts, criteria)

    assert {step.reason for step in steps} == expected
    compared = {criterion.reason for criterion in criteria}
    assert compared & set(proposal.decided) == expected
    assert (Reason.ORDER in proposal.decided) == (not choice.option.is_alone)
    assert proposal.reason == "the only build" or proposal.decided
