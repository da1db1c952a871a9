"""The attack: what a visitor, a page or an archive may try against real processes, and what holds.

`python -m attacks` builds a file, serves it, tries everything and prints a table of tried and held.
Times of the clock are never judged alone, for the machine may have other things to do.
"""
