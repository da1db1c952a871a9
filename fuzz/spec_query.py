"""`python fuzz/spec_query.py -max_total_time=3600`: no text makes the spec parser fail.

Needs atheris (`pip install atheris`), which the tests do not: they fuzz with hypothesis. A text is
read or refused with a message; anything else that is raised, and any that takes longer than
100 ms, is a finding.
"""

from __future__ import annotations

import sys
import time

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["spack_cache_db.spack"]):
    from spack_cache_db.query.answerable import UnsupportedQuery
    from spack_cache_db.query.asked import matches
    from spack_cache_db.records import Configuration
    from spack_cache_db.spack.query import QuerySyntaxError, parse_query

SLOWEST = 0.1
SPEC = Configuration(
    package="hdf5",
    version="1.14.3",
    compiler="gcc@13.2.0",
    os="debian12",
    platform="linux",
    target="zen3",
    variants=("+mpi", "~java", "api=default", "libs=shared,static", "patches=0abcdef,f7d58d3"),
)
HASH = "abcdefghijklmnopqrstuvwxyz234567"


class SlowError(Exception):
    """A text took longer to read than a visitor should wait."""


def one_input(data: bytes) -> None:
    """Read one text and ask it of one spec."""
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
        matches(query, SPEC, HASH)
    except UnsupportedQuery as error:
        str(error)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
