"""Tests of package data."""
