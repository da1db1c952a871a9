"""Benchmarks: what building and serving cost at the size of the real site.

Run them by hand (`make bench`, `make bench-site`); no test asserts their numbers. Tests
and attacks use the modules that start servers and Chromium, and that create load.
"""
