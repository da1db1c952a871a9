"""Spack's own indexes, spec files and mirrors: what build caches publish today."""
