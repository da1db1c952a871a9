"""Writes a report that continuous integration reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.errors import OutputError, printable, reason


class Case(NamedTuple):
    """One test case of a report; it passed if `failure` and `skipped` are empty."""

    group: str
    name: str
    failure: str = ""
    skipped: str = ""


def write_junit(path: Path, suite: str, cases: Iterable[Case]) -> None:
    """Write a report in JUnit's XML, which CI systems show."""
    from html import escape

    def element(case: Case) -> str:
        group, name = (escape(printable(text)) for text in case[:2])
        start = f'<testcase classname="{group}" name="{name}"'
        for tag, text in (("failure", case.failure), ("skipped", case.skipped)):
            if text:
                return (
                    f'{start}><{tag} message="{escape(printable(text))}"/></testcase>'
                )
        return f"{start}/>"

    if path.suffix != ".xml":
        raise OutputError(
            f"{path}: cannot be a report; --junit takes a name that ends in .xml"
        )
    every = [*cases]
    counts = f'failures="{sum(bool(case.failure) for case in every)}"'
    counts += f' skipped="{sum(bool(case.skipped) for case in every)}"'
    name = f'name="spack-cache-db {suite}" tests="{len(every)}" {counts}'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {name}>"]
    lines += [
        f"<testsuite {name}>",
        *map(element, every),
        "</testsuite>",
        "</testsuites>",
    ]
    try:
        path.write_text("\n".join((*lines, "")), encoding="utf-8")
    except OSError as error:
        advice = "name a file in a folder that exists for --junit"
        raise OutputError(
            f"{path}: cannot be written: {reason(error)}; {advice}"
        ) from None
