"""How `make test-spack` reads our answers and judges them; the comparison itself needs
a Spack.
"""
