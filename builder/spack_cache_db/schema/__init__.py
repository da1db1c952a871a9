"""The schema of a database as data: every table, column, index and view."""
