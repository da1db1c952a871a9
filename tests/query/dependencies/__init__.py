"""Tests of query.dependencies: the graph of a file."""
