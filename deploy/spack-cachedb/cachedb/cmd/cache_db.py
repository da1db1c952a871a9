"""`spack cache-db …`: the program spack-cache-db as a command of Spack.

An extension of Spack is a folder `spack-NAME` with commands in `NAME/cmd/` (Spack's
documentation, "Custom Extensions"). Spack runs this file with its own Python, so it
starts the program, which may be installed anywhere on PATH.
"""

import argparse
import shutil
import subprocess

description = "ask which binaries are in Spack build caches (spack-cache-db)"
section = "binary"
level = "short"


def setup_parser(subparser):
    """Take everything behind `cache-db` as it is."""
    subparser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="find SPEC, cover FILE, …"
    )


def cache_db(parser, args):
    """Run the program, and return its exit status."""
    program = shutil.which("spack-cache-db")
    if program is None:
        parser.error(
            "spack-cache-db is not on PATH; install it, and activate its environment"
        )
    return subprocess.run([program, *args.arguments], check=False).returncode
