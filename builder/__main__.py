"""`python -m builder` is the command `spack-cache-db`."""

from .cli import main

main()
