"""Reads the files of Spack's mirrors."""
