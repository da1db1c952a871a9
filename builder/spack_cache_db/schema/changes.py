"""The words for changes, and the columns of the views that show them."""

from __future__ import annotations

from spack_cache_db.schema.words import BUILD_COLUMNS

CHANGES = {
    (False, False, True): "removed",
    (False, True, False): "added",
    (True, True, False): "grown",
    (True, False, True): "shrunk",
    (False, True, True): "rebuilt",
    (True, True, True): "rebuilt",
}
"""The change of a configuration, by whether hashes of it were kept, added and
removed.
"""

CHANGE_WORDS = (*dict.fromkeys(CHANGES.values()),)
"""The words for a changed configuration, in the order in which reports list them."""

CHANGE_COLUMNS = f"""\
  releases.name AS release,
  previous_releases.name AS previous,
  packages.name AS package,
{BUILD_COLUMNS}"""

_COUNTS_OF_CHANGES = (
    "listed.spec_count - listed.added",
    "listed.added",
    "listed.removed",
)
CHANGE = "\n".join(
    "    WHEN "
    + " AND ".join(
        f"{count} {'>' if is_above else '='} 0"
        for count, is_above in zip(_COUNTS_OF_CHANGES, counts, strict=True)
    )
    + f" THEN '{word}'"
    for counts, word in CHANGES.items()
)
