"""Reads a spack-cache-db database back into the columns that it was built from.

A build can therefore use a database as a source. If several documents of a release list
a spec, `document_listings` has the values that differ from `listings`. A new build
finds contradictions again; only values that no other table stores come from `problems`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import zstandard

from spack_cache_db.database_damage import damage_as_error, damaged
from spack_cache_db.database_file import open_source
from spack_cache_db.errors import DatabaseError, Fault, InputError, one_line
from spack_cache_db.model import INSTALLED, Configuration, Problem
from spack_cache_db.schema import identity
from spack_cache_db.schema.older import MAX_PACKAGES
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.schema.views import CONFIGURATION_JOINS
from spack_cache_db.schema.words import word_of
from spack_cache_db.sources.bounds import require_bounded, require_name
from spack_cache_db.sources.facts import (
    SPEC_FILE,
    Document,
    IndexFacts,
    ModuleFacts,
    Origin,
    PackageFacts,
    PageFacts,
    Tarball,
)
from spack_cache_db.sources.files import File
from spack_cache_db.sources.frames import Lookup, number_array, packed_pair
from spack_cache_db.sources.stored_rows import (
    Specs,
    Stored,
    lookup_of,
    number_columns,
    read_rows,
)
from spack_cache_db.sources.writer import Columns, Interned, Writer
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Use

FOUND_AGAIN = ("two_configurations", "two_sizes", "two_dependencies", "two_records")
"""Problems between documents: a build that reads the documents finds them again."""

_ODD = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    msgspec.MsgspecError, zstandard.ZstdError,
)  # fmt: skip
"""Raised by values, or ids without rows, that no build writes."""

# The words of a configuration. Instead of its variants, the id of their set: `VARIANTS`
# has the variants of all sets.
_WORDS = ", ".join(
    "configurations.variant_set_id" if column == "variants" else word_of(column)
    for column in CONFIGURATION
)
CONFIGURATIONS = f"""
SELECT configurations.id, {_WORDS} FROM configurations {CONFIGURATION_JOINS}
"""  # noqa: S608 - our own names
VARIANTS = """
SELECT variant_set_id, text FROM variant_set_members
JOIN variants ON variants.id = variant_set_members.variant_id ORDER BY text
"""
HASHES = "SELECT hash FROM specs ORDER BY id"
SPECS = "SELECT id, configuration_id FROM specs ORDER BY id"
PROBLEMS = """
SELECT source, page_id, mirror_id, code, message, hash, value FROM problems ORDER BY id
"""
PAGES = """
SELECT pages.id, releases.name, packages.name, path, sha256, format, releases.is_copy
FROM pages JOIN releases ON releases.id = pages.release_id
JOIN packages ON packages.id = pages.package_id ORDER BY pages.id
"""
MIRRORS = """
SELECT mirrors.id, releases.name, releases.kind, releases.is_copy, stacks.name, path, sha256,
  format, url, is_named, is_signed, settings
FROM mirrors JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id ORDER BY mirrors.id
"""
MODULES = """
SELECT path, releases.name, modules.name, compiler, tree, hash, package, version, is_hidden,
  parents
