"""`python -m spack_cache_db` is the command `spack-cache-db`."""

from spack_cache_db.cli.main import main

main()
