"""Spack's versions, variants, compilers, targets and specs: pure functions.

Nothing here reads a file, opens a connection or prints.
"""
