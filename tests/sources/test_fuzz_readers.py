"""Random changes of everything that is read: faults in words, with the safety net
off.
"""

from itertools import islice

import pytest

from fuzz.readers import SLOWEST, inputs, one_input, targets
from tests.examples import examples


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(2)))
def test_no_change_makes_a_reader_fail(seed: int) -> None:
    """Every exception that comes of odd bytes is one that the reader foresaw, and comes
    soon.
    """
    for name, data, read in islice(inputs(seed), 10 * len(targets())):
        spent = one_input(data, read)
        assert spent < SLOWEST, (name, data[:1000])
