"""Reads a spack-cache-db database back into the columns that it was built from.

A build can therefore use a database as a source. If several documents of a release list a spec,
`document_listings` has the values that differ from `listings`. A new build finds contradictions
again; only values that no other table stores come from `problems`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from spack_cache_db import schema
from spack_cache_db.database_file import damage_as_error, open_database
from spack_cache_db.errors import DatabaseError, Fault, InputError
from spack_cache_db.records import INSTALLED, Configuration, Problem
from spack_cache_db.schema import CONFIGURATION, CONFIGURATION_JOINS, word_of
from spack_cache_db.sources import File, require_bounded, require_name
from spack_cache_db.sources.columns import (
    SPEC_FILE,
    Columns,
    Document,
    IndexFacts,
    Install,
    ModuleFacts,
    NodeFacts,
    Origin,
    PackageFacts,
    PageFacts,
    Tarball,
    TarballParts,
    Writer,
    tarball_url,
)
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Use

FOUND_AGAIN = ("two_configurations", "two_sizes", "two_dependencies", "two_records")
"""Problems between documents: a build that reads the documents finds them again."""

_ODD = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    zstandard.ZstdError,
)
"""Raised by values, or ids without rows, that no build writes."""

MAX_PACKAGES = 2**28
"""Bytes of package data that one row may unpack to."""

_WORDS = ", ".join(
    "configurations.variants" if column == "variants" else word_of(column)
    for column in CONFIGURATION
)
CONFIGURATIONS = f"""
SELECT configurations.id, {_WORDS} FROM configurations {CONFIGURATION_JOINS}
"""  # noqa: S608 - our own names
VARIANTS = """
SELECT variant_set, text FROM variant_set_members
JOIN variants ON variants.id = variant_set_members.variant
"""
PAGES = """
SELECT pages.id, releases.id, packages.id, releases.name, packages.name, path, sha256, format
FROM pages JOIN releases ON releases.id = pages.release
JOIN packages ON packages.id = pages.package ORDER BY pages.id
"""
MIRRORS = """
SELECT mirrors.id, releases.id, releases.name, releases.kind, stacks.name, path, sha256, format,
  url, mirrors.spec_count, is_named
FROM mirrors JOIN releases ON releases.id = mirrors.release
JOIN stacks ON stacks.id = mirrors.stack ORDER BY mirrors.id
"""
NODES = """
SELECT id, namespace, package_hash, parameters, external, has_compiler FROM nodes
"""
RECORDS = """
SELECT records.mirror, records.spec, node, is_listed, build_spec,
  installs.spec IS NOT NULL, prefix, explicit, installed_at
