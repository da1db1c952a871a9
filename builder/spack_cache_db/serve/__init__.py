"""The server of `serve`: a whole Datasette in each process, which gunicorn ends if it
hangs.

A process answers one request at a time.

- `server` starts the processes, and `worker` is one of them for gunicorn.
- `application` answers requests in each of them; `hosts` checks the name by which a
  browser calls the server, and `lifespan` tells Datasette that it starts and ends.
- `process` notes the request that a process answers.
- `served` opens the database and notices a new one.
- `datasette_app` makes the Datasette, and `metadata` reads its settings.
- `metrics` counts the requests of all processes.
"""
