"""The columns of configurations in words, for views."""

from __future__ import annotations

from spack_cache_db.schema.tables import CONFIGURATION, LABELS


def word_of(column: str) -> str:
    """Return the SQL expression for the word in a column of a configuration.

    Platforms are read by a subquery: most rows have the same platform, and with a join
    SQLite would
    start from a condition on it.
    """
    if column == "platform":
        return "(SELECT name FROM platforms WHERE id = configurations.platform_id)"
    return f"{CONFIGURATION[column]}.{LABELS.get(column, 'name')}"


BUILD_COLUMNS = ",\n".join(
    f"  {word_of(column)} AS {column}"
    for column in CONFIGURATION
    if column != "package"
)