FROM records
LEFT JOIN installs ON installs.spec = records.spec AND installs.mirror = records.mirror
LEFT JOIN splices ON splices.spec = records.spec AND splices.mirror = records.mirror
ORDER BY records.mirror, records.spec
"""
MODULES = """
SELECT path, releases.name, modules.name, compiler, tree, hash, package, version, is_hidden
FROM modules JOIN releases ON releases.id = modules.release ORDER BY modules.id
"""
EDGES = """
SELECT spec, dependency, dependency_types.types, dependency_virtuals.virtuals, direct
FROM dependencies JOIN dependency_types ON dependency_types.id = dependencies.types
JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
"""

_PACKAGES = msgspec.json.Decoder(list[PackageFacts])


class _Listing(NamedTuple):
    """The numbers of the stacks, the size and the tarball of a listing."""

    stacks: int
    size: int
    tarball: int


def read_database(file: File) -> Columns:
    """Return the columns that a database was built from.

    Raises:
        InputError: it is not a database of this schema version, or it is damaged.
    """
    path, writer = Path(file.location), Writer()
    try:
        with closing(open_database(path)) as conn, damage_as_error(path):
            (result,) = conn.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise sqlite3.DatabaseError(" ".join(result.split()))
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
    """Reads one database; its dictionaries map the ids of rows to the numbers of columns."""

    def __init__(self, conn: sqlite3.Connection, location: str, writer: Writer) -> None:
        self._select = conn.execute
        self._location = location
        self._writer = writer
        self._texts = writer.texts
        self._parts = TarballParts(writer.texts.configurations.things)

    def read(self) -> None:
        """Read everything."""
        self._read_origin()
        self._read_dictionaries()
        self._read_problems()
        self._read_documents()
        listings = self._read_indexes()
        self._read_pages(listings)
        self._read_packages()
        self._writer.columns.modules += [
            ModuleFacts._make([*values, bool(is_hidden)])
            for *values, is_hidden in self._select(MODULES)
        ]

    def _read_origin(self) -> None:
        origin = dict(self._select("SELECT name, value FROM origin"))
        recipes = dict(self._select("SELECT namespace, url FROM recipes"))
        self._writer.columns.origins.append(
            Origin(self._location, origin.get("first"), recipes, schema.PATHS in origin)
        )

    def _read_dictionaries(self) -> None:
        texts = self._texts
        variants: dict[int, list[str]] = defaultdict(list)
        for variant_set, text in self._select(VARIANTS):
            variants[variant_set].append(text)
        self._configurations: dict[int, int] = {}
        for key, *values, variant_set in self._select(CONFIGURATIONS):
            texts_of_set = tuple(sorted(variants.get(variant_set, ())))
            configuration = Configuration._make([*values, texts_of_set])
            require_bounded(configuration)
            self._configurations[key] = texts.configurations[configuration]
        self._stack_sets = {}
        for key, text in self._select("SELECT id, stacks FROM stack_sets"):
            stacks = tuple(json.loads(text))
            for name in stacks:
                require_name("stack", name)
            self._stack_sets[key] = texts.stack_sets[stacks]
        self._tarballs: dict[int | None, int] = {None: 0}
        for key, url, is_whole in self._select("SELECT id, url, is_whole FROM tarball_prefixes"):
            self._tarballs[key] = texts.tarballs[Tarball(url, bool(is_whole))]
        self._specs: dict[int, int] = {}
        self._of: dict[int, int] = {}
        self._package_of: dict[int, int] = {}
        for key, dag_hash, configuration, package in self._select(
            "SELECT specs.id, hash, configuration, package FROM specs "
            "JOIN configurations ON configurations.id = specs.configuration"
        ):
            if not is_hash(dag_hash):
                raise ValueError(f"the hash {dag_hash!r}")
            self._specs[key] = texts.hashes[dag_hash]
            self._of[key] = self._configurations[configuration]
            self._package_of[key] = package
        self._sizes: dict[str | None, int] = {None: 0}

    def _size(self, text: str | None) -> int:
        number = self._sizes.get(text)
        if number is None:
            number = self._sizes[text] = self._texts.sizes[str(text)]
        return number

    def _read_problems(self) -> None:
        """Read the problems of documents, and the values that differ between documents."""
        self._problems: dict[tuple[int | None, int | None], list[Problem]] = defaultdict(list)
        self._deviating: dict[tuple[int | None, int | None, int], int] = {}
        self._edges_of: dict[tuple[int | None, int], list[tuple[int, int]]] = {}
        self._unrecorded: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
        hashes = {dag_hash: key for key, dag_hash in self._select("SELECT id, hash FROM specs")}
        nothing = Configuration("", "", "none", "", "", "", ())
        for source, page, mirror, *problem in self._select(
            "SELECT source, page, mirror, code, message, hash, value FROM problems ORDER BY id"
        ):
            record = Problem(*problem)
            if record.code == "refused":
                self._writer.columns.left_out.append((source, record.message))
            elif record.code == "two_configurations":
                values = json.loads(str(record.value))
                values["variants"] = tuple(values["variants"])
                configuration = Configuration(**values)
                require_bounded(configuration)
                self._deviating[page, mirror, hashes[str(record.hash)]] = (
                    self._texts.configurations[configuration]
                )
            elif record.code == "two_dependencies":
                self._edges_of[mirror, hashes[str(record.hash)]] = [
                    (self._texts.hashes[to], self._use(types, virtuals, direct))
                    for to, types, virtuals, direct in json.loads(str(record.value))
                ]
            elif record.code not in FOUND_AGAIN and (page or mirror):
                self._problems[page, mirror].append(record)
                if record.code == "no_record":
                    package = json.loads(str(record.value))["package"]
                    configuration = nothing._replace(package=package)
                    self._unrecorded[mirror].append(
                        (
                            self._texts.hashes[str(record.hash)],
                            self._texts.configurations[configuration],
                        )
                    )

    def _use(self, types: Iterable[str], virtuals: Iterable[str], direct: Any) -> int:
        is_direct = None if direct is None else bool(direct)
        return self._texts.uses[Use(tuple(types), tuple(virtuals), is_direct)]

    def _read_documents(self) -> None:
        add, within = self._writer.add, f"{self._location}/{{}}".format
        self._pages: dict[int, int] = {}
        self._page_of: dict[tuple[int, int], int] = {}
        self._page_release: dict[int, int] = {}
        for key, release, package, name, package_name, path, sha256, form in self._select(PAGES):
            require_name("release", name)
            problems = tuple(self._problems[key, None])
            page = PageFacts(package_name, form)
            self._pages[key] = add(Document(within(path), path, sha256, name, problems, page))
            self._page_of[release, package] = key
            self._page_release[key] = release
        self._mirrors: dict[int, tuple[int, int, int]] = {}
        for (
            key,
            release,
            name,
            kind,
            stack,
            path,
            sha256,
            form,
            url,
            count,
            is_named,
        ) in self._select(MIRRORS):
            require_name("release", name)
            # Indexes of one release and stack in one database belong together.
            contents = None if form.startswith(SPEC_FILE) else within(json.dumps([name, stack]))
            is_installed = kind == INSTALLED
            facts = IndexFacts(stack, form, url, contents, count, is_installed, bool(is_named))
            problems = tuple(self._problems[None, key])
            document = Document(within(path), path, sha256, name, problems, index_facts=facts)
            self._mirrors[key] = add(document), release, self._texts.stack_sets[(stack,)]

    def _read_indexes(self) -> set[tuple[int, int]]:
        """Read the records of indexes; return the release and spec of each listing in an index."""
        index_listings: set[tuple[int, int]] = set()
        if not self._mirrors:
            return index_listings
        texts, append = self._texts, self._writer.append_row
        nodes = {
            key: texts.nodes[NodeFacts._make([*facts, bool(has_compiler)])]
            for key, *facts, has_compiler in self._select(NODES)
        }
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        uses: dict[tuple[str, str, int | None], int] = {}
        for spec, dependency, *how in self._select(EDGES):
            types, virtuals, direct = key = (*how,)
            if key not in uses:
                uses[key] = self._use(_set(types), _set(virtuals), direct)
            edges[spec].append((self._specs[dependency], uses[key]))
        releases = {release for _, release, _ in self._mirrors.values()}
        listings = {
            (release, spec): listing
            for release, spec, listing in self._listings()
            if release in releases
        }
        document_listings = {
            (mirror, spec): listing for page, mirror, spec, listing in self._document_listings()
        }
        for mirror, spec, node, is_listed, built, is_installed, *install in self._select(RECORDS):
            document, release, stacks = self._mirrors[mirror]
            configuration = self._deviating.get((None, mirror, spec), self._of[spec])
            row = {"document": document, "spec": self._specs[spec]}
            if is_listed:
                index_listings.add((release, spec))
                listing = document_listings.get((mirror, spec)) or listings[release, spec]
                tarball = self._relative(listing.tarball, spec, configuration)
                append(
                    "listings",
                    **row,
                    configuration=configuration,
                    stacks=stacks,
                    size=listing.size,
                    tarball=tarball,
                )
            else:
                append("unlisted", **row, configuration=configuration)
            append(
                "records",
                **row,
                node=nodes[node],
                install=self._install(*install) if is_installed else 0,
                build_spec=0 if built is None else self._specs[built],
            )
            spec_edges = self._edges_of.get((mirror, spec), edges.get(spec, ()))
            self._writer.append(
                "edges",
                document,
                spec=[row["spec"]] * len(spec_edges),
                dependency=[dependency for dependency, _ in spec_edges],
                use=[use for _, use in spec_edges],
            )
        for mirror_id, specs in self._unrecorded.items():
            for number, configuration in specs:
                document = self._mirrors[mirror_id or 0][0]
                append("unrecorded", document=document, spec=number, configuration=configuration)
        return index_listings

    def _install(self, prefix: str | None, explicit: int | None, when: str | None) -> int:
        is_explicit = None if explicit is None else bool(explicit)
        return self._texts.installs[Install(prefix, is_explicit, when)]

    def _read_pages(self, index_listings: set[tuple[int, int]]) -> None:
        """Read the listings of pages: those in no index, and the rows of `document_listings`."""
        deviating = {
            (self._page_release[page], spec): page
            for page, _, spec in self._deviating
            if page is not None
        }
        rows = self._writer.columns.tables["listings"]
        documents, specs, configurations = (
            rows[name] for name in ("document", "spec", "configuration")
        )
        stacks, sizes, tarballs = (rows[name] for name in ("stacks", "size", "tarball"))

        def add(page: int, spec: int, listing: _Listing) -> None:
            configuration = self._deviating.get((page, None, spec), self._of[spec])
            documents.append(self._pages[page])
            specs.append(self._specs[spec])
            configurations.append(configuration)
            stacks.append(listing.stacks)
            sizes.append(listing.size)
            tarballs.append(self._relative(listing.tarball, spec, configuration))

        for release, spec, listing in self._listings():
            if (release, spec) not in index_listings:
                odd = deviating.get((release, spec))
                add(odd or self._page_of[release, self._package_of[spec]], spec, listing)
        for page, _, spec, listing in self._document_listings():
            if page is not None:
                add(page, spec, listing)

    def _listings(self) -> Iterator[tuple[int, int, _Listing]]:
        sets, tarballs = self._stack_sets, self._tarballs
        for release, spec, stacks, size, tarball in self._select(
            "SELECT release, spec, stacks, size, tarball FROM listings"
        ):
            yield release, spec, _Listing(sets[stacks], self._size(size), tarballs[tarball])

    def _document_listings(self) -> Iterator[tuple[int | None, int | None, int, _Listing]]:
        for page, mirror, spec, stacks, size, tarball in self._select(
            "SELECT page, mirror, spec, stacks, size, tarball FROM document_listings ORDER BY id"
        ):
            listing = _Listing(self._stack_sets[stacks], self._size(size), self._tarballs[tarball])
            yield page, mirror, spec, listing

    def _relative(self, tarball: int, spec: int, configuration: int) -> int:
        """Return the number of a tarball, relative to its document's configuration of the spec."""
        if not tarball or configuration == self._of[spec]:
            return tarball
        texts = self._texts
        dag_hash = texts.hashes.things[self._specs[spec] - 1]
        spec_configuration = texts.configurations.things[self._of[spec] - 1]
        url = tarball_url(texts.tarballs.things[tarball - 1], spec_configuration, dag_hash)
        return texts.tarballs[self._parts.split(url, configuration, dag_hash)]

    def _read_packages(self) -> None:
        for (data,) in self._select("SELECT data FROM package_rests ORDER BY id"):
            text = zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_PACKAGES)
            for facts in _PACKAGES.decode(text):
                location = f"{self._location}/{facts.path}"
                self._writer.columns.packages.append(replace(facts, location=location))


def _set(text: str) -> list[str]:
    return text.split(",") if text else []
