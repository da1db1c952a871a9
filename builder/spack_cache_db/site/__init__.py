"""The web pages of the catalogue: what they show, computed from the published file.

Everything here is plain Python over a read-only SQLite connection; only `routes` and `wrapper`
know that a web server exists, and only `plugins/spack_cache.py` knows Datasette's hooks.
"""
