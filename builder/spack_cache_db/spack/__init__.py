"""Spack's versions, variants, compilers, targets and specs: pure functions without
I/O.
"""
