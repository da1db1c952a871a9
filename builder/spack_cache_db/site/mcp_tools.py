"""Tools for assistants, beside those for SQL that the plugin datasette-mcp has.

The plugin offers them at `/-/mcp`, in the Model Context Protocol. Each tool answers as
a function of the Python API does, within the limits of our pages, and returns the text
that `--json` prints. This module is imported only if datasette-mcp is installed.

A method of `Tools` has the description for assistants and the names of the arguments. A
function of this module, such as `_found`, makes the answer from a `Site`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.query.answers.changes import Changes
from spack_cache_db.query.answers.diff import compare
from spack_cache_db.query.answers.find import found_part, found_rows
from spack_cache_db.query.answers.install import chosen_build
from spack_cache_db.query.answers.spec_functions import LONGEST, parse
from spack_cache_db.query.answers.why_not import why_corrected, why_in_time, why_not
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question, recent_question
from spack_cache_db.query.names.known import known_name, spec_in
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.package_data import read_package
from spack_cache_db.query.words.reader import read_words
from spack_cache_db.site.catalogue import may_view, published
from spack_cache_db.site.filters import Narrowing
from spack_cache_db.site.http.checks import LONGEST_NAME, MOST_BODY
from spack_cache_db.site.http.error_pages import failure_of
from spack_cache_db.site.http.own_pages import run_page
from spack_cache_db.site.log import log_error
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.changes import MOST_EXPLAINED
from spack_cache_db.site.pages.dependents import DependentsFields
from spack_cache_db.site.pages.pasted_environment import covered
from spack_cache_db.site.pages.search_answers import is_spec
from spack_cache_db.site.search_words import (
    CORRECTED,
    notes_on_words,
    phrases_of_names,
)
from spack_cache_db.site.site import Site

MOST_FOUND = 50
"""Limit of configurations, or of binaries that need a spec, in one answer: an
assistant reads it as a whole.
"""
MOST_CHANGED = 1_000
"""Limit of changed configurations in one answer, as for rows of SQL."""
MCP_PATH = "/-/mcp"
"""The address that datasette-mcp registers."""
NOT_ALLOWED = "you may not view this database: log in, or ask its owner"
ONLY_POST = b"This address is for assistants, which send a POST.\n"

_LONGEST_OF = {"spec": LONGEST, "text": MOST_BODY}
"""Limits of arguments in characters; all others are names."""
_READING = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Says that a tool changes nothing, and reads nothing outside the database."""


def register(datasette: Any, server: Any) -> None:
    """Add our tools to the server of datasette-mcp.

    Args:
        datasette: the Datasette that shows our pages.
        server: the `MCPServer` of the plugin, before it makes its ASGI application.
    """
    tools = Tools(datasette)
    functions = (
        tools.find_binary,
        tools.check_environment,
        tools.what_changed,
        tools.explain,
        tools.dependents,
        tools.package,
    )
    for function in functions:
        # The text is the whole answer; no schema describes it.
        server.add_tool(function, annotations=_READING, structured_output=False)
    # A refused argument is not worth a line of the operator's log.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    # The plugin calls this method for the application at `/-/mcp`.
    server.streamable_http_app = partial(_application, server.streamable_http_app)


