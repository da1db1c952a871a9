"""The limits of visitors' SQL, and our SQL functions.

`authorizer` lists what a statement may use, and `limits` what it may take. `execution`
runs the statements of Datasette's pages within these, `running` bounds their results,
and `overtime` ends a process that does not notice the end of its time. `whole_tables`
and `example_conditions` help a visitor whose statement took too long. `functions` has
`spec_match` and `spec_error`.
"""
