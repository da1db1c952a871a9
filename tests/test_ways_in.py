"""Files, texts and bytes of others come into the package through its bounded readers alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import peak_memory

ROOT = Path(__file__).parents[1]

READING = re.compile(
    r"(?:builtins|io)\.open|io\.FileIO|io\.open_code|os\.(?:open|fdopen|read|pread)|mmap\..*"
    r"|\?\.(?:open|read_text|read_bytes|decompress|decompressobj|fromfile)"
    r"|sys\.stdin|click\.(?:File|open_file|get_(?:text|binary)_stream)|fileinput\..*|linecache\..*"
    r"|yaml\.(?:(?:.*_)?load(?:_all)?|parse|scan|compose(?:_all)?|C?(?:Base|Safe|Full|Unsafe)?Loader)"
    r"|yaml\.reader\..*|(?:json|marshal)\.load|(?:marshal|pickle)\.loads|pickle\.(?:load|Unpickler)"
    r"|shelve\..*|sqlite3\.connect|msgspec\.(?:yaml|toml)\..*|tomllib\..*|configparser\..*|plistlib\..*"
    r"|csv\.(?:reader|DictReader)|xml\..*|numpy\.(?:load|loadtxt|genfromtxt|fromfile|memmap)"
    r"|tarfile\.(?:open|TarFile)|zipfile\.ZipFile|shutil\.unpack_archive"
    r"|(?:gzip|bz2|lzma)\.(?:open|decompress|.*File)|zlib\.decompress.*"
    r"|zstandard\.(?:decompress|open|ZstdDecompressor)"
    r"|httpx\..*Client|httpx\.(?:get|stream|request)|urllib\.request\.urlopen|socket\.create_.*"
)
"""Whatever reads a file, a stream or the network, makes values of YAML, or unpacks bytes.

A method of something that is not a module has a question mark before it. What reads a text or bytes
that are in memory and does not make much more of them, such as `json.loads`, is not among them.
"""

WAYS_IN = {
    # The bounded readers: of files, YAML, archives, compressed indexes, and the network.
    "bounded_files": {"os.open", "os.read", "io.FileIO"},
    "bounded_yaml": {f"yaml.{c}{kind}Loader" for c in ("C", "") for kind in ("Base", "Safe")},
    "sources.archives": {
        "io.FileIO",
        "gzip.GzipFile",
        "tarfile.open",
        "tarfile.TarFile",
        "zipfile.ZipFile",
        "?.open",
        "zstandard.ZstdDecompressor",
    },
    "sources.indexes": {
        "zlib.decompressobj",
        "zstandard.ZstdDecompressor",
        "?.decompressobj",
        "?.decompress",
    },
    # It also writes what it downloads.
    "sources.fetch.web": {"httpx.AsyncClient", "io.FileIO", "?.open"},
    # Standard input, at most as many bytes as a file may have.
    "cli.cover": {"sys.stdin"},
    # Databases, whose header and statements are checked before anything is read from them.
    "database_file": {"sqlite3.connect"},
    # Package data in such a database: at most as many bytes as package data may have.
    "sources.databases": {"?.decompress", "zstandard.ZstdDecompressor"},
    "site.workers.worker": {"sqlite3.connect", "os.open", "pickle.loads", "sys.stdin"},
    # What this program has just written, or sends as it is.
    "build.publication": {"sqlite3.connect"},
    "build.sqlite_file": {"sqlite3.connect"},
    "build.workers": {"pickle.loads"},
    "site.download": {"?.open"},
    "site.workers.execute": {"sqlite3.connect"},
    "site.sandbox.statements": {"sqlite3.connect"},
    "sources.fetch.package_site": {"tarfile.open"},
    "sources.fetch.stack_folder": {"?.open"},
    # Files of this package, and of the system.
    "cli.serve": {"socket.create_server"},
    "cli.server": {"?.read_text", "os.open", "sys.stdin"},
    "query.words": {"?.read_text", "tomllib.loads"},
    "site.catalogues": {"?.read_bytes", "?.read_text"},
    # `Surroundings.open`, a function that is given a bounded reader.
    "environments.formats": {"?.open"},
    "environments.includes": {"?.open"},
    "environments.manifest": {"?.open"},
}
"""What each module reads with, as `ways_in` finds it.

