"""Which module of the site is imported first makes no difference."""

import sys
from importlib.util import find_spec
from pkgutil import walk_packages

import pytest

from spack_cache_db import site
from tests.processes import completed

IMPORT_EACH = """
import importlib, os, sys
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(name)
"""
"""Imports each module in a process that has imported nothing else; prints those that
fail.
"""


@pytest.mark.slow
def test_every_module_can_be_imported_first() -> None:
    """A script that needs one module need not import Datasette before it."""
    modules = walk_packages(site.__path__, f"{site.__name__}.")
    names = [module.name for module in modules]
    if find_spec("mcp") is None:
        names.remove("spack_cache_db.site.mcp_tools")

    done = completed([sys.executable, "-c", IMPORT_EACH, *names])

    assert done.returncode == 0
    assert len(names) > 40
    assert (done.stdout, done.stderr) == ("", "")