class Tools:
    """The tools over one Datasette; their docstrings are sent to assistants.

    `context` is the request, which the server passes to each tool.
    """

    def __init__(self, datasette: Any) -> None:
        self._datasette = datasette

    async def find_binary(
        self,
        context: Context,
        spec: str,
        machine: str | None = None,
        release: str | None = None,
    ) -> str:
        """Find the binaries of a Spack build cache that satisfy a spec, and how to
        install one.

        Args:
            spec: a spec in Spack's syntax, such as `hdf5@1.14: +mpi %gcc@13`, or plain
                words such as `pytorch for A100 gcc 13`; `notes` say how they were read.
            machine: the CPU target that the binaries must run on, such as `zen3`.
            release: only binaries of this release; the table `releases` has the names.

        Returns:
            JSON: `found` has a record for each configuration (the first 50 of
            `count`), the version that Spack prefers first. `install` has the commands
            for the build to choose, and `reason` says why that one. If nothing is
            found, `notes` say why, and what exists instead.
        """
        arguments = {"spec": spec, "machine": machine, "release": release}
        return await self._answer("find_binary", context, _found, arguments)

    async def check_environment(
        self,
        context: Context,
        text: str,
        machine: str | None = None,
        release: str | None = None,
    ) -> str:
        """Check for which specs of an environment Spack takes a binary.

        Args:
            text: the content of a `spack.yaml` or `spack.lock`, or specs, one a line.
            machine: the CPU target that the binaries must run on, such as `zen3`.
            release: only binaries of this release.

        Returns:
            JSON: `binary` of `total` specs have a binary; `specs` has the status of
            each, with the reasons if it has none; `to_build` lists what Spack would
            build from source.
        """
        arguments = {"text": text, "machine": machine, "release": release}
        return await self._answer("check_environment", context, _checked, arguments)

    async def what_changed(
        self,
        context: Context,
        old: str,
        new: str,
        stack: str | None = None,
        package: str | None = None,
    ) -> str:
        """Compare two releases of the build cache, or two stacks.

        Args:
            old: the name of a release, or of a release and a stack: `develop:e4s`.
            new: the release, or release and stack, that is compared with `old`.
            stack: only this stack, on both sides.
            package: only this package.

        Returns:
            JSON: packages, versions, configurations and stacks that were `added` (only
            in `new`) or `removed` (only in `old`), counts of binaries in `specs`, and
            the dependencies that caused rebuilds in `causes`. More than 1,000
            configurations are not listed: `configurations` is null.
        """
        arguments = {"old": old, "new": new, "stack": stack, "package": package}
        return await self._answer("what_changed", context, _changed, arguments)

    async def explain(
        self,
        context: Context,
        spec: str,
        machine: str | None = None,
        release: str | None = None,
    ) -> str:
        """Explain why no binary satisfies a spec, and what exists instead.

        Args:
            spec: a spec in Spack's syntax, such as `hdf5@1.14: +mpi %gcc@13`.
            machine: the CPU target that the binaries must run on, such as `zen3`.
            release: only binaries of this release.

        Returns:
            JSON: `count` is the number of configurations that satisfy the spec. If it
            is 0, `reasons` name the conditions that exclude everything and the values
            that exist, and `corrected` is a spec that has an answer, if one is known.
        """
        arguments = {"spec": spec, "machine": machine, "release": release}
        return await self._answer("explain", context, _explained, arguments)

    async def dependents(
        self, context: Context, spec: str, release: str | None = None
    ) -> str:
        """List the binaries that link or run what satisfies a spec, such as a
        vulnerable version.

        Args:
            spec: a spec in Spack's syntax, such as `openssl@:3.0.6`.
            release: only binaries of this release.

        Returns:
            JSON: `status` is `needed`, `not needed`, `not satisfied` or `unknown`
            (without dependency data). `packages` counts the binaries of each package;
            `binaries` has the first 50 of `count`, each with the nearest spec that it
            needs.
        """
        arguments = {"spec": spec, "release": release}
        return await self._answer("dependents", context, _needing, arguments)

    async def package(self, context: Context, name: str) -> str:
        """Return what is known of a package, and its number of binaries.

        Args:
            name: the name of the package, such as `hdf5`, in any spelling.

        Returns:
            JSON: the newest version with a binary and the latest in Spack, the number
            of binaries, and from Spack's recipe the description, versions, variants,
            maintainers, licenses and tags.
        """
        return await self._answer("package", context, _package, {"name": name})

    async def _answer(
        self,
        tool: str,
        context: Context,
        load: Callable[..., PageResponse],
        arguments: dict[str, str | None],
    ) -> str:
        """Return the answer of a tool.

        Args:
            tool: the name of the tool, for the log.
            context: the request.
            load: makes the answer, from a `Site` and the values of the arguments.
            arguments: the arguments of the tool, in the order of those of `load`.

        Raises:
            ToolError: the tool has no answer; the message is a sentence for the
                assistant.
        """
        datasette = self._datasette
        for name, value in arguments.items():
            _check_argument(name, value)
        # Assistants send an empty text for an argument that they do not use.
        values = [value or None for value in arguments.values()]
        try:
            database = published(datasette).name
            if not await may_view(datasette, _actor(context), database):
                raise ToolError(NOT_ALLOWED)
            response = await run_page(datasette, load, *values)
        except ToolError:
            raise
        except BuilderError as error:
            raise ToolError(str(error)) from None
        except Exception as error:
            # As on a page: a bug, or the time is over.
            limit = datasette.setting("sql_time_limit_ms")
            failure = failure_of(error, limit, is_own=True)
            if failure.status == 500:
                log_error(f"{MCP_PATH} {tool}", error)
            raise ToolError(failure.sentence) from None
        return response.body.decode()


