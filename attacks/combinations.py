"""Odd values of Datasette's own fields, two at a time, and results that are dear to
show.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from attacks.odd_requests import SQL
from attacks.outcome import Outcome, until
from attacks.requests import SECONDS
from attacks.target import Reply, Target, field
from spack_cache_db.site.http.checks import LONGEST_ADDRESS

SITE_HEADERS = ("content-security-policy", "x-content-type-options", "cache-control")
"""Headers that every response of the site has."""
TABLES = (
    "builds",
    "specs",
    "packages",
    "listings",
    "build_listings",
    "spec_stacks",
    "modules",
)
FORMS = ("", ".json", ".csv")
"""Endings of the address of a table or a result: a page, JSON, CSV."""
ROWS = ("1", "9" * 20, "1,1", "a", "-1")
"""Texts in the place of the key of a row."""
INTEGERS = (
    "9" * 20,
    "-1",
    "1e400",
    "0x10",
    "1_000",
    "\u0663",
    "\u00b2",
    " 1",
    "1.0",
    "nan",
    "+1",
)
JSON_VALUES = (
    "{}",
    "[]",
    "null",
    "1",
    "true",
    '""',
    '"id"',
    "[[]]",
    "[[[1]]]",
    '["id"]',
    '[""]',
    "[null]",
    '{"column": "id"}',
    '{"column": 1}',
    '{"column": null}',
    '{"column": ["id"]}',
    '{"a": 1}',
    '{"simple": "id"}',
    '{"simple": {"column": "id"}}',
    '{"type": "date", "column": "id"}',
    '{"table": "specs"}',
    '{"table": null, "column": "id", "value": 1}',
    "[" * 900,
    "NaN",
    '{"table": "specs", "column": "id", "value": {}}',
    '{"table": ["specs"], "column": {}}',
    '{"table": "specs", "column": "id", "value": 99999999999999999999}',
    '"\\ud800"',
    "1e999",
)
ODD_VALUES: dict[str, tuple[str, ...]] = {
    # Pages and facets.
    "_next": (
        *INTEGERS,
        "1,2",
        ",",
        "a,b",
        "~00",
        "$null,1",
        "None",
        "-9223372036854775809",
        "é",
    ),
    "_facet": (*JSON_VALUES, "nope", "rowid", "id'", 'id"', "[id]", "*", "id,hash"),
    "_facet_array": (*JSON_VALUES, "id", "hash", "stacks", "nope"),
    "_facet_date": (*JSON_VALUES, "id", "first_seen", "nope"),
    "_facet_size": (*INTEGERS, "max", "", "0"),
    # Searches.
    "_fts_table": (
        "",
        "nope",
        "specs",
        "packages_fts",
        "sqlite_master",
        '"',
        "packages_fts_data",
    ),
    "_fts_pk": ("", "nope", "id", '"', "rowid"),
    "_search": ('"', "AND", "NEAR(", "a*", "*", "^", "hash:", "-", "\u202e"),
    "_search_hash": ("a", '"', "*"),
    "_search_nope": ("a", "1"),
    "_searchmode": ("raw", "nope", ""),
    # Order and number of rows.
    "_sort": ("nope", "id", "rowid", "", "id desc", "1", "[id]"),
    "_sort_desc": ("nope", "id", "", "hash"),
    "_sort_by_desc": ("on", ""),
    "_size": (*INTEGERS, "max", "", "0"),
    "_through": JSON_VALUES,
    "_where": (
        "0)",
        "1;",
        "id = 1 --",
        "abs(-9223372036854775808)",
        "json('[')",
        "?",
        ":a",
        "",
    ),
    # Forms of a response.
    "_json": ("id", "hash", "stacks", "nope", ""),
    "_json_infinity": ("on", "1"),
    "_shape": ("objects", "arrays", "array", "arrayfirst", "object", "nope", ""),
    "_label": ("nope", "id"),
    "_labels": ("on", "nope"),
    "_col": ("nope", "id", "", "*"),
    "_nocol": ("id", "nope", "hash"),
    "_ttl": (*INTEGERS, "abc"),
    "_timelimit": (*INTEGERS, "0", "abc"),
    "_trace": ("1", ""),
    "_nl": ("on", "1"),
    "_dl": ("1", "\r\nX: 1"),
    "_header": ("off", "nope"),
    "_stream": ("on", "1", ""),
    "_extra": (
        "count",
        "nope",
        "facets",
        "foreign_key_tables,count",
        "_all",
        "debug",
        "request",
    ),
    "_extras": ("foreign_key_tables", "nope"),
    "_nofacet": ("1",),
    "_nosuggest": ("1",),
    "_nocount": ("1",),
    "_blob_column": ("hash", "nope", ""),
    "_blob_hash": ("a", ""),
    # Filters.
    "_filter_column": ("id", "nope", ""),
    "_filter_op": ("exact", "nope", ""),
    "_filter_value": ("1", ""),
    "_filter_column_1": ("id", ""),
    "id__gt": ("9e999", "9" * 20, "", "a"),
    "id__in": ("[", "[]", '["a", {}]', "1,2", "[[1]]", "null", '{"a": 1}', ","),
    "id__notin": ("[", "[{}]", "null", "1"),
    "id__date": ("x", "2026-01-01", "0000-00-00"),
    "id__mod": ("0", "a"),
    "hash__like": ("%" * 900, "[", "_" * 900),
    "hash__glob": ("[", "[a-", "*" * 500, "[^]"),
    "hash__arraycontains": ("[", "a"),
    "stacks__arraycontains": ("[", "e4s", ""),
    "stacks__arraynotcontains": ("[", ""),
    "hash__isnull": ("", "a"),
    "hash__isblank": ("1",),
    "rowid__exact": ("1", "9" * 20),
    "id": (*INTEGERS, ""),
    "sql": ("select 1", "select"),
    "": ("", "a"),
}
"""Values of each field that Datasette or SQLite may stumble over."""

DIGITS = "9" * 5_000
MANY = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000) SELECT "
)
CELLS: dict[str, str] = {
    # Values that look like JSON.
    "nested lists": "SELECT printf('%.*c', 900, '[') || printf('%.*c', 900, ']') AS a",
    "deep lists": "SELECT printf('%.*c', 40000, '[') || printf('%.*c', 40000, ']') AS a",
    "deep objects": "SELECT replace(printf('%.*c', 9000, '['), '[', '{\"a\":') AS a",
    "a long integer": f"SELECT '{DIGITS}' AS a",
    "a long float": f"SELECT '{DIGITS}.5e{DIGITS[:1500]}' AS a",
    "no number": "SELECT '[NaN, Infinity, -Infinity]' AS a",
    "half of a pair": "SELECT '\"\\ud800\"' AS a",
    "a name of half a pair": "SELECT '{\"\\ud800\": 1}' AS a",
    "infinity": "SELECT 9e999 AS a, -9e999 AS b",
    "bytes": "SELECT zeroblob(90000) AS a, x'ff' AS b",
    "text that is no UTF-8": "SELECT cast(x'ff80' AS TEXT) AS a",
    # Large results.
    "many members": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9000) "
        "SELECT json_group_array(x) AS a FROM n"
    ),
    "many texts of members": (
        f"{MANY} '[' || substr(replace(hex(zeroblob(9000)), '0', '1,'), 1, 9000) || '1]' AS a "
        "FROM n"
    ),
    "many objects": (
        f"{MANY} json_object('a', x, 'b', json_array(x, x, x)) AS a, '[{{}}]' AS b FROM n"
    ),
    "a wide row": f"SELECT {', '.join(f'1 AS c{number}' for number in range(600))}",
    "columns of one name": f"SELECT {', '.join(['1 AS a'] * 900)}",
    "wide rows": f"{MANY} {', '.join(['x'] * 500)} FROM n",
    "addresses": (
        f"{MANY} 'https://a.example/' || x AS a, "
        "replace(hex(zeroblob(999)), '00', 'http://a ') AS b FROM n"
    ),
    "blanks": "SELECT 'https://' || printf('%.*c', 90000, ' ') AS a",
    # Names of columns.
    "a long name": f"SELECT 1 AS [{'a' * 7_000}]",
    "a name of markup": "SELECT '<script>' AS [<script>alert(1)</script>]",
    "a name of a line": "SELECT 1 AS [a\r\nX: 1]",
    "an empty name": "SELECT 1 AS []",
    "no rows": "SELECT 1 AS a WHERE 0",
    "parameters": f"SELECT {', '.join(f':p{number}' for number in range(600))}",
}
"""Statements whose results are dear or hard to show."""
SHOWN = (
    "",
    "&_json=a",
    "&_json=a&_json=a&_json=b",
    "&_shape=array&_json=a",
    "&_shape=object",
    "&_shape=arrayfirst",
    "&_shape=arrays&_json=b",
    "&_json_infinity=on",
    "&_shape=array&_nl=on",
    "&_labels=on",
    "&_size=max",
    "&_dl=1",
    "&_header=off",
    "&_stream=on",
    "&_blob_column=a",
    "".join(f"&_json=c{number}" for number in range(90)),
    "".join(f"&p{number}=1" for number in range(90)),
)
"""Ways to show a result."""


def combinations(target: Target, seconds: float) -> Outcome:
    """Send pairs of odd fields, at random with a fixed seed; half of the time each of
    results.
    """
    outcome = Outcome("combinations")
    slowest = 0.0
    for addresses in (_pairs(random.Random(19)), _results()):
        for address in until(seconds / 2, addresses):
            reply = target.ask(address)
            slowest = max(slowest, reply.cpu_seconds)
            outcome.judge(address, _faults(target, reply))
    outcome.faults += target.server_faults()
    outcome.note = f"at most {slowest:.1f} s of CPU, {target.peak_megabytes():.0f} MB"
    return outcome


def _pairs(chance: random.Random) -> Iterator[str]:
    """Yield addresses with each value alone, as JSON and as a page, and then pairs of
    them.
    """
    fields = []
    for name, values in ODD_VALUES.items():
        fields += [field(name, value) for value in values]

    for number, only_field in enumerate(fields):
        table = TABLES[number % len(TABLES)]
        form = FORMS[number % len(FORMS)]
        yield f"/spack-cache/{table}{form}?{only_field}"

    while True:
        path = f"/spack-cache/{chance.choice(TABLES)}{chance.choice(FORMS)}"
        # One of ten asks for a row instead of a table.
        if chance.random() < 0.1:
            path = f"/spack-cache/specs/{chance.choice(ROWS)}.json"
        several = chance.sample(fields, chance.choice((2, 2, 3)))
        yield f"{path}?{'&'.join(several)}"


def _results() -> Iterator[str]:
    """Yield addresses that show each result in each way."""
    for shown in SHOWN:
        for statement in CELLS.values():
            for form in FORMS:
                address = f"{SQL}{form}?{field('sql', statement)}{shown}"
                if len(address) <= LONGEST_ADDRESS:
                    yield address


def _faults(target: Target, reply: Reply) -> list[str]:
    """Return the faults of a response, whose headers must be those of the site."""
    faults = target.reply_faults(reply)
    missing = [name for name in SITE_HEADERS if name not in reply.headers]
    if reply.status and missing:
        faults.append(f"a {reply.status} without {', '.join(missing)}")
    if "x" in reply.headers:
        faults.append("has a header of the visitor")
    return faults + reply.slowness(SECONDS)
