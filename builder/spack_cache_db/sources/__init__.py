"""Reads files of the input into columns."""