def _check_argument(name: str, value: str | None) -> None:
    """Raise ToolError for an argument that no page would read."""
    if value is None:
        return
    longest = _LONGEST_OF.get(name, LONGEST_NAME)
    if len(value) > longest:
        raise ToolError(
            f"{name} has {len(value):,} characters, but at most {longest:,} are read"
        )
    if "\0" in value:
        raise ToolError(f"{name} has a NUL character, which no name or spec has")
    # JSON may have half of a character (`"\ud800"`), which UTF-8, the encoding of
    # SQLite, cannot express.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ToolError(f"{name} has half a character (a lone surrogate)")


def _actor(context: Context) -> Any:
    """Return the visitor of the request, whom Datasette has put into its scope; None if
    no plugin knows them.
    """
    scope = getattr(context.request_context.request, "scope", {})
    return scope.get("actor")


def _question(
    site: Site, spec: str | None, machine: str | None, release: str | None
) -> tuple[Question, tuple[str, ...]]:
    """Return the question of a spec, and notes on how its text was read.

    Raises:
        UnsupportedQuery: the spec has a condition that the database cannot answer.
    """
    lookups = site.lookups
    text = spec or ""
    # The text may be a command that somebody copied, such as `spack install hdf5`.
    pasted = spec_in(lookups, text)
    notes = tuple(pasted.notes_on(text))
    query_text = pasted.spec

    # Or plain words, read as on the page of a search.
    narrowing = Narrowing(host=machine, release=release)
    words: Conditions = ()
    if not is_spec(lookups, query_text):
        reading = read_words(lookups, query_text)
        if reading is not None:
            narrowing = narrowing.within(reading)
            words = reading.conditions()
            notes += notes_on_words(query_text, reading, "binary")
            query_text = reading.spec or "*"
            notes += (f"read as {query_text}{phrases_of_names(narrowing)}",)
    scope = (*words, *narrowing.scope(lookups))
    question = recent_question(lookups, parse(query_text), scope)
    try:
        question.check()
    except UnsupportedQuery as error:
        # Answer the spec that is meant, or add one that has an answer, if one is found
        # in time.
        why = why_in_time(why_corrected, question)
        corrected = why and (why.corrected or why.read_as)
        if corrected:
            question = recent_question(lookups, parse(corrected), scope)
            return question, (*notes, CORRECTED.format(corrected))
        advice = () if why is None else why.advice()
        raise UnsupportedQuery("; ".join((str(error), *advice))) from None
    return question, notes


