"""Which specs of an environment have a binary."""
