"""Tests of the package `serve`."""
