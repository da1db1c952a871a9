"""Tests of indexes and mirrors."""
