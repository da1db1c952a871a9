"""The website: our own pages, and the Datasette plugin that serves them.

`plugin` has the hooks that Datasette calls, and lists what wraps a request. `routes`
maps each address to a function of `pages`, which takes a `Site` and a `PageRequest` and
returns a `PageResponse`. `http` has what surrounds these functions, and `sql` the
limits of visitors' SQL. The package `serve` runs all of it in processes that can be
ended.
"""
