"""Checks of a request before Datasette reads it: its method, address, headers and body.

`check` refuses a request that the site does not answer. `bounded` changes the fields of
its address so that Datasette answers in bounded time, or refuses them.
"""

from __future__ import annotations

import re
from urllib.parse import quote_plus, unquote_plus

from datasette.utils import tilde_decode, tilde_encode

from spack_cache_db.site.http.asgi import Scope
from spack_cache_db.site.refusals import NO_PAGE, BadAddress
from spack_cache_db.site.routes import route_of
from spack_cache_db.site.sql.running import PAGE_ROWS

LONGEST_ADDRESS = 32_000
"""Limit of characters of a path and its query string together."""
LONGEST_NAME = 200
"""Limit of characters of a name in a path; Spack's longest has fifty."""
LONGEST_SQL = 8_000
"""Limit of characters of a statement; Datasette's regular expressions take time
quadratic in its length.
"""
MOST_FIELDS = {"": 100, "_facet": 10, "_sort": 2}
"""Most fields whose names begin with these words, the empty one for all fields; each
may cost a statement or a link.
"""
MOST_HEADERS = 16_000
"""Limit of characters of all headers together."""
MOST_BODY = 1_000_000
"""Size limit of a form in bytes; a lockfile of five hundred specs has as many."""

OPEN_TOOLS = re.compile(
    r"/-/(?:(?:static|static-plugins)/.+|(?:versions|metadata|settings|plugins|jump)(?:\.json)?"
    r"|health\.json|logout)"
    r"|/[^/]+/-/(?:query(?:\.\w+)?|query/parameters|queries(?:\.json)?|schema(?:\.\w+)?)"
    r"|/[^/]+/[^/]+/-/(?:schema(?:\.\w+)?|definition|count)"
)
"""The open addresses below a `/-/`: of the instance, of a database, and of a table or
query.

Datasette's others are debugging tools, forms that write, and information about the
machine. Those of databases and tables are in Datasette 1.0 only. Addresses that plugins
register are open (`plugin_routes.is_of_plugin`).
"""

_NAMES_END = re.compile(r"/|\.\.\.")
"""What is between two names in a path; `...` in `/diff/<old>...<new>`."""
_ESCAPES = re.compile(r"(?:~[0-9A-Fa-f]{2})+|~")
"""Datasette's escapes in paths ("tilde encoding"): `~2F` for a slash, or several."""
_BLANKS_AND_COMMENTS = re.compile(r"(?:\s+|--[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
"""What may be before a statement."""


def check(scope: Scope, *, is_open: bool, takes_post: bool) -> None:
    """Check the method, the address and the size of a request.

    Args:
        scope: the request.
        is_open: whether its address is a plugin's, or opened by the owner.
        takes_post: whether its address answers POST.

    Raises:
        BadAddress: the site does not answer such requests.
    """
    path = scope["path"]
    query = scope["query_string"]

    # The method. An address of a plugin may take any method.
    is_reading = scope["method"] in ("GET", "HEAD")
    is_reading_post = scope["method"] == "POST" and takes_post
    if not (is_reading or is_reading_post or is_open):
        raise BadAddress("This site is read-only: only GET and HEAD are answered.", 405)

    # The form of the address.
    if not path.startswith("/"):
        raise BadAddress("The target of a request is a path that begins with a slash.")
    if b"%00" in query or b"\0" in query:
        raise BadAddress(
            "The address has a NUL character (%00), which no name or statement has."
        )
    if len(query) + len(path) > LONGEST_ADDRESS:
        raise BadAddress(
            f"The address is longer than {LONGEST_ADDRESS:,} characters.", 414
        )

    # The headers.
    size = sum(len(name) + len(text) for name, text in scope["headers"])
    if size > MOST_HEADERS:
        raise BadAddress(
            f"The headers have more than {MOST_HEADERS:,} characters.", 431
        )

    # The path. A redirect to one with two slashes leads to another host.
    leads_elsewhere = path.startswith(("//", "/\\"))
    is_closed = "/-/" in path and not is_open and not OPEN_TOOLS.fullmatch(path)
    if leads_elsewhere or is_closed or "\0" in path or not is_usual(path):
        raise BadAddress(NO_PAGE, 404)

    # The body.
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        # Each chunk costs a message, and with two lengths, proxies and servers may
        # disagree about the end of a request.
        raise BadAddress("The request has a body but no Content-Length.", 411)
    if int(headers.get(b"content-length", 0)) > MOST_BODY:
        raise BadAddress(f"The form has more than {MOST_BODY:,} bytes.", 413)


def is_usual(path: str) -> bool:
    """Return whether a path has only names of usual length, and Datasette's only
    escapes for them.

    Datasette would read `/spack~2Dcache.db` as `/spack-cache.db`, and a proxy would
    not.
    """
    if any(len(name) > LONGEST_NAME for name in _NAMES_END.split(path)):
        return False
    # Our own pages do not decode these escapes.
    if route_of(path) is not None:
        return True
    escapes = _ESCAPES.findall(path)
    return all(tilde_encode(tilde_decode(escape)) == escape for escape in escapes)


def bounded(path: str, query: bytes, *, has_sql: bool = True) -> bytes:
    """Return a query string that Datasette answers in bounded time.

    It has no blank searches, which Datasette refuses, no comments before its SQL, and a
    bounded number of rows: `sql=--+x%0Aselect+1&_search=` becomes `sql=select+1`. Other
    fields stay as they were sent.

    Raises:
        BadAddress: there are too many fields, or the SQL is too long or not allowed.
    """
    is_html = not path.endswith((".json", ".csv"))
    names = []
    fields = []
    for field in query.split(b"&"):
        if not field:
            continue
        quoted_name, _, quoted_text = field.decode("latin1").partition("=")
        name = unquote_plus(quoted_name)
        text = unquote_plus(quoted_text)
        if name.startswith("_search") and not text.strip():
            continue
        if name == "sql":
            _check_sql(text, has_sql=has_sql)
            sql = _BLANKS_AND_COMMENTS.sub("", text, count=1)
            if sql != text:
                field = f"sql={quote_plus(sql)}".encode()
        elif name == "_size" and is_html and _is_large(text):
            field = b"_size=%d" % PAGE_ROWS
        names.append(name)
        fields.append(field)
    _check_number_of_fields(names)
    return b"&".join(fields)


def _check_sql(text: str, *, has_sql: bool) -> None:
    """Raise `BadAddress` for a statement that is too long, or if none is allowed."""
    if not has_sql:
        message = "This site runs no SQL of visitors; its canned queries are open."
        raise BadAddress(message, 403)
    if len(text) > LONGEST_SQL:
        raise BadAddress(f"A statement has at most {LONGEST_SQL:,} characters.")


def _is_large(size: str) -> bool:
    """Return whether a number of rows is more than an HTML page shows."""
    if size == "max":
        return True
    # Python refuses to read very long numbers; the first nine digits are enough.
    return size.isdecimal() and int(size[:9]) > PAGE_ROWS


def _check_number_of_fields(names: list[str]) -> None:
    """Raise `BadAddress` for more fields than `MOST_FIELDS` allows."""
    for start, limit in MOST_FIELDS.items():
        count = sum(name.startswith(start) for name in names)
        if count > limit:
            kind = f"fields that begin with {start}" if start else "fields"
            raise BadAddress(f"The address has more than {limit} {kind}.")
