"""Tests of site.pages: what each page shows."""
