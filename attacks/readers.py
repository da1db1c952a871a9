"""Random changes of every kind of input, read without the handler of unexpected
errors.
"""

from __future__ import annotations

from attacks.outcome import Outcome, until
from fuzz.readers import SLOWEST, inputs, one_input


def readers(seconds: float) -> Outcome:
    """Change indexes, mirrors, spec files, pages and archives with a fixed seed, and
    read them.
    """
    outcome = Outcome("readers")
    slowest = 0.0
    for name, data, reader in until(seconds, inputs(seed=5)):
        faults = []
        try:
            spent = one_input(data, reader)
        except Exception as error:  # Any unexpected exception is a fault.
            faults.append(f"{type(error).__name__}: {error}")
        else:
            slowest = max(slowest, spent)
            if spent > SLOWEST:
                faults.append(f"took {spent:.1f} s")
        outcome.judge(f"{name} {data[:100]!r}", faults)
    outcome.note = f"the slowest took {slowest:.2f} s"
    return outcome
