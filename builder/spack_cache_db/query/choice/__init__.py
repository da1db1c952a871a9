"""Chooses a binary: the one to propose, and those that Spack reuses."""
