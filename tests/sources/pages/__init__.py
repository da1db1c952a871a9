"""Tests of spack_cache_db.sources.pages."""
