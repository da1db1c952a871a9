"""The command line: one module for each command, and modules that commands share."""

from spack_cache_db.cli.main import main as main
