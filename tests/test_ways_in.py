"""Files, texts and bytes of others come into the package through its bounded readers
alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import peak_memory
from tests.paths import ROOT

LIBRARIES = "yaml|json|marshal|pickle|sqlite3|tarfile|zipfile|gzip|bz2|lzma|zlib|zstandard|httpx"
READING = re.compile(
    r"\b(?:os\.(?:open|fdopen|read|pread)|io\.(?:open|FileIO)|mmap\.\w+|sys\.stdin|fileinput\.\w+"
    r"|yaml\.(?:\w*load\w*|parse|scan|compose\w*|\w*Loader)|(?:json|marshal|pickle)\.load\b"
    r"|(?:marshal|pickle)\.loads|pickle\.Unpickler|shelve\.\w+|sqlite3\.connect|tomllib\.\w+"
    r"|msgspec\.(?:yaml|toml)|configparser\.\w+|csv\.(?:reader|DictReader)|xml\.\w+"
    r"|numpy\.(?:load\w*|genfromtxt|fromfile|memmap)|tarfile\.(?:open|TarFile)|zipfile\.ZipFile"
    r"|shutil\.unpack_archive|(?:gzip|bz2|lzma)\.\w+|zlib\.decompress\w*"
    r"|zstandard\.(?:decompress|open|ZstdDecompressor)|socket\.create_\w+"
    r"|httpx\.(?:\w*Client|get|stream|request)|urllib\.request\.urlopen)"
    r"|(?<![\w.])open(?=\()|\.(?:open|read_text|read_bytes|decompress|decompressobj|fromfile)(?=\()"
    rf"|import (?:{LIBRARIES}) as \w+|from (?:{LIBRARIES}) import (?!JSONDecodeError).*"
)
"""Whatever reads a file, a stream or the network, makes values of YAML, or unpacks
bytes.

What reads a text or bytes that are in memory and does not make much more of them, such
as `json.loads`, is not among them. Libraries are imported under their own names, so
that they are found.
"""

WAYS_IN = {
    # The bounded readers: of files, YAML, archives, compressed indexes, and the
    # network.
    "bounded_files": "os.open os.read",
    "bounded_yaml": "yaml.CSafeLoader yaml.SafeLoader yaml.composer",
    "sources.archives": ".open gzip.GzipFile tarfile.open zipfile.ZipFile "
    "zstandard.ZstdDecompressor",
    "sources.indexes.manifests": ".decompress .decompressobj zlib.decompressobj "
    "zstandard.ZstdDecompressor",
    "sources.fetch.web": "httpx.AsyncClient",
    # Standard input, at most as many bytes as a file may have.
    "cli.environments": "sys.stdin",
    # The null device, for a standard stream that is closed.
    "cli.main": "open",
    # It writes XML, and reads none.
    "cli.junit": "xml.etree",
    # Databases, whose header and statements are checked before anything is read from
    # them.
    "sqlite_connection": "sqlite3.connect",
    # Package data in such a database: at most as many bytes as package data may have.
    "schema.older": ".decompress zstandard.ZstdDecompressor",
    "sources.databases": ".decompress zstandard.ZstdDecompressor",
    # A file that stays empty: only its lock is used.
    "assembly.output_lock": "os.open",
    # Folders, to lock them, and files that were just written, to flush them to disk.
    "output_folders": "os.open",
    # What this program has just written, or sends as it is.
    # It also reads the descriptions of tables in this package.
    "assembly.file": ".read_text sqlite3.connect tomllib.loads",
    "site.http.download": ".open os.pread",
    "site.sql.authorizer": "sqlite3.connect",
    "site.sql.limits": "sqlite3.connect",
    "sources.fetch.package_site": "tarfile.open",
    "sources.fetch.stack_folder": ".open",
    # Files of this package, and of the system.
    "assembly.unchanged": ".read_bytes",
    "cli.serve": "socket.create_server",
    "serve.datasette_app": "sqlite3.connect",
    # It also asks SQLite in memory for its limits.
    "serve.metadata": ".read_text sqlite3.connect",
    # Memory that processes share, of a fixed size.
    "serve.metrics": "mmap.mmap",
    # The same, and whether it is a terminal.
    "serve.server": "mmap.mmap sys.stdin",
    "serve.served": "mmap.mmap",
    "query.words.vocabulary": ".read_text tomllib.loads",
    "site.folder": ".read_bytes",
    "site.metadata": ".read_text",
    # `Surroundings.open`, a function that is given a bounded reader.
    "environments.reading": ".open",
    "environments.reuse": ".open",
    "environments.includes": ".open",
    "environments.manifest": ".open",
}
"""What each module reads with, sorted.

To add an entry, say above it why a stranger's input cannot take more memory or time
there than it may. Whoever can uses `bounded_files` and `bounded_yaml` instead.
"""


def ways_in() -> Iterator[tuple[str, str]]:
    """Yield each module of the package and of the plugins that reads something, with
    the ways.
    """
    for folder in (ROOT / "builder" / "spack_cache_db", ROOT / "plugins"):
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            text = path.read_text(encoding="utf-8")
            if found := sorted({match[0] for match in READING.finditer(text)}):
                yield name.removesuffix(".__init__"), " ".join(found)


def test_there_is_no_other_way_in() -> None:
    """Modules read files, YAML, archives, databases and the network only as it is
    listed here.
    """
    assert dict(ways_in()) == WAYS_IN


DOUBLING = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 25))]
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("mirrors: {m: *a24}", ("fetch", "-o", "{folder}/out", "--mirrors")),
        (
            "databases: {spack-cache: {title: *a24}}",
            ("serve", "{samples_file}", "--metadata"),
        ),
        ("spack: {specs: [*a24]}", ("cover", "{path}", "{samples_file}")),
        (
            "spack: {packages: {all: {require: *a24}}}",
            ("cover", "{path}", "{samples_file}"),
        ),
        ("spec: *a24", ("build", "-o", "{folder}/x.db", "{path}")),
        ("---", ("build", "-o", "{folder}/x.db", "{path}")),
    ],
)
def test_aliases_that_double_take_no_memory(
    text: str, arguments: tuple[str, ...], samples_file: Path, tmp_path: Path
) -> None:
    """A kilobyte of YAML that stands for 50 million values is refused by every
    command.
    """
    path = tmp_path / "doubling.yaml"
    if text == "---":
        path.write_text(f"---\n{DOUBLING}\n---\n")
    else:
        path.write_text(f"{DOUBLING}\n{text}\n")
    places = {"folder": tmp_path, "samples_file": samples_file, "path": path}
    words = [argument.format(**places) for argument in arguments]
    status, megabytes, output = peak_memory(
        *words, *([] if str(path) in words else [path])
    )

    assert status in (1, 2)
    assert "aliases" in output
    assert "Traceback" not in output
    assert megabytes < 120
