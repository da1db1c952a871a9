"""How many examples tests of properties try.

A weekly run tries more of them, with `SPACK_CACHE_DB_TEST_EXAMPLES=5`, and `make loop`
fewer.
"""

import os

FACTOR = float(os.environ.get("SPACK_CACHE_DB_TEST_EXAMPLES", "1"))


def examples(count: int) -> int:
    """Return how many examples a test tries which usually tries `count`."""
    return max(1, round(count * FACTOR))