def _found(
    site: Site, spec: str | None, machine: str | None, release: str | None
) -> PageResponse:
    """Return what `find --install --json` prints, with its notes."""
    question, notes = _question(site, spec, machine, release)
    notes += question.notes
    count = question.count()
    install = None
    records: list[Any] = []
    if count:
        # The first configurations, and the commands for the build to choose.
        part = found_part(question, slice(MOST_FOUND), with_hashes=False)
        records = list(found_rows(part, hashes=False).records)
        chosen = chosen_build(site.lookups, question.results)
        if chosen is not None:
            install = chosen.plan.as_dict()
        notes += question.lost_note()
    else:
        notes += why_in_time(why_not, question).reasons()
    return _json({"found": records, "install": install, "count": count, "notes": notes})


def _checked(
    site: Site, text: str | None, machine: str | None, release: str | None
) -> PageResponse:
    """Return what `cover --json` prints."""
    narrowing = Narrowing(host=machine, release=release)
    return _json(covered(site.lookups, text or "", narrowing).as_dict())


def _changed(
    site: Site,
    old: str | None,
    new: str | None,
    stack: str | None,
    package: str | None,
) -> PageResponse:
    """Return what `diff --json` prints, without configurations if there are many."""
    changes = compare(site.lookups, old or "", new or "", stack, package=package)
    notes = []
    # The counts of binaries that both sides have, and that only one of them has.
    if not any(changes.specs):
        before, after = changes.sides
        notes.append(f"neither {before} nor {after} has such a binary")
    count = changes.configuration_count
    if count <= MOST_CHANGED:
        document = changes.in_words(MOST_EXPLAINED).as_dict()
    else:
        document = _totals(changes)
        configurations = counted(count, "configuration")
        notes.append(f"{configurations} differ: name a stack or a package to list them")
    return _json({**document, "notes": notes})


def _totals(changes: Changes) -> dict[str, Any]:
    """Return the keys of `diff --json`, with null for lists that would be long."""
    old, new = changes.sides
    return {
        "old": old,
        "new": new,
        "packages": changes.packages._asdict(),
        "versions": changes.versions._asdict(),
        "configurations": None,
        "stacks": changes.stacks._asdict(),
        "specs": changes.specs._asdict(),
        "causes": None,
    }


def _explained(
    site: Site, spec: str | None, machine: str | None, release: str | None
) -> PageResponse:
    """Return the reasons that `find` prints if it finds nothing."""
    question, notes = _question(site, spec, machine, release)
    notes += question.notes
    count = question.count()
    document = {"count": count, "reasons": (), "corrected": None, "notes": notes}
    if not count:
        why = why_in_time(why_not, question)
        document["reasons"] = why.reasons()
        document["corrected"] = why.corrected
    return _json(document)


def _needing(site: Site, spec: str | None, release: str | None) -> PageResponse:
    """Return what `dependents --json` prints, with the first binaries."""
    fields = DependentsFields(q=spec or "", release=release)
    document = fields.answer(site.lookups).as_dict()
    count = len(document["binaries"])
    document["binaries"] = document["binaries"][:MOST_FOUND]
    return _json({**document, "count": count})


def _package(site: Site, name: str | None) -> PageResponse:
    """Return what `/package/<name>.json` has."""
    text = read_spellings(site.lookups).canonical("package", name or "")
    package = read_package(site.conn, text)
    if package is None:
        raise ToolError(known_name(site.lookups, text).sentence)
    return _json(package.as_dict())


def _json(document: dict[str, Any]) -> PageResponse:
    return data(json_text(document), "json")


def _application(make: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the ASGI application of the plugin, without sessions.

    Processes share no memory, so a session, which older versions of the protocol have,
    would be known to one of them. A GET would wait for messages that no tool sends;
    clients of all versions go on after status 405.

    Args:
        make: the method of the server that makes its application.
        options: the options that the plugin passes to it.
    """
    application = make(**{**options, "stateless_http": True})

    async def posts_only(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await application(scope, receive, send)
            return
        headers = (("allow", "POST"), ("content-type", "text/plain; charset=utf-8"))
        await PageResponse(ONLY_POST, 405, headers).asgi_send(send)

    return posts_only
