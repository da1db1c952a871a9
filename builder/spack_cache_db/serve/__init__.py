"""The server of `serve`: a whole Datasette in each process, which gunicorn ends if it
hangs.

A process answers one request at a time. `server` starts the processes, `application`
answers in each of them, `process` notes what each one does, `served` opens the database
and notices a new one, `datasette_app` makes the Datasette, and `metrics` counts the
requests of all processes.
"""
