"""A second kind of source goes all the way: what lies behind the columns knows no kind.

Files of a made-up kind (`tests/madeup.py`) hold several packages each, overlap, know of specs that
no release lists, tell of dependencies or not, and meet pages in one build.
"""
