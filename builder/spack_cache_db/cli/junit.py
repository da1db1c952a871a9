"""Reports in JUnit's XML, which GitLab, GitHub and Jenkins show beside a change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import put_in_place
from spack_cache_db.errors import OutputError, printable, reason


class Case(NamedTuple):
    """One test case of a report; it passed if `failure` and `skipped` are empty."""

    group: str
    name: str
    failure: str = ""
    skipped: str = ""


def write_junit(path: Path, suite: str, cases: Iterable[Case]) -> None:
    """Write a report, completely or not at all.

    Raises:
        OutputError: the file cannot be written, or is not one for XML.
    """
    if path.suffix != ".xml":
        raise OutputError(f"{path}: cannot be a report; --junit takes a name that ends in .xml")
    every = [*cases]
    counts = f'failures="{sum(bool(case.failure) for case in every)}"'
    counts += f' skipped="{sum(bool(case.skipped) for case in every)}"'
    name = f'name="spack-cache-db {suite}" tests="{len(every)}" {counts}'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {name}>"]
    lines += [f"<testsuite {name}>", *map(_element, every), "</testsuite>", "</testsuites>"]
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        part.write_text("\n".join((*lines, "")), encoding="utf-8")
        put_in_place(part, path)
    except OSError as error:
        advice = "name a file in a folder that exists for --junit"
        raise OutputError(f"{path}: cannot be written: {reason(error)}; {advice}") from None
    finally:
        # Removing a name that is too long fails as well.
        with suppress(OSError):
            part.unlink()


def _element(case: Case) -> str:
    group, name = (escape(printable(text)) for text in case[:2])
    start = f'<testcase classname="{group}" name="{name}"'
    for tag, text in (("failure", case.failure), ("skipped", case.skipped)):
        if text:
            return f'{start}><{tag} message="{escape(printable(text))}"/></testcase>'
    return f"{start}/>"
