"""Why nothing satisfies a query, and what there is instead."""
