"""Reads plain words."""
