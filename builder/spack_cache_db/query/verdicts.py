"""Of which specs something holds, and of which it is not known: both as sets of their ids."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass


# As large as the file: two of them are compared by identity.
@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What is known of a condition; of the specs that are in neither set, it does not hold.

    Attributes:
        holds: the specs that satisfy it.
        unknown: those of which nothing says whether they do.
    """

    holds: Set[int]
    unknown: Set[int] = frozenset()

    def __and__(self, other: Verdict) -> Verdict:
        """Return where both hold."""
        holds = self.holds & other.holds
        return Verdict(holds, (self._possible() & other._possible()) - holds)

    def __or__(self, other: Verdict) -> Verdict:
        """Return where one of them holds."""
        holds = self.holds | other.holds
        return Verdict(holds, (self.unknown | other.unknown) - holds)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return where it does not hold, among `every` spec."""
        return Verdict(every - self.holds - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        return self.holds | self.unknown if self.unknown else self.holds
