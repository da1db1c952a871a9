"""Finds what satisfies a spec."""
