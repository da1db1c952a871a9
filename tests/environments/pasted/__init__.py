"""Tests of `spack_cache_db.environments.pasted`."""
