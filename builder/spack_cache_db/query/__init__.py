"""Everything that reads a published file."""
