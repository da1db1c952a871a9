"""The files of a static export, and the links between them.

Each page of the site that is exported has a file: `/package/hdf5` is
`package/hdf5.html`. Pages link to each other by relative addresses, so that the folder
can be published under any address. What needs the database, such as a binary given by
its hash, leads to the first page, whose scripts answer it in the browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from spack_cache_db.site.settings import SiteSettings

HOME = "index.html"
"""The file of the first page, which also answers searches."""
ASSETS = "static"
"""The folder of style sheets and scripts."""
CHOICES = ("version", "host", "platform", "target", "compiler", "os", "variant", "use")
"""The fields that the script of a package's page reads from its address."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'"
)
"""The content security policy of pages; a static host sends no headers of its own."""
POLICY_OF_HOME = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'self'"
)
"""The first page also runs SQLite, and reads the database."""
LONGEST_NAME = 120
"""Characters of the name of a file without its ending; most systems allow 255 bytes."""
_UNSAFE = re.compile(r"[^a-z0-9._+-]|^[.-]|\.$")
"""Characters that are not the same in addresses, in Windows and in file systems without
capital letters.
"""
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""The names of devices in Windows."""


def file_of(path: str) -> str:
    """Return the file of a page, given by its path without percent signs.

    >>> file_of("/package/hdf5")
    'package/hdf5.html'
    >>> file_of("/package/HDF5")
    'package/~48~44~465.html'
    >>> file_of("/")
    'index.html'
    """
    if path == "/":
        return HOME
    # A name may contain a slash: `/release/team/nightly`.
    kind, slash, name = path.removeprefix("/").partition("/")
    if not slash:
        return f"{kind}.html"
    return f"{kind}/{safe_name(name)}.html"


def safe_name(name: str) -> str:
    """Return a name for a file; different names have different ones, also where capital
    letters do not count.
    """
    safe = _UNSAFE.sub(lambda match: _encoded(match[0]), name)
    if _RESERVED.match(safe):
        safe = f"{_encoded(safe[0])}{safe[1:]}"
    if len(safe) > LONGEST_NAME:
        digest = sha256(name.encode()).hexdigest()[:16]
        safe = f"{safe[:LONGEST_NAME]}~~{digest}"
    return safe


def _encoded(text: str) -> str:
    """Return a character as its bytes: `~48` for `H`; `~` itself is unsafe, too."""
    return "".join(f"~{byte:02x}" for byte in text.encode())


@dataclass(frozen=True, slots=True)
class StaticSettings(SiteSettings):
    """The settings of a static export.

    `base_url` is the relative address of its folder, such as `../`.

    Attributes:
        files: the files of the exported pages, by their paths on the site.
        copy: the name of the copy of the database.
        tables: the description of the tables as files; None without them.
        policy: the content security policy of the pages.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    copy: str = ""
    tables: str | None = None
    policy: str = POLICY

    @property
    def is_static(self) -> bool:
        """Pages are files."""
        return True

    @property
    def download(self) -> str:
        """The address of the copy of the database."""
        return self._relative(self.copy)

    @property
    def tables_path(self) -> str | None:
        """The address of the description of the tables."""
        return None if self.tables is None else self._relative(self.tables)

    def path(self, path: str) -> str | None:
        """Return the relative address of what a path of the site leads to; None if the
        export does not have it.

        Of the fields, only those are kept that its scripts read.
        """
        parts = urlsplit(path)
        fields = parse_qsl(parts.query)
        site_path = unquote(parts.path)
        kind, _, name = site_path.removeprefix("/").partition("/")
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if kind == ASSETS:
            return self._relative(site_path.removeprefix("/"))
        if kind == "find":
            kept = [(key, text) for key, text in fields if key in ("q", "host")]
            return self._relative(HOME, kept)
        if kind == "spec":
            return f"{self._relative(HOME)}#/binary/{name}"

        file = self.files.get(site_path)
        if file is None:
            return None
        if kind == "package":
            kept = [(key, text) for key, text in fields if key in CHOICES]
            return f"{self._relative(file, kept)}{fragment}"
        # Other pages with filters are not exported.
        return None if fields else f"{self._relative(file)}{fragment}"

    def database(self, _: str) -> str:
        """Return the address of SQL in the browser."""
        return f"{self._relative(HOME)}#/sql"

    def _relative(self, file: str, fields: Iterable[tuple[str, str]] = ()) -> str:
        query = urlencode(list(fields))
        return f"{self.base_url}{file}?{query}" if query else f"{self.base_url}{file}"
