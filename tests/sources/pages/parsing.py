"""Reads one page as a build does."""

import pytest

from spack_cache_db.errors import InputError, faults_of
from spack_cache_db.model import Problem
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.page import Page, parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Writer

PATH = "in/a.md"


def parse(data: bytes) -> Page:
    """Return the record of a page; raises InputError with its fault."""
    with faults_of(PATH):
        return parse_page(RawFile(PATH, "a.md", data))


def problems(data: bytes) -> tuple[Problem, ...]:
    """Return the inconsistencies of a page that is read."""
    writer = Writer()
    PageReader(writer).add(parse(data))
    return writer.columns.documents[0].problems


def fault(data: bytes) -> str:
    """Return the one fault of a page that is refused: `6: spec_details: …`."""
    with pytest.raises(InputError) as caught, faults_of(PATH):
        PageReader(Writer()).add(parse(data))
    faults = caught.value.faults
    assert len(faults) == 1
    return str(faults[0]).removeprefix(f"{PATH}:")
