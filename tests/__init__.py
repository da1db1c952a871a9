"""Tests: one module per module of the builder; what they share stands in `conftest` and `pagetexts`."""