To add an entry, say above it why a stranger's input cannot take more memory or time there than it
may. Whoever can uses `bounded_files` and `bounded_yaml` instead.
"""


class _Names(ast.NodeVisitor):
    """Collects the names of a module that are used, with the modules that they come from."""

    def __init__(self) -> None:
        self.imported: dict[str, str] = {}
        self.used: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            top = each.name.partition(".")[0]
            self.imported[each.asname or top] = each.name if each.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            self.imported[each.asname or each.name] = f"{node.module}.{each.name}"
            self.used.add(f"{node.module}.{each.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self.used.add(self._dotted(node))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.used.add(self.imported.get(node.id, f"builtins.{node.id}"))

    def visit_Call(self, node: ast.Call) -> None:
        # getattr(yaml, "CSafeLoader", …)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            owner, name = node.args[:2]
            if isinstance(name, ast.Constant):
                self.used.add(self._dotted(ast.Attribute(owner, str(name.value), ast.Load())))
        self.generic_visit(node)

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            owner = self._dotted(node.value)
            return f"{owner}.{node.attr}"
        return self.imported.get(node.id, "?") if isinstance(node, ast.Name) else "?"


def ways_in(source: str) -> set[str]:
    """Return what a module reads with."""
    names = _Names()
    names.visit(ast.parse(source))
    shortened = {re.sub(r"^\?.*\.", "?.", each) for each in names.used}
    return {each for each in shortened if READING.fullmatch(each)}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of each module of the package, and of the plugins."""
    for folder in (ROOT / "builder" / "spack_cache_db", ROOT / "plugins"):
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def test_there_is_no_other_way_in() -> None:
    """Modules read files, YAML, archives, databases and the network only as it is listed here."""
    found = {name: ways_in(path.read_text(encoding="utf-8")) for name, path in modules()}
    assert {name: ways for name, ways in found.items() if ways} == WAYS_IN


@pytest.mark.parametrize(
    ("source", "way"),
    [
        ("import yaml; yaml.safe_load(text)", "yaml.safe_load"),
        ("import yaml as y; y.load(text, y.CSafeLoader)", "yaml.CSafeLoader"),
        ("from yaml import safe_load as read; read(text)", "yaml.safe_load"),
        ("import yaml; loader = getattr(yaml, 'CSafeLoader', None)", "yaml.CSafeLoader"),
        ("with open(path) as file: ...", "builtins.open"),
        ("Path(name).read_bytes()", "?.read_bytes"),
        ("path.parent.open()", "?.open"),
        ("import json; json.load(file)", "json.load"),
        ("from sqlite3 import connect; connect(path)", "sqlite3.connect"),
        ("import gzip; gzip.open(path)", "gzip.open"),
        ("import zstandard as z; z.ZstdDecompressor()", "zstandard.ZstdDecompressor"),
        ("from tarfile import open as tar; tar(path)", "tarfile.open"),
        ("import numpy as np; np.fromfile(path)", "numpy.fromfile"),
        ("import httpx; httpx.get(url)", "httpx.get"),
        ("import xml.etree.ElementTree as tree; tree.parse(path)", "xml.etree.ElementTree.parse"),
        ("import sys; sys.stdin.read()", "sys.stdin"),
    ],
)
def test_every_way_is_seen(source: str, way: str) -> None:
    """However it is imported, what reads is found."""
    assert way in ways_in(source)


@pytest.mark.parametrize(
    "source", ["open: int", "self.open = 1", "json.loads(text)", "'open(path)'"]
)
def test_other_names_are_no_ways_in(source: str) -> None:
    """A field, an assignment or a text is not a reader."""
    assert ways_in(source) == set()


DOUBLING = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 25))]
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("mirrors: {m: *a24}", ("fetch", "-o", "{folder}/out", "--mirrors")),
        ("databases: {spack-cache: {title: *a24}}", ("serve", "{samples_file}", "--metadata")),
        ("spack: {specs: [*a24]}", ("cover", "{path}", "{samples_file}")),
        ("spack: {packages: {all: {require: *a24}}}", ("cover", "{path}", "{samples_file}")),
        ("spec: *a24", ("build", "-o", "{folder}/x.db", "{path}")),
        ("---", ("build", "-o", "{folder}/x.db", "{path}")),
    ],
)
def test_aliases_that_double_take_no_memory(
    text: str, arguments: tuple[str, ...], samples_file: Path, tmp_path: Path
) -> None:
    """A kilobyte of YAML that stands for 50 million values is refused by every command."""
    path = tmp_path / "doubling.yaml"
    path.write_text(f"{DOUBLING}\n{text}\n" if text != "---" else f"---\n{DOUBLING}\n---\n")
    places = {"folder": tmp_path, "samples_file": samples_file, "path": path}
    words = [each.format(**places) for each in arguments]

    status, megabytes, output = peak_memory(*words, *([] if str(path) in words else [path]))

    assert status in (1, 2)
    assert "aliases" in output
    assert "Traceback" not in output
    assert megabytes < 120
