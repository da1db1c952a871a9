"""`/cover`: the answer of the command `cover` for a pasted environment, within limits.

Also `/cover.json` and `/cover.csv`. The text is in a form, or in the address if it is
short.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.errors import BuilderError, Fault
from spack_cache_db.query.answers.cover import answered_environment, cover_environment
from spack_cache_db.query.answers.covered import Cover
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.answers.spec_functions import LONGEST
from spack_cache_db.query.answers.toolchains import Toolchain
from spack_cache_db.query.names.known import known_names
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.totals import largest_packages
from spack_cache_db.site.filters import EVERYWHERE, Narrowing, Pairs
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.environment_page import EnvironmentPage
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.package_commands import tabs_of_environment
from spack_cache_db.site.pages.toolchain_table import (
    asked_toolchain,
    check_toolchain,
    chosen_toolchain,
    toolchain_table,
)
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.spack.legacy import parser_of
from spack_cache_db.sqlite_connection import is_interrupted

LIMITS = Limits(specs=1_000, nodes=5_000, length=LONGEST)
NAME = "pasted text"
TOO_LONG = (
    "takes too long for a web page: check fewer specs at once, or use the command line"
)
MOST_FORM_FIELDS = 20
EXAMPLES = 8
"""Specs of the example."""
LONGEST_LINK = 6_000
"""Limit of a query string with a pasted environment; most servers accept 8,000
characters.
"""


def cover(site: Site, request: PageRequest, form: str | None) -> PageResponse:
    """Return `/cover`, `.json` or `.csv`; a short form is redirected to its address."""
    # Read the form, or the query string like one.
    sent = request.query if request.form is None else request.form
    try:
        pairs = parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        return refused(f"the form has more than {MOST_FORM_FIELDS} fields", None, 413)
    # The first field of a name counts.
    fields = dict(reversed(pairs))
    # Browsers add carriage returns to the lines of a form.
    text = fields.get("q", "").replace("\r\n", "\n")
    narrowing = Narrowing.parse(pairs)

    # Programs get the answer, or its error.
    if form is not None:
        toolchain = asked_toolchain(fields.get("toolchain"))
        answer = covered(site.lookups, text, narrowing, toolchain)
        document = answer.as_dict()
        if toolchain is not None:
            document["toolchain"] = toolchain._asdict()
        return data(form_of(document, answer.rows, form), form)

    # A short environment has an address that can be kept.
    query = [("q", text), *narrowing.pairs]
    is_short = len(urlencode(query)) <= LONGEST_LINK
    if request.form is not None and is_short:
        return site.redirect("/cover", query, status=303)

    # The page shows the answer, the error, or only the form.
    page = None
    error = None
    if text.strip():
        try:
            page = environment_page(site.lookups, text, narrowing, query, fields)
        except BuilderError as unreadable:
            error = str(unreadable)
    return site.page(
        request,
        "cover.html",
        page=page,
        example=example(site.lookups),
        error=error,
        pasted=text,
        narrowing=narrowing,
        is_short=is_short,
    )


def environment_page(
    lookups: Lookups,
    text: str,
    narrowing: Narrowing,
    query: Pairs,
    fields: Mapping[str, str],
) -> EnvironmentPage:
    """Return what the page shows of an environment.

    Args:
        lookups: the database.
        text: the environment.
        narrowing: the filters.
        query: the fields of the page's address, without the toolchain.
        fields: the fields that were sent.

    Raises:
        BuilderError: as of `covered`.
    """
    with _in_time():
        environment = read_pasted(lookups, text, narrowing)
        scope = narrowing.scope(lookups)
        answered = answered_environment(lookups, environment, scope)
        answer = answered.cover
        # The commands install binaries of one toolchain, unless all are asked for.
        installed = answer
        table = None
        toolchain = chosen_toolchain(answer, fields.get("toolchain"))
        if toolchain is not None:
            installed = answered.within_toolchain(toolchain)
            # Toolchains of other machines are shown beside those of the reader's.
            everywhere = None
            if narrowing.host and len(text) <= LONGEST_LINK:
                all_machines = replace(narrowing, host=None).scope(lookups)
                everywhere = cover_environment(lookups, environment, all_machines)
            table = toolchain_table(answer, installed, toolchain, query, everywhere)
    commands = environment_commands(lookups, installed)
    return EnvironmentPage(
        cover=answer,
        installed=installed,
        toolchain=toolchain,
        table=table,
        commands=commands,
        tabs=() if commands is None else tabs_of_environment(commands, installed),
        narrowing=narrowing,
    )


def example(lookups: Lookups) -> str:
    """Return specs to try: the packages with most binaries."""

    def read() -> str:
        largest = largest_packages(lookups.conn, EXAMPLES)
        return "\n".join(name for name, _, _ in largest)

    return lookups.once(example, read)


def covered(
    lookups: Lookups,
    text: str,
    narrowing: Narrowing = EVERYWHERE,
    toolchain: Toolchain | None = None,
) -> Cover:
    """Return the answer for a pasted environment.

    Args:
        lookups: the database.
        text: the environment.
        narrowing: the filters.
        toolchain: the toolchain whose binaries count; None for those of all.

    Raises:
        BuilderError: the text is not an environment, or takes too long; or a name is
            unknown, or the environment has no binary of the toolchain.
    """
    with _in_time():
        environment = read_pasted(lookups, text, narrowing)
        scope = narrowing.scope(lookups)
        if toolchain is None:
            return cover_environment(lookups, environment, scope)
        answered = answered_environment(lookups, environment, scope)
        check_toolchain(answered.cover, toolchain)
        return answered.within_toolchain(toolchain)


def read_pasted(lookups: Lookups, text: str, narrowing: Narrowing) -> Environment:
    """Return the environment that a text is.

    Raises:
        BuilderError: it is not one.
    """
    surroundings = Surroundings(
        parse=parser_of(narrowing.spack), known=known_names(lookups)
    )
    encoded = text.encode("utf-8", "replace")
    return read_environment(encoded, NAME, LIMITS, surroundings)


@contextmanager
def _in_time() -> Iterator[None]:
    """Report a statement that was interrupted as a fault of the environment."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        raise UnreadableEnvironment([Fault(NAME, 0, TOO_LONG)]) from None
