"""`python -m fuzz.spec_query -max_total_time=3600`: look for texts that make the spec
parser fail.

Needs atheris (`pip install atheris`); the tests fuzz with hypothesis instead. A text
must be read, or refused with a message, within 100 ms; anything else is a finding.
"""

from __future__ import annotations

import sys
import time

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["spack_cache_db.spack"]):
    from spack_cache_db.query.conditions.pages import UnsupportedQuery
    from spack_cache_db.spack.lexer import QuerySyntaxError
    from spack_cache_db.spack.parser import parse_query
    from tests.configurations import HASH, HDF5
    from tests.oracle import matches

SLOWEST = 0.1


class SlowError(Exception):
    """Reading a text took too long."""


def one_input(data: bytes) -> None:
    """Read one text and match it with one spec."""
    text = atheris.FuzzedDataProvider(data).ConsumeUnicodeNoSurrogates(len(data))
    started = time.process_time()
    try:
        query = parse_query(text)
    except QuerySyntaxError as error:
        str(error)
        return
    finally:
        spent = time.process_time() - started
        if spent > SLOWEST:
            raise SlowError(f"{spent:.3f} s for {text[:100]!r}")
    try:
        matches(query, HDF5, HASH)
    except UnsupportedQuery as error:
        str(error)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
