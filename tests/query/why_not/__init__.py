"""Tests of query.why_not: queries without an answer."""
