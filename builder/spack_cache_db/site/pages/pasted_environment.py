"""The page `/cover`: the answer of the command `cover` for a pasted environment, within limits."""

from __future__ import annotations

import sqlite3

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.environments.model import Limits, Surroundings, UnreadableEnvironment
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.errors import Fault
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover
from spack_cache_db.query.names.known import known_names
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.pages.filters import EVERYWHERE, Narrowing
from spack_cache_db.site.sandbox.sql_functions import LONGEST
from spack_cache_db.spack.legacy import parser_of

LIMITS = Limits(specs=1_000, nodes=5_000, length=LONGEST)
NAME = "pasted text"
TOO_LONG = "takes too long for a web page: check fewer specs at once, or use the command line"


def covered(lookups: Lookups, text: str, narrowing: Narrowing = EVERYWHERE) -> Cover:
    """Return the answer for a pasted environment.

    Raises:
        BuilderError: the text is not an environment, or takes too long; or a name is unknown.
    """
    try:
        scope = narrowing.scope(lookups)
        around = Surroundings(parse=parser_of(narrowing.spack), known=known_names(lookups))
        environment = read_environment(text.encode("utf-8", "replace"), NAME, LIMITS, around)
        return cover_environment(lookups, environment, scope)
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        raise UnreadableEnvironment([Fault(NAME, 0, TOO_LONG)]) from None
