"""Everything that reads a published file: one way to open it, ask it and tell what was found."""
