"""Writes the answers of `cover` and `diff` as a report in JUnit's XML.

Continuous integration, such as that of GitLab, shows such a report as tests that passed
or failed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.errors import OutputError, printable, reason


class Case(NamedTuple):
    """One test case of a report; it passed if `failure` and `skipped` are empty.

    Attributes:
        group: what the case belongs to, such as the path of an environment.
        name: what is tested, such as a spec.
        failure: why the test failed.
        skipped: why the test does not count; ignored if it failed.
    """

    group: str
    name: str
    failure: str = ""
    skipped: str = ""


def write_junit(path: Path, suite: str, cases: Iterable[Case]) -> None:
    """Write a report.

    Args:
        path: the file; its name ends in `.xml`.
        suite: the name of the command.
        cases: the test cases.

    Raises:
        OutputError: the file cannot be written, or its name has another ending.
    """
    if path.suffix != ".xml":
        message = "cannot be a report; --junit takes a name that ends in .xml"
        raise OutputError(f"{path}: {message}")
    report = _report(f"spack-cache-db {suite}", list(cases))
    # If it cannot be written whole, an earlier report stays.
    unfinished = path.with_name(f".report-{os.getpid()}.tmp")
    try:
        unfinished.write_bytes(report)
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        message = f"cannot be written: {reason(error)}"
        advice = "name a file in a folder that exists, with free space, for --junit"
        raise OutputError(f"{path}: {message}; {advice}") from None


def _report(name: str, cases: list[Case]) -> bytes:
    """Return the bytes of a report with one suite, and each test case on a line."""
    from xml.etree import ElementTree as ET

    # The report and its only suite have the same counts.
    failures = [case for case in cases if case.failure]
    skips = [case for case in cases if case.skipped]
    counts = {
        "name": name,
        "tests": str(len(cases)),
        "failures": str(len(failures)),
        "skipped": str(len(skips)),
    }
    report = ET.Element("testsuites", counts)
    suite = ET.SubElement(report, "testsuite", counts)

    # XML cannot contain most control characters, so texts are made printable.
    for case in cases:
        names = {"classname": printable(case.group), "name": printable(case.name)}
        element = ET.SubElement(suite, "testcase", names)
        if case.failure:
            ET.SubElement(element, "failure", message=printable(case.failure))
        elif case.skipped:
            ET.SubElement(element, "skipped", message=printable(case.skipped))

    ET.indent(report, space="")
    text: bytes = ET.tostring(report, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
