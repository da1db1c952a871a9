"""Columns → the published file: merged, numbered, counted and written, completely or
not at all.
"""
