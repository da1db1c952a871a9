"""Reads a spack-cache-db database back into the columns that it was built from.

A build can therefore use a database as a source. If several documents of a release list
a spec, `document_listings` has the values that differ from `listings`. A new build
finds contradictions again; only values that no other table stores come from `problems`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
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
    Install,
    ModuleFacts,
    NodeFacts,
    Origin,
    PackageFacts,
    PageFacts,
    Tarball,
)
from spack_cache_db.sources.files import File
from spack_cache_db.sources.tarballs import TarballParts, tarball_url
from spack_cache_db.sources.writer import Columns, Writer
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Use

FOUND_AGAIN = ("two_configurations", "two_sizes", "two_dependencies", "two_records")
"""Problems between documents: a build that reads the documents finds them again."""

_ODD = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    msgspec.MsgspecError, zstandard.ZstdError,
)  # fmt: skip
"""Raised by values, or ids without rows, that no build writes."""

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
PROBLEMS = """
SELECT source, page_id, mirror_id, specs.id, code, message, problems.hash, value
FROM problems LEFT JOIN specs ON specs.hash = problems.hash ORDER BY problems.id
"""
PAGES = """
SELECT pages.id, releases.id, releases.name, packages.name, path, sha256, format,
  releases.is_copy
FROM pages JOIN releases ON releases.id = pages.release_id
JOIN packages ON packages.id = pages.package_id ORDER BY pages.id
"""
MIRRORS = """
SELECT mirrors.id, releases.name, releases.kind, releases.is_copy, stacks.name, path, sha256,
  format, url, is_named, is_signed, settings
FROM mirrors JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id ORDER BY mirrors.id
"""
PAGE_LISTINGS = """
SELECT pages.id, listings.release_id, listings.spec_id, listings.stack_set_id, size,
  tarball_prefix_id
FROM listings JOIN specs ON specs.id = listings.spec_id
JOIN configurations ON configurations.id = specs.configuration_id
LEFT JOIN pages
  ON pages.release_id = listings.release_id AND pages.package_id = configurations.package_id
WHERE NOT EXISTS (
  SELECT 1 FROM records JOIN mirrors ON mirrors.id = records.mirror_id
  WHERE records.spec_id = listings.spec_id AND mirrors.release_id = listings.release_id
    AND is_listed
)
UNION ALL
SELECT page_id, NULL, spec_id, stack_set_id, size, tarball_prefix_id
FROM document_listings WHERE page_id IS NOT NULL
"""
NODES = f"SELECT id, {', '.join(NodeFacts._fields)} FROM nodes"  # noqa: S608 - our own names
RECORDS = """
SELECT records.mirror_id, records.spec_id, node_id, is_listed, build_spec_id,
  CASE WHEN own.id THEN own.size ELSE listings.size END,
  CASE WHEN own.id THEN own.tarball_prefix_id ELSE listings.tarball_prefix_id END,
  installs.spec_id IS NOT NULL, prefix, explicit, installed_at
FROM records JOIN mirrors ON mirrors.id = records.mirror_id
LEFT JOIN listings
  ON listings.release_id = mirrors.release_id AND listings.spec_id = records.spec_id
LEFT JOIN document_listings AS own
  ON own.mirror_id = records.mirror_id AND own.spec_id = records.spec_id
LEFT JOIN installs ON installs.spec_id = records.spec_id AND installs.mirror_id = records.mirror_id
LEFT JOIN splices ON splices.spec_id = records.spec_id AND splices.mirror_id = records.mirror_id
"""
EDGES = """
SELECT spec_id, dependency_id, dependency_types.types, dependency_virtuals.virtuals, direct
FROM dependencies JOIN dependency_types ON dependency_types.id = dependencies.dependency_type_id
JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.dependency_virtual_id
"""
MODULES = """
SELECT path, releases.name, modules.name, compiler, tree, hash, package, version, is_hidden,
  parents
