"""Reads pages of the build-cache site."""
