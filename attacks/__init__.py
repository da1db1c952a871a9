"""Attacks by visitors, pages and archives on real processes, and a report of what held.

`python -m attacks` builds a file, serves it, tries everything and prints a table of
what held. Nothing is judged by wall time alone, because the machine may be busy.
"""