FROM modules JOIN releases ON releases.id = modules.release_id ORDER BY modules.id
"""

_PACKAGES = msgspec.json.Decoder(list[PackageFacts])

_DocumentKey = tuple[int | None, int | None]
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
        message = str(error).removeprefix(f"{path}: ")
        raise InputError([Fault(file.location, 0, message)]) from None
    except _ODD as error:
        message = f"is damaged: it has values that no build writes ({error!r}); build it again"
        raise InputError([Fault(file.location, 0, message)]) from error
    writer.columns.bytes_read = path.stat().st_size
    return writer.columns


class _Database:
    """Reads one database; its dictionaries map the ids of rows to the numbers of
    columns.
    """

    def __init__(self, conn: sqlite3.Connection, location: str, writer: Writer) -> None:
        self._select = conn.execute
        self._location = location
        self._writer = writer
        self._texts = writer.texts
        # The numbers of rows by their ids.
        self._stack_sets: dict[int, int] = {}
        self._tarballs: dict[int | None, int] = {None: 0}
        self._specs: dict[int, int] = {}
        self._configuration_of_spec: dict[int, int] = {}
        # The problems of each document.
        self._problems: dict[_DocumentKey, list[Problem]] = defaultdict(list)
        # Configurations and edges that differ from the stored ones, by document (or
        # mirror) and spec.
        self._deviating: dict[tuple[_DocumentKey, int], int] = {}
        self._edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # Mirror, hash and package of dependencies without a record.
        self._unrecorded: list[tuple[int, int, str]] = []

    def read(self) -> None:
        """Read everything."""
        self._read_origin()
        self._read_dictionaries()
        self._read_problems()
        self._read_pages()
        self._read_mirrors()
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
                origin.get("first"),
                recipes,
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

    def _read_dictionaries(self) -> None:
        """Read texts and specs, and number them."""
        texts = self._texts
        # Configurations, with their sets of variants.
        variants: dict[int, list[str]] = defaultdict(list)
        for variant_set, text in self._select(VARIANTS):
            variants[variant_set].append(text)
        configurations = {}
        for key, *words, variant_set in self._select(CONFIGURATIONS):
            values = [*words, tuple(variants[variant_set])]
            configuration = Configuration._make(values)
            configurations[key] = self._configuration_number(configuration)

        # Sets of stacks, and the stored parts of tarballs.
        for key, text in self._select("SELECT id, stacks FROM stack_sets"):
            stacks = tuple(json.loads(text))
            for name in stacks:
                require_name("stack", name)
            self._stack_sets[key] = texts.stack_sets[stacks]
        rows = self._select("SELECT id, url, is_whole FROM tarball_prefixes")
        for key, url, is_whole in rows:
            self._tarballs[key] = texts.tarballs[Tarball(url, is_whole)]

        # Specs.
        rows = self._select("SELECT id, hash, configuration_id FROM specs")
        for key, dag_hash, configuration_id in rows:
            if not is_hash(dag_hash):
                raise ValueError(f"the hash {dag_hash!r}")
            self._specs[key] = texts.hashes[dag_hash]
            self._configuration_of_spec[key] = configurations[configuration_id]

    def _configuration_number(self, configuration: Configuration) -> int:
        require_bounded(configuration)
        return self._texts.configurations[configuration]

    def _read_problems(self) -> None:
        """Read the problems of documents, and the values that differ between
        documents.
        """
        for source, page, mirror, spec, *values in self._select(PROBLEMS):
            problem = Problem(*values)
            document = (page, mirror)
            value = json.loads(problem.value or "null")
            if problem.code == "refused":
                self._writer.columns.left_out.append((source, problem.message))
            elif problem.code == "two_configurations":
                value["variants"] = tuple(value["variants"])
                number = self._configuration_number(Configuration(**value))
                self._deviating[document, spec] = number
            elif problem.code == "two_dependencies":
                edges = []
                for dependency, types, virtuals, direct in value:
                    end = self._texts.hashes[dependency]
                    edges.append((end, self._use(types, virtuals, direct)))
                self._edges[mirror, spec] = edges
            elif problem.code not in FOUND_AGAIN and (page or mirror):
                self._problems[document].append(problem)
            if problem.code == "no_record":
                self._unrecorded.append((mirror, self._specs[spec], value["package"]))

    def _use(self, types: Iterable[str], virtuals: Iterable[str], direct: Any) -> int:
        """Return the number of a use; `direct` is 0, 1 or None."""
        is_direct = None if direct is None else bool(direct)
        return self._texts.uses[Use(tuple(types), tuple(virtuals), is_direct)]

    def _read_pages(self) -> None:
        """Read pages with their listings: those in no index, and those of
        `document_listings`.
        """
        documents = {}
        releases = {}
        for key, release, name, package, path, sha256, form, is_copy in self._select(
            PAGES
        ):
            require_name("release", name)
            document = Document(
                self._location_of(path),
                path,
                sha256,
                name,
                tuple(self._problems[key, None]),
                PageFacts(package, form),
                is_copy=bool(is_copy),
            )
            documents[key] = self._writer.add(document)
            releases[key] = release

        # A page may list a spec with another package than the stored configuration has.
        # The statement finds the page by the package, and therefore not this one.
        deviating_pages = {}
        for (page, _), spec in self._deviating:
            if page is not None:
                deviating_pages[releases[page], spec] = page

        # Appended column by column, because a database may have millions of listings.
        sizes = self._texts.sizes
        columns = self._writer.columns.tables["listings"]
        add_document = columns["document"].append
        add_spec = columns["spec"].append
        add_configuration = columns["configuration"].append
        add_stacks = columns["stacks"].append
        add_size = columns["size"].append
        add_tarball = columns["tarball"].append
        for page, release, spec, stacks, size, tarball in self._select(PAGE_LISTINGS):
            page = deviating_pages.get((release, spec), page)
            configuration, tarball_number = self._values((page, None), spec, tarball)
            add_document(documents[page])
            add_spec(self._specs[spec])
            add_configuration(configuration)
            add_stacks(self._stack_sets[stacks])
            add_size(0 if size is None else sizes[size])
            add_tarball(tarball_number)

    def _values(
        self, document: _DocumentKey, spec: int, tarball: int | None
    ) -> tuple[int, int]:
        """Return the numbers of a spec's configuration and tarball in a document, by
        the ids of the spec and of the tarball.
        """
        stored = self._configuration_of_spec[spec]
        tarball_number = self._tarballs[tarball]
        configuration = stored
        if self._deviating:
            configuration = self._deviating.get((document, spec), stored)
        if not tarball_number or configuration == stored:
            return configuration, tarball_number

        # The part of the URL that is stored is relative to the configuration.
        texts = self._texts
        dag_hash = texts.hashes.things[self._specs[spec] - 1]
        configurations = texts.configurations.things
        stored_part = texts.tarballs.things[tarball_number - 1]
        url = tarball_url(stored_part, configurations[stored - 1], dag_hash)
        own_part = TarballParts(configurations).split(url, configuration, dag_hash)
        return configuration, texts.tarballs[own_part]

    def _read_mirrors(self) -> None:
        """Read indexes with their records."""
        texts = self._texts
        documents: dict[int, int] = {}
        stacks_of_mirror = {}
        for (
            key, name, kind, is_copy, stack, path, sha256, form, url, is_named, is_signed, settings
        ) in self._select(MIRRORS):  # fmt: skip
            require_name("release", name)
            # Indexes of one release and stack in one database belong together.
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
                tuple(self._problems[None, key]),
                index_facts=facts,
                is_copy=bool(is_copy),
            )
            documents[key] = self._writer.add(document)
            stacks_of_mirror[key] = texts.stack_sets[(stack,)]
        # A database of pages has no nodes and edges to read.
        if not documents:
            return

        nodes = {}
        for key, *columns in self._select(NODES):
            nodes[key] = texts.nodes[NodeFacts(*columns)]
        edges = self._read_edges()
        for (
            mirror, spec, node, is_listed, build_spec, size, tarball, is_installed, *install
        ) in self._select(RECORDS):  # fmt: skip
            configuration, tarball_number = self._values((None, mirror), spec, tarball)
            size_number = 0 if size is None else texts.sizes[size]
            listing = None
            if is_listed:
                listing = {
                    "stacks": stacks_of_mirror[mirror],
                    "size": size_number,
                    "tarball": tarball_number,
                }
            self._writer.add_record(
                configuration,
                listing,
                self._edges.get((mirror, spec), edges.get(spec, ())),
                document=documents[mirror],
                spec=self._specs[spec],
                node=nodes[node],
                install=texts.installs[Install(*install)] if is_installed else 0,
                build_spec=0 if build_spec is None else self._specs[build_spec],
            )
        for mirror, spec_number, package in self._unrecorded:
            self._writer.add_unrecorded(documents[mirror], spec_number, package)

    def _read_edges(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return the dependencies and their uses, in numbers, by the id of the spec."""
        # A few hundred uses are repeated by millions of edges.
        uses: dict[tuple[Any, ...], int] = {}
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for spec, dependency, types, virtuals, direct in self._select(EDGES):
            key = (types, virtuals, direct)
            if key not in uses:
                uses[key] = self._use(_words(types), _words(virtuals), direct)
            edges[spec].append((self._specs[dependency], uses[key]))
        return edges


def _words(text: str) -> list[str]:
    """Return the words of a text with commas; none for an empty text."""
    return text.split(",") if text else []
