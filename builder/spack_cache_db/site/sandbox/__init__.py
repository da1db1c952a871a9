"""The sandbox: processes that compute whatever visitors ask for, and can be killed.

SQL, `find`, `cover`, searches and pages run on read-only connections in a few processes of their
own, each task within a deadline and each process within a bound of memory. The server kills a
process whose task takes too long or whose visitor has gone, and starts another.

- `statements`: what SQL may use, how large it may be, and one statement run within these limits
- `sql_functions`: Spack's spec syntax in SQL
- `process`: the program of a process
- `pool`: the processes, as the server sees them
- `database`: how Datasette's statements and the catalogue's pages come here
"""
