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
    """Write a report in JUnit's XML, which CI systems show.

    Raises:
        OutputError: the file cannot be written, or its name does not end in `.xml`.
    """
    if path.suffix != ".xml":
        message = "cannot be a report; --junit takes a name that ends in .xml"
        raise OutputError(f"{path}: {message}")
    report = _report(f"spack-cache-db {suite}", list(cases))
    try:
        path.write_bytes(report)
    except OSError as error:
        message = f"cannot be written: {reason(error)}"
        advice = "name a file in a folder that exists for --junit"
        raise OutputError(f"{path}: {message}; {advice}") from None


def _report(name: str, cases: list[Case]) -> bytes:
    """Return a report with one suite of test cases, each on a line of its own."""
    from xml.etree import ElementTree as ET

    counts = {
        "name": name,
        "tests": str(len(cases)),
        "failures": str(sum(bool(case.failure) for case in cases)),
        "skipped": str(sum(bool(case.skipped) for case in cases)),
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", counts)
    for case in cases:
        # XML cannot contain most control characters.
        names = {"classname": printable(case.group), "name": printable(case.name)}
        element = ET.SubElement(suite, "testcase", names)
        if case.failure:
            ET.SubElement(element, "failure", message=printable(case.failure))
        elif case.skipped:
            ET.SubElement(element, "skipped", message=printable(case.skipped))
    ET.indent(suites, space="")
    report: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return report + b"\n"
