"""records: what every room knows is plain, quick to load, and sorts by what it says."""

from __future__ import annotations

import pickle
import subprocess
import sys

from spack_cache_db.records import Configuration, Problem
from tests.configurations import configuration


def test_the_ground_loads_no_decoder() -> None:
    """Whoever reads a file needs these records, and none of what reads pages."""
    program = (
        "import spack_cache_db.records, spack_cache_db.schema, spack_cache_db.releases, sys; "
        "print({'msgspec', 'numpy', 'yaml'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_equal_records_are_one() -> None:
    """As keys of a dictionary, also after a process sent them."""
    one = configuration(variants=("+x",))
    sent = pickle.loads(pickle.dumps(one))
    assert {one: 1}[sent] == 1
    assert isinstance(sent, Configuration)
    assert one != configuration(variants=("~x",))


def test_a_problem_need_not_declare_anything() -> None:
    """Only what a source says instead of what is stored is kept."""
    assert Problem("code", "message").declared is None
