"""The site's own pages: what they show, computed from a built file, and how they are served.

The pages are plain Python over a SQLite connection. `routes`, `wrapper` and `download` speak HTTP,
`sql` bounds what visitors may ask, and what only Datasette 0.65 needs is a room of
its own. Datasette's hooks are in `plugins/spack_cache.py`.
"""
