"""Docstrings: what their examples say is true."""

import doctest
import importlib
from importlib.util import find_spec
from pkgutil import walk_packages

import spack_cache_db

PROGRAM = "spack_cache_db.__main__"
"""The module that runs the program when it is imported."""
NEEDS_MCP = "spack_cache_db.site.mcp_tools"


def test_examples_of_docstrings_are_true() -> None:
    """Each example in a docstring gives the result that stands below it."""
    attempted = 0
    failed = []
    for module in walk_packages(spack_cache_db.__path__, "spack_cache_db."):
        if module.name == PROGRAM:
            continue
        if module.name == NEEDS_MCP and find_spec("mcp") is None:
            continue
        outcome = doctest.testmod(importlib.import_module(module.name))
        attempted += outcome.attempted
        if outcome.failed:
            failed.append(module.name)

    assert failed == []
    assert attempted > 0
