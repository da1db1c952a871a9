"""Checks what is kept of a mirror, before `cover --keeplist` and `retention` print it.

A list that lacks a hash makes Spack delete a binary, so an incomplete one is an error
unless the user allows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spack_cache_db.cli.cover_texts import text_of
from spack_cache_db.cli.environments import STANDARD_INPUT, Covered
from spack_cache_db.cli.forms import fail, say_notes
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.answers.covered import Cover
    from spack_cache_db.query.answers.retention import Retention, Rules
    from spack_cache_db.query.conditions.conditions import Conditions
    from spack_cache_db.query.open.lookups import Lookups


def checked_retention(
    lookups: Lookups,
    covered: Iterable[Covered],
    scope: Conditions,
    rules: Rules,
    *,
    allow_missing: bool,
) -> Retention:
    """Return the binaries that environments and rules keep.

    Notes name each spec that is not kept, and each kept binary that is missing.

    Args:
        lookups: the database of the mirror.
        covered: the answers for the environments. One that cannot be read ends the
            command with an error.
        scope: the part of the database that is the mirror.
        rules: other rules that keep binaries.
        allow_missing: whether specs may be left out; otherwise, one that nothing keeps
            ends the command with an error.
    """
    from spack_cache_db.query.answers.retention import missing_texts, retained

    covers = {}
    for path, answer, error in covered:
        if answer is None:
            fail(error)
        covers[path] = answer
    retention = retained(lookups, list(covers.values()), scope, rules)

    say_notes(retention.notes)
    kept_hashes = set(retention.keep)
    for path, answer in covers.items():
        _say_not_kept(path, answer, kept_hashes)
    if retention.unmet and not allow_missing:
        specs = counted(len(retention.unmet), "spec")
        advice = "correct the environment, or use --allow-missing to keep the rest only"
        fail(f"no hash keeps {specs}, so no keep list is printed: {advice}", status=1)
    if not retention.keep:
        effect = "pruning with it would delete every binary of the mirror"
        fail(f"the keep list is empty, and {effect}")
    say_notes(missing_texts(lookups, retention.missing, scope))
    return retention


def _say_not_kept(path: str, answer: Cover, kept_hashes: set[str]) -> None:
    """Print a note on each spec and each line of an environment that nothing keeps."""
    from spack_cache_db.query.answers.retention import is_met

    file_name = "standard input" if path == STANDARD_INPUT else path
    for spec in answer.specs:
        if not is_met(spec, kept_hashes):
            location = f"{file_name}:{spec.line}" if spec.line else file_name
            text = f"nothing keeps {spec.spec}: {spec.status}: {text_of(spec)}"
            say_notes([f"{location}: {text}"])
    for line in answer.others:
        say_notes([f"{path}: nothing keeps {line}: it is not a spec"])
