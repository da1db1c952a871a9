"""Tests of query.cover: environments and their binaries."""