FROM modules JOIN releases ON releases.id = modules.release_id ORDER BY modules.id
"""

_PACKAGES = msgspec.json.Decoder(list[PackageFacts])

T = TypeVar("T")

_DocumentKey = tuple[Any, Any]
"""The ids of a page and of a mirror; one of them is None."""


def read_database(file: File) -> Columns:
    """Return the columns that a database was built from.

    Raises:
        InputError: it is not a database of this or an older schema version, or it is
            damaged.
    """
    path = Path(file.location)
    writer = Writer()
    try:
        with closing(open_source(path)) as conn, damage_as_error(path):
            (result,) = conn.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise damaged(path, one_line(result))
            _Database(conn, file.location, writer).read()
    except DatabaseError as error:
        # A fault has the path already.
        message = str(error).removeprefix(f"{path}: ")
        raise InputError([Fault(file.location, 0, message)]) from None
    except _ODD as error:
        message = f"is damaged: it has values that no build writes ({error!r}); build it again"
        raise InputError([Fault(file.location, 0, message)]) from error
    writer.columns.bytes_read = path.stat().st_size
    return writer.columns


class _Database:
    """Reads one database: texts, problems and documents, and then the rows of numbers
    (`stored_rows`).
    """

    def __init__(self, conn: sqlite3.Connection, location: str, writer: Writer) -> None:
        self._select = conn.execute
        self._location = location
        self._writer = writer
        self._texts = writer.texts
        # The problems of each document.
        self._problems: dict[_DocumentKey, list[Problem]] = defaultdict(list)
        # Configurations and edges of single documents, by document and hash.
        self._other_configurations: dict[tuple[_DocumentKey, int], int] = {}
        self._other_edges: dict[tuple[_DocumentKey, int], list[tuple[int, int]]] = {}
        # Mirror, hash and package of dependencies without a record.
        self._unrecorded: list[tuple[int, int, str]] = []
        # The numbers of documents, by the ids of pages and of mirrors.
        self._pages: dict[int, int] = {}
        self._mirrors: dict[int, int] = {}

    def read(self) -> None:
        """Read everything."""
        self._read_origin()
        specs = self._read_specs()
        self._read_problems()
        self._read_pages()
        self._read_mirrors()
        read_rows(self._stored(specs), self._writer)
        for mirror, spec, package in self._unrecorded:
            self._writer.add_unrecorded(self._mirrors[mirror], spec, package)
        columns = self._writer.columns
        columns.modules += map(ModuleFacts._make, self._select(MODULES))
        self._read_packages()

    def _read_origin(self) -> None:
        """Read the options of the build."""
        origin = dict(self._select("SELECT name, value FROM origin"))
        recipes = dict(self._select("SELECT namespace, url FROM recipes"))
        self._writer.columns.origins.append(
            Origin(
                self._location,
                first=origin.get("first"),
                recipes=recipes,
                without_paths=identity.PATHS in origin,
            )
        )

    def _read_packages(self) -> None:
        decompressor = zstandard.ZstdDecompressor()
        for (data,) in self._select("SELECT data FROM package_rests ORDER BY id"):
            text = decompressor.decompress(data, max_output_size=MAX_PACKAGES)
            for facts in _PACKAGES.decode(text):
                location = self._location_of(facts.path)
                self._writer.columns.packages.append(replace(facts, location=location))

    def _location_of(self, path: str) -> str:
        """Return the location of a document that is stored with this path."""
        return f"{self._location}/{path}"

    def _read_specs(self) -> Specs:
        """Read hashes and configurations, and number them."""
        # Configurations, with their sets of variants.
        variants: dict[int, list[str]] = defaultdict(list)
        for variant_set, text in self._select(VARIANTS):
            variants[variant_set].append(text)
        configurations = {}
        for key, *words, variant_set in self._select(CONFIGURATIONS):
            values = [*words, tuple(variants[variant_set])]
            configuration = Configuration._make(values)
            configurations[key] = self._configuration_number(configuration)

        # Hashes, which are distinct.
        hashes = [dag_hash for (dag_hash,) in self._select(HASHES)]
        for dag_hash in hashes:
            if not is_hash(dag_hash):
                raise ValueError(f"the hash {dag_hash!r}")
        self._texts.hashes.extend(hashes)
        ids = number_columns(self._select(SPECS), "spec", "configuration")
        configuration_of_spec = lookup_of(configurations)[ids["configuration"]]
        numbers = np.arange(1, len(hashes) + 1, dtype=np.uint32)
        return Specs(
            ids=ids["spec"],
            numbers=Lookup(ids["spec"], numbers),
            configurations=np.insert(configuration_of_spec, 0, 0),
        )

    def _stored(self, specs: Specs) -> Stored:
        """Return what the rows of the database refer to."""
        # The release of each document, the package of a page, the stack of an index.
        release_numbers: Interned[str] = Interned()
        package_numbers: Interned[str] = Interned()
        release_of_document = [0]
        stacks_of_document = [0]
        page_keys = {}
        for number, document in enumerate(self._writer.columns.documents, start=1):
            release = release_numbers[document.release]
            stack_set = 0
            if document.page:
                package = package_numbers[document.page.package]
                page_keys[packed_pair(release, package)] = number
            if document.index_facts:
                stacks = (document.index_facts.stack,)
                stack_set = self._texts.stack_sets[stacks]
            release_of_document.append(release)
            stacks_of_document.append(stack_set)

        releases = {}
        for key, name in self._select("SELECT id, name FROM releases"):
            releases[key] = release_numbers[name]
        return Stored(
            select=self._select,
            specs=specs,
            release_numbers=releases,
            stack_sets=self._stack_sets(),
            tarballs=self._tarballs(),
            pages=lookup_of(self._pages),
            mirrors=lookup_of(self._mirrors),
            page_keys=lookup_of(page_keys),
            package_numbers=package_numbers,
            release_of_document=number_array(release_of_document),
            stacks_of_document=number_array(stacks_of_document),
            other_configurations=self._by_document(self._other_configurations),
            other_edges=self._by_document(self._other_edges),
        )

    def _stack_sets(self) -> Lookup:
        """Return the numbers of sets of stacks by their ids."""
        numbers = {}
        for key, text in self._select("SELECT id, stacks FROM stack_sets"):
            stacks = tuple(json.loads(text))
            for name in stacks:
                require_name("stack", name)
            numbers[key] = self._texts.stack_sets[stacks]
        return lookup_of(numbers)

    def _tarballs(self) -> Lookup:
        """Return the numbers of the stored parts of tarballs by their ids; 0 for 0."""
        numbers = {0: 0}
        rows = self._select("SELECT id, url, is_whole FROM tarball_prefixes")
        for key, url, is_whole in rows:
            numbers[key] = self._texts.tarballs[Tarball(url, is_whole)]
        return lookup_of(numbers)

    def _by_document(
        self, values: Mapping[tuple[_DocumentKey, int], T]
    ) -> dict[tuple[int, int], T]:
        """Return values of documents and hashes by the numbers of both."""
        by_number = {}
        for ((page, mirror), spec), value in values.items():
            document = self._mirrors[mirror] if page is None else self._pages[page]
            by_number[document, spec] = value
        return by_number

    def _configuration_number(self, configuration: Configuration) -> int:
        require_bounded(configuration)
        return self._texts.configurations[configuration]

    def _read_problems(self) -> None:
        """Read the problems of documents, and the values that differ between
        documents.
        """
        for source, page, mirror, *values in self._select(PROBLEMS):
            problem = Problem(*values)
            document_key = (page, mirror)
            # None for a problem of no hash, or of one that is not stored.
            spec = self._texts.hashes.get(problem.hash or "")
            value = json.loads(problem.value or "null")
            if problem.code == "refused":
                self._writer.columns.left_out.append((source, problem.message))
            elif problem.code == "two_configurations" and spec is not None:
                value["variants"] = tuple(value["variants"])
                number = self._configuration_number(Configuration(**value))
                self._other_configurations[document_key, spec] = number
            elif problem.code == "two_dependencies" and spec is not None:
                edges = []
                for dependency, types, virtuals, direct in value:
                    end = self._texts.hashes[dependency]
                    edges.append((end, self._use(types, virtuals, direct)))
                self._other_edges[document_key, spec] = edges
            elif problem.code not in FOUND_AGAIN and (page or mirror):
                self._problems[document_key].append(problem)
            # A spec without a record is read from this problem, which stays a problem.
            if problem.code == "no_record":
                if spec is None:
                    raise ValueError(f"the hash {problem.hash!r}")
                self._unrecorded.append((mirror, spec, value["package"]))

    def _use(self, types: Iterable[str], virtuals: Iterable[str], direct: Any) -> int:
        """Return the number of a use; `direct` is 0, 1 or None."""
        is_direct = None if direct is None else bool(direct)
        return self._texts.uses[Use(tuple(types), tuple(virtuals), is_direct)]

    def _read_pages(self) -> None:
        """Read pages, without their listings."""
        # Thousands of pages share a release, and a few a package and a format: each is
        # one object in memory.
        facts_of: dict[tuple[str, str], PageFacts] = {}
        for key, name, package, path, sha256, form, is_copy in self._select(PAGES):
            require_name("release", name)
            facts = PageFacts(package, form)
            document = Document(
                self._location_of(path),
                path,
                sha256,
                sys.intern(name),
                tuple(self._problems.get((key, None), ())),
                facts_of.setdefault((package, form), facts),
                is_copy=bool(is_copy),
            )
            self._pages[key] = self._writer.add(document)

    def _read_mirrors(self) -> None:
        """Read indexes, without their records."""
        for (
            key, name, kind, is_copy, stack, path, sha256, form, url, is_named, is_signed, settings
        ) in self._select(MIRRORS):  # fmt: skip
            require_name("release", name)
            # Indexes of one release and stack in one database belong together, except
            # single spec files.
            whole = None
            if not form.startswith(SPEC_FILE):
                whole = self._location_of(json.dumps([name, stack]))
            facts = IndexFacts(
                stack,
                form,
                url,
                whole,
                is_installed=kind == INSTALLED,
                is_named=bool(is_named),
                is_signed=None if is_signed is None else bool(is_signed),
                settings=settings,
            )
            document = Document(
                self._location_of(path),
                path,
                sha256,
                name,
                tuple(self._problems.get((None, key), ())),
                index_facts=facts,
                is_copy=bool(is_copy),
            )
            self._mirrors[key] = self._writer.add(document)
