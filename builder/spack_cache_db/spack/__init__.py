"""What Spack means by versions, variants, targets and specs: pure functions, no database.

Nothing here reads a file, opens a connection or prints. `versions`, `variants`, `targets` and
`flags` own one dimension of a spec each; `query` parses Spack's spec syntax, and `match` says
whether one part of a spec is as a constraint of a query asks.
"""
