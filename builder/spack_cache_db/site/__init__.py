"""The site's own pages: what they show, computed from a built file, and how they are served.

In `pages` they are plain Python over a SQLite connection; the modules here put them, and bounds for
all that Datasette itself shows, between HTTP and Datasette. What visitors' SQL may do is in `sql`,
and what only Datasette 0.65 needs is a room of its own. The hooks are in `plugins/spack_cache.py`.
"""
