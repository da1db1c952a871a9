"""Reads a spack-cache-db database back into the columns that it was built from.

A build can therefore use a database as a source. If several documents of a release list
a spec, `document_listings` has the values that differ from `listings`. A new build
finds contradictions again; only values that no other table stores come from `problems`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from spack_cache_db.database_file import damage_as_error, damaged, open_source
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
from spack_cache_db.sources.writer import TABLES, Columns, Writer
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
    "configurations.variants" if column == "variants" else word_of(column)
    for column in CONFIGURATION
)
CONFIGURATIONS = f"""
SELECT configurations.id, {_WORDS} FROM configurations {CONFIGURATION_JOINS}
"""  # noqa: S608 - our own names
VARIANTS = """
SELECT variant_set, text FROM variant_set_members
JOIN variants ON variants.id = variant_set_members.variant ORDER BY text
"""
PROBLEMS = """
SELECT source, page, mirror, specs.id, code, message, problems.hash, value
FROM problems LEFT JOIN specs ON specs.hash = problems.hash ORDER BY problems.id
"""
PAGES = """
SELECT pages.id, releases.id, releases.name, packages.name, path, sha256, format,
  releases.is_copy
FROM pages JOIN releases ON releases.id = pages.release
JOIN packages ON packages.id = pages.package ORDER BY pages.id
"""
MIRRORS = """
SELECT mirrors.id, releases.name, releases.kind, releases.is_copy, stacks.name, path, sha256,
  format, url, is_named, is_signed, settings
FROM mirrors JOIN releases ON releases.id = mirrors.release
JOIN stacks ON stacks.id = mirrors.stack ORDER BY mirrors.id
"""
PAGE_LISTINGS = """
SELECT pages.id, listings.release, listings.spec, listings.stacks, size, tarball
FROM listings JOIN specs ON specs.id = listings.spec
JOIN configurations ON configurations.id = specs.configuration
LEFT JOIN pages
  ON pages.release = listings.release AND pages.package = configurations.package
WHERE NOT EXISTS (
  SELECT 1 FROM records JOIN mirrors ON mirrors.id = records.mirror
  WHERE records.spec = listings.spec AND mirrors.release = listings.release AND is_listed
)
UNION ALL
SELECT page, NULL, spec, stacks, size, tarball FROM document_listings WHERE page IS NOT NULL
"""
NODES = f"SELECT id, {', '.join(NodeFacts._fields)} FROM nodes"  # noqa: S608 - our own names
RECORDS = """
SELECT records.mirror, records.spec, node, is_listed, build_spec,
  CASE WHEN own.id THEN own.size ELSE listings.size END,
  CASE WHEN own.id THEN own.tarball ELSE listings.tarball END,
  installs.spec IS NOT NULL, prefix, explicit, installed_at
FROM records JOIN mirrors ON mirrors.id = records.mirror
LEFT JOIN listings ON listings.release = mirrors.release AND listings.spec = records.spec
LEFT JOIN document_listings AS own ON own.mirror = records.mirror AND own.spec = records.spec
LEFT JOIN installs ON installs.spec = records.spec AND installs.mirror = records.mirror
LEFT JOIN splices ON splices.spec = records.spec AND splices.mirror = records.mirror
"""
EDGES = """
SELECT spec, dependency, dependency_types.types, dependency_virtuals.virtuals, direct
FROM dependencies JOIN dependency_types ON dependency_types.id = dependencies.types
JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
"""
MODULES = """
SELECT path, releases.name, modules.name, compiler, tree, hash, package, version, is_hidden,
  parents
