"""Names in any spelling."""
