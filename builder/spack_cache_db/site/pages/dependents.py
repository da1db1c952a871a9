"""`/dependents?q=<spec>`: the binaries that link or run what satisfies a spec.

Also `/dependents.json` and `.csv`, as the command `dependents` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers.dependents import Dependents, dependents_of
from spack_cache_db.query.answers.spec_functions import parse
from spack_cache_db.query.names.known import spec_in
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.filters import AddressFields, DataLinks, paginated
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

MOST_LISTED = 50_000
"""Limit of the binaries in JSON or CSV; 50,000 take some 60 MB."""
ROWS = 100
"""Binaries on one page."""
TOO_MANY = (
    "{:,} binaries need it, but this site lists at most {:,}: add release, stack or"
    " host, or use the command dependents on the downloaded file"
)


@dataclass(frozen=True, slots=True)
class DependentsFields(AddressFields):
    """The fields of the address: a spec, names that narrow the binaries, and the number
    of a page of rows.
    """

    q: str = ""
    release: str | None = None
    stack: str | None = None
    host: str | None = None
    page: str = ""

    def answer(self, lookups: Lookups) -> Dependents:
        """Return the answer to these fields.

        Raises:
            BuilderError: the text is not a spec, a name is unknown, or the database
                cannot answer it.
        """
        scope = Scope(release=self.release, stack=self.stack, host=self.host)
        query = parse(spec_in(lookups, self.q).spec)
        return dependents_of(lookups, query, scope.conditions(lookups))


def dependents(site: Site, request: PageRequest, form: str | None) -> PageResponse:
    """Return `/dependents`, as a page, `.json` or `.csv`."""
    fields = DependentsFields.parse(request.pairs)
    if form is not None:
        return _as_data(fields.answer(site.lookups), form)

    # The page shows the answer, the error, or only the form.
    answer = None
    error = None
    if fields.q:
        try:
            answer = fields.answer(site.lookups)
        except BuilderError as unreadable:
            error = str(unreadable)
    count = 0 if answer is None else len(answer.binaries)
    links = None
    if count:
        links = DataLinks.of_page("/dependents", fields.address())
    return site.page(
        request,
        "dependents.html",
        answer=answer,
        error=error,
        fields=fields,
        window=paginated(count, fields.page, ROWS),
        links=links,
    )


def _as_data(answer: Dependents, form: str) -> PageResponse:
    """Return an answer as JSON or CSV; an error if it has too many binaries, and for
    CSV if it has none.
    """
    count = len(answer.binaries)
    if count > MOST_LISTED:
        return refused(TOO_MANY.format(count, MOST_LISTED), form)
    # JSON says which kind of answer it is; an empty table does not.
    if form == "csv" and not count:
        return refused("; ".join([answer.sentence, *answer.notes]), form, 404)
    return data(form_of(answer.as_dict(), answer.rows, form), form)
