"""An invented build cache, as large as the real one or a part of it: for tests and
benchmarks.
"""
