"""Lets Ctrl-C end the command at once while its modules are loaded.

This module is imported first. It changes nothing in other programs that import the package.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise


def _is_command() -> bool:
    """Return whether this process is the command, and not some other program."""
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":
        # Python looks for the module, whose name is not in `sys.argv`.
        return ("-m", "spack_cache_db") in pairwise(sys.orig_argv)
    return os.path.basename(name) == "spack-cache-db"  # noqa: PTH119 - pathlib takes long


if signal.getsignal(signal.SIGINT) is signal.default_int_handler and _is_command():
    # Until `cli.main` says what is to be done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
