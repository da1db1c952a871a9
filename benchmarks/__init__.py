"""What it costs to build and to serve the database at the size of the whole site.

Numbers are measured by hand-run commands (`make bench`, `make bench-site`) and never asserted.
The product imports nothing from here; tests and attacks borrow how servers and Chromium
are started, and how load is made.
"""
