"""The page `/cover`: the answer of the command `cover` for a pasted environment, within
limits.
"""

from __future__ import annotations

import shlex
import sqlite3
from urllib.parse import parse_qsl, urlencode

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.environments.model import (
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.errors import BuilderError, Fault
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.names.known import known_names
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.filters import (
    EVERYWHERE,
    Narrowing,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql.functions import LONGEST
from spack_cache_db.spack.legacy import parser_of

LIMITS = Limits(specs=1_000, nodes=5_000, length=LONGEST)
NAME = "pasted text"
TOO_LONG = (
    "takes too long for a web page: check fewer specs at once, or use the command line"
)


def covered(lookups: Lookups, text: str, narrowing: Narrowing = EVERYWHERE) -> Cover:
    """Return the answer for a pasted environment.

    Raises:
        BuilderError: the text is not an environment, or takes too long; or a name is
            unknown.
    """
    try:
        scope = narrowing.scope(lookups)
        around = Surroundings(
            parse=parser_of(narrowing.spack), known=known_names(lookups)
        )
        environment = read_environment(
            text.encode("utf-8", "replace"), NAME, LIMITS, around
        )
        return cover_environment(lookups, environment, scope)
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        raise UnreadableEnvironment([Fault(NAME, 0, TOO_LONG)]) from None


MOST_FORM_FIELDS = 20
LONGEST_LINK = 6_000
"""Limit of a query string with a pasted environment; most servers accept 8,000
characters.
"""


def cover(site: Site, request: PageRequest, form: str | None) -> PageResponse:
    """Return `/cover`, `.json` or `.csv`; a short form is redirected to its address."""
    sent = request.query if request.form is None else request.form
    try:
        pairs = parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        return refused(f"the form has more than {MOST_FORM_FIELDS} fields", None, 413)
    # Browsers add carriage returns to the lines of a form.
    text = dict(reversed(pairs)).get("q", "").replace("\r\n", "\n")
    narrowing, answer, error = Narrowing.parse(pairs), None, None
    if form is not None:
        answer = covered(site.lookups, text, narrowing)
        return data(form_of(answer.as_dict(), answer.rows, form), form)
    fields = [("q", text), *narrowing.pairs]
    is_short = len(urlencode(fields)) <= LONGEST_LINK
    if request.form is not None and is_short:
        return site.redirect("/cover", fields, status=303)
    try:
        answer = covered(site.lookups, text, narrowing) if text.strip() else None
    except BuilderError as unreadable:
        error = str(unreadable)
    return site.page(
        request,
        "cover.html",
        cover=answer,
        error=error,
        install=environment_commands(site.lookups, answer) if answer else None,
        pasted=text,
        narrowing=narrowing,
        is_short=is_short,
        quoted=shlex.quote,
    )
