"""Reads what is stored, by ids."""
