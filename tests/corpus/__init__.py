"""The invented site on which tests and benchmarks build: as large as the real one, or smaller."""
