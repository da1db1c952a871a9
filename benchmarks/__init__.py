"""What it costs to build and to serve the database at the size of the whole site.

Nothing here is imported by the product: numbers are measured by hand-run commands (`make bench`,
`make bench-site`) and never asserted.
"""
