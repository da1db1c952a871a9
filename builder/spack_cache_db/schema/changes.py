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

CHANGE_WORDS = tuple(dict.fromkeys(CHANGES.values()))
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


def _when_lines() -> str:
    lines = []
    for are_above, word in CHANGES.items():
        conditions = []
        for count, is_above in zip(_COUNTS_OF_CHANGES, are_above, strict=True):
            conditions.append(f"{count} > 0" if is_above else f"{count} = 0")
        lines.append(f"    WHEN {' AND '.join(conditions)} THEN '{word}'")
    return "\n".join(lines)


CHANGE = _when_lines()
"""The lines of a CASE with the word for a change, such as `WHEN … THEN 'removed'`."""