FROM modules JOIN releases ON releases.id = modules.release ORDER BY modules.id
"""

_PACKAGES = msgspec.json.Decoder(list[PackageFacts])

_Key = tuple[int | None, int | None]
"""The ids of a page and of a mirror; one of them is None."""


def read_database(file: File) -> Columns:
    """Return the columns that a database was built from.

    Raises:
        InputError: it is not a database of this or an older schema version, or it is
            damaged.
    """
    path, writer = Path(file.location), Writer()
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
        why = f"is damaged: it has values that no build writes ({error!r}); build it again"
        raise InputError([Fault(file.location, 0, why)]) from error
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
        self._problems: dict[_Key, list[Problem]] = defaultdict(list)
        # By document and spec: configurations and edges that differ from the stored
        # ones.
        self._deviating: dict[tuple[_Key, int], int] = {}
        self._edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # Mirror, hash and package.
        self._unrecorded: list[tuple[int, int, str]] = []

    def read(self) -> None:
        """Read everything."""
        columns, select = self._writer.columns, self._select
        origin = dict(select("SELECT name, value FROM origin"))
        recipes = dict(select("SELECT namespace, url FROM recipes"))
        columns.origins.append(
            Origin(
                self._location, origin.get("first"), recipes, identity.PATHS in origin
            )
        )
        self._read_dictionaries()
        self._read_problems()
        self._read_pages()
        self._read_mirrors()
        columns.modules += map(ModuleFacts._make, select(MODULES))
        for (data,) in select("SELECT data FROM package_rests ORDER BY id"):
            text = zstandard.ZstdDecompressor().decompress(
                data, max_output_size=MAX_PACKAGES
            )
            for facts in _PACKAGES.decode(text):
                columns.packages.append(
                    replace(facts, location=self._within(facts.path))
                )

    def _within(self, path: str) -> str:
        return f"{self._location}/{path}"

    def _read_dictionaries(self) -> None:
        texts, select = self._texts, self._select
        variants: dict[int, list[str]] = defaultdict(list)
        for variant_set, text in select(VARIANTS):
            variants[variant_set].append(text)
        configurations = {
            key: self._configuration(
                Configuration._make([*words, (*variants[variant_set],)])
            )
            for key, *words, variant_set in select(CONFIGURATIONS)
        }
        self._stack_sets = {}
        for key, text in select("SELECT id, stacks FROM stack_sets"):
            stacks = tuple(json.loads(text))
            for name in stacks:
                require_name("stack", name)
            self._stack_sets[key] = texts.stack_sets[stacks]
        self._tarballs: dict[int | None, int] = {None: 0}
        for key, *tarball in select("SELECT id, url, is_whole FROM tarball_prefixes"):
            self._tarballs[key] = texts.tarballs[Tarball._make(tarball)]
        self._specs: dict[int, int] = {}
        self._configuration_of: dict[int, int] = {}
        for key, dag_hash, configuration in select(
            "SELECT id, hash, configuration FROM specs"
        ):
            if not is_hash(dag_hash):
                raise ValueError(f"the hash {dag_hash!r}")
            self._specs[key] = texts.hashes[dag_hash]
            self._configuration_of[key] = configurations[configuration]

    def _configuration(self, configuration: Configuration) -> int:
        require_bounded(configuration)
        return self._texts.configurations[configuration]

    def _read_problems(self) -> None:
        """Read the problems of documents, and the values that differ between
        documents.
        """
        for source, page, mirror, spec, *values in self._select(PROBLEMS):
            problem, document = Problem(*values), (page, mirror)
            value = json.loads(problem.value or "null")
            if problem.code == "refused":
                self._writer.columns.left_out.append((source, problem.message))
            elif problem.code == "two_configurations":
                value["variants"] = tuple(value["variants"])
                self._deviating[document, spec] = self._configuration(
                    Configuration(**value)
                )
            elif problem.code == "two_dependencies":
                self._edges[mirror, spec] = [
                    (self._texts.hashes[dependency], self._use(*use))
                    for dependency, *use in value
                ]
            elif problem.code not in FOUND_AGAIN and (page or mirror):
                self._problems[document].append(problem)
            if problem.code == "no_record":
                self._unrecorded.append((mirror, self._specs[spec], value["package"]))

    def _use(self, types: Iterable[str], virtuals: Iterable[str], direct: Any) -> int:
        is_direct = None if direct is None else bool(direct)
        return self._texts.uses[Use(tuple(types), tuple(virtuals), is_direct)]

    def _read_pages(self) -> None:
        """Read pages with their listings: those in no index, and those of
        `document_listings`.
        """
        pages, releases = {}, {}
        for key, release, name, package, path, sha256, form, is_copy in self._select(
            PAGES
        ):
            require_name("release", name)
            document = Document(
                self._within(path),
                path,
                sha256,
                name,
                tuple(self._problems[key, None]),
                PageFacts(package, form),
                is_copy=bool(is_copy),
            )
            pages[key], releases[key] = self._writer.add(document), release
        # A page with another package than the stored configuration.
        deviating = {
            (releases[page], spec): page
            for (page, _), spec in self._deviating
            if page is not None
        }
        sizes, rows = self._texts.sizes, self._writer.columns.tables["listings"]
        add = [rows[name].append for name in TABLES["listings"]]
        for page, release, spec, stacks, size, tarball in self._select(PAGE_LISTINGS):
            page = deviating.get((release, spec), page)
            configuration, number = self._values((page, None), spec, tarball)
            add[0](pages[page])
            add[1](self._specs[spec])
            add[2](configuration)
            add[3](self._stack_sets[stacks])
            add[4](0 if size is None else sizes[size])
            add[5](number)

    def _values(
        self, document: _Key, spec: int, tarball: int | None
    ) -> tuple[int, int]:
        """Return the numbers of the configuration and the tarball of a spec in a
        document.
        """
        stored, number = self._configuration_of[spec], self._tarballs[tarball]
        configuration = (
            self._deviating.get((document, spec), stored) if self._deviating else stored
        )
        if not number or configuration == stored:
            return configuration, number
        # The part of the URL that is stored is relative to the configuration.
        texts = self._texts
        dag_hash = texts.hashes.things[self._specs[spec] - 1]
        configurations = texts.configurations.things
        url = tarball_url(
            texts.tarballs.things[number - 1], configurations[stored - 1], dag_hash
        )
        parts = TarballParts(configurations).split(url, configuration, dag_hash)
        return configuration, texts.tarballs[parts]

    def _read_mirrors(self) -> None:
        """Read indexes with their records."""
        texts, mirrors = self._texts, {}
        for (
            key, name, kind, is_copy, stack, path, sha256, form, url, is_named, is_signed, settings
        ) in self._select(MIRRORS):  # fmt: skip
            require_name("release", name)
            # Indexes of one release and stack in one database belong together.
            whole = (
                None
                if form.startswith(SPEC_FILE)
                else self._within(json.dumps([name, stack]))
            )
            is_installed = kind == INSTALLED
            index = Document(
                self._within(path),
                path,
                sha256,
                name,
                tuple(self._problems[None, key]),
                index_facts=IndexFacts(
                    stack,
                    form,
                    url,
                    whole,
                    is_installed,
                    bool(is_named),
                    None if is_signed is None else bool(is_signed),
                    settings,
                ),
                is_copy=bool(is_copy),
            )
            mirrors[key] = self._writer.add(index), texts.stack_sets[(stack,)]
        if not mirrors:
            return
        nodes = {
            key: texts.nodes[NodeFacts._make(facts)]
            for key, *facts in self._select(NODES)
        }
        uses: dict[tuple[Any, ...], int] = {}
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for spec, dependency, *use in self._select(EDGES):
            types, virtuals, direct = key = (*use,)
            if key not in uses:
                uses[key] = self._use(_set(types), _set(virtuals), direct)
            edges[spec].append((self._specs[dependency], uses[key]))
        for (
            mirror, spec, node, is_listed, built, size, tarball, is_installed, *install
        ) in self._select(RECORDS):  # fmt: skip
            document, stacks = mirrors[mirror]
            configuration, number = self._values((None, mirror), spec, tarball)
            size_number = 0 if size is None else texts.sizes[size]
            listing = {"stacks": stacks, "size": size_number, "tarball": number}
            self._writer.add_record(
                configuration,
                listing if is_listed else None,
                self._edges.get((mirror, spec), edges.get(spec, ())),
                document=document,
                spec=self._specs[spec],
                node=nodes[node],
                install=texts.installs[Install(*install)] if is_installed else 0,
                build_spec=0 if built is None else self._specs[built],
            )
        for mirror, dag_hash, package in self._unrecorded:
            self._writer.add_unrecorded(mirrors[mirror][0], dag_hash, package)


def _set(text: str) -> list[str]:
    return text.split(",") if text else []
