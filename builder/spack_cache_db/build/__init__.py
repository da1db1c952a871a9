"""Columns → the published file: merged, numbered, counted, written whole or not at all."""
