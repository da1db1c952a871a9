"""Worker processes: they run statements of visitors and make pages, within bounds, for the server.

`pool` starts and kills them, `worker` is their program, and `execute` sends them the statements of
Datasette's pages.
"""
