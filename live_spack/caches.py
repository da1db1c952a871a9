"""Build caches of every kind, which Spack itself fills with binaries of fake builds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from live_spack.spack import Clones, Instance, LiveSpackError, write_yaml

ROOTS = ("hdf5~mpi ^zlib-ng+opt", "c-blosc", "libxml2", "libpng")
"""Specs that bring some ten packages."""
UNUSUAL = "hdf5~mpi+hl ^zlib-ng~opt"
"""Spack chooses neither of the two by itself: if it does, it reuses a binary."""
SITE_ZLIB = "zlib-ng@2.2.4"
"""An external against which one hdf5 is built."""
KEY = ("live", "live@example.org")
"""Name and address of the key that signs binaries."""
PACKAGE_ONLY = ("--only", "package")
DEPENDENCIES_ONLY = ("--only", "dependencies")


@dataclass(frozen=True, slots=True)
class Mirror:
    """One mirror.

    Attributes:
        release: its name in databases.
        url: what `spack mirror add` needs.
        folder: where it is; None in a registry.
        is_signed: whether all its binaries are signed.
    """

    release: str
    url: str
    folder: Path | None
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Cache:
    """Mirrors from which one database is built.

    Attributes:
        name: what is special about them.
        mirrors: at least one.
        asked: the binaries that are looked for, as hdf5/HASH; their names are unique in
            the cache.
        lost: the same, for binaries that a mirror had when its history began.
    """

    name: str
    mirrors: tuple[Mirror, ...]
    asked: tuple[str, ...]
    lost: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """The folder of all its mirrors, <cache>/<release>/<stack>; None in a
        registry.
        """
        folder = self.mirrors[0].folder
        if folder is None:
            return None
        return folder.parent.parent


class Maker:
    """Fills mirrors from one instance of Spack, in which everything is installed
    once.
    """

    def __init__(self, clones: Clones, folder: Path, certificate: Path | None) -> None:
        """Install all packages.

        Args:
            clones: the Spack to run.
            folder: where everything is written.
            certificate: that of the registry, if there is one.

        Raises:
            LiveSpackError: Spack cannot install them.
        """
        self.site_zlib = folder / "site" / "zlib"
        """Prefix of the external zlib-ng, an empty folder."""
        self._clones = clones
        self._folder = folder
        self._certificate = certificate
        self._instance_count = 0
        self.site_zlib.mkdir(parents=True)

        self._spack = self._new_instance(like=None)
        self._spack.checked("gpg", "create", *KEY)

        # Three times hdf5, each with another hash: as Spack chooses it, as it does not,
        # and against an external of the site.
        self._specs = self._installed(*ROOTS)
        self.hdf5 = self._specs["hdf5"]
        self.unusual_hdf5 = self._installed(UNUSUAL)["hdf5"]
        scope = folder / "site" / "settings"
        write_yaml(scope / "packages.yaml", {"packages": site_packages(self.site_zlib)})
        with_scope = ("-C", str(scope))
        against_external = self._installed("hdf5~mpi", options=with_scope)
        self.external_hdf5 = against_external["hdf5"]

    def _installed(self, *specs: str, options: Sequence[str] = ()) -> dict[str, str]:
        """Install specs, and return name/hash of each new binary by its name."""
        before = self._spack.installed()
        self._spack.checked(*options, "install", "--fresh", "--fake", *specs)
        added = {}
        for dag_hash, name in self._spack.installed().items():
            if dag_hash not in before:
                added[name] = f"{name}/{dag_hash}"
        if "hdf5" not in added:
            raise LiveSpackError(
                f"Spack took an hdf5 that was installed for {' '.join(specs)}"
            )
        return added

    @contextmanager
    def fresh(self) -> Iterator[Instance]:
        """Give a new instance, which is deleted afterwards."""
        instance = self._new_instance(like=self._spack)
        try:
            yield instance
        finally:
            instance.close()

    def close(self) -> None:
        """End what the first instance has started."""
        self._spack.close()

    def _new_instance(self, like: Instance | None) -> Instance:
        self._instance_count += 1
        folder = self._folder / f"spack-{self._instance_count}"
        return Instance(self._clones, folder, certificate=self._certificate, like=like)

    def caches(self) -> Iterator[Cache]:
        """Push to mirrors of every kind, and yield them as caches."""
        yield self._signed()
        yield self._unsigned()
        yield self._partial()
        yield self._gap()
        yield self._split()
        yield self._split_and_signed()
        yield self._mixed()
        yield self.external()
        yield self._pruned()

    def _signed(self) -> Cache:
        """A mirror of signed binaries."""
        specs = list(self._specs.values())
        mirror = self._mirror("signed", "signed", "--signed", specs)
        return Cache("signed", (mirror,), (self.hdf5, self._specs["c-blosc"]))

    def _unsigned(self) -> Cache:
        """The same binaries without signatures."""
        specs = list(self._specs.values())
        mirror = self._mirror("unsigned", "unsigned", "--unsigned", specs)
        return Cache("unsigned", (mirror,), (self.hdf5, self._specs["c-blosc"]))

    def _partial(self) -> Cache:
        """A binary without its dependencies."""
        mirror = self._mirror(
            "partial", "partial", "--unsigned", [self.hdf5], PACKAGE_ONLY
        )
        return Cache("partial", (mirror,), (self.hdf5,))

    def _gap(self) -> Cache:
        """A binary with all of its dependencies but one."""
        mirror = self._mirror("gap", "gap", "--unsigned", [self.hdf5])
        # It loses the binary at once, so that no history has it.
        cache = Cache("gap", (mirror,), (self.hdf5,), lost=(self._specs["zlib-ng"],))
        self.lose(cache)
        return replace(cache, lost=())

    def _split(self) -> Cache:
        """A binary in one mirror, and its dependencies in the other."""
        package = self._mirror(
            "split", "split-a", "--unsigned", [self.hdf5], PACKAGE_ONLY
        )
        rest = self._mirror(
            "split", "split-b", "--unsigned", [self.hdf5], DEPENDENCIES_ONLY
        )
        return Cache("split", (package, rest), (self.hdf5, self._specs["zlib-ng"]))

    def _split_and_signed(self) -> Cache:
        """The same, and only one of the two mirrors is signed."""
        name = "half-signed"
        package = self._mirror(name, "half-a", "--signed", [self.hdf5], PACKAGE_ONLY)
        rest = self._mirror(
            name, "half-b", "--unsigned", [self.hdf5], DEPENDENCIES_ONLY
        )
        return Cache(name, (package, rest), (self.hdf5,))

    def _mixed(self) -> Cache:
        """A mirror in which some binaries are signed."""
        libxml2 = self._specs["libxml2"]
        mirror = self._mirror("mixed", "mixed", "--unsigned", [libxml2])
        self._push(mirror, "--signed", [self._specs["libpng"]])
        return Cache("mixed", (mirror,), (libxml2, self._specs["libpng"]))

    def external(self) -> Cache:
        """A binary that was built against an external."""
        mirror = self._mirror(
            "external", "external", "--unsigned", [self.external_hdf5]
        )
        return Cache("external", (mirror,), (self.external_hdf5,))

    def _pruned(self) -> Cache:
        """A mirror that is going to lose a binary."""
        libpng = self._specs["libpng"]
        mirror = self._mirror("pruned", "pruned", "--unsigned", [self.hdf5, libpng])
        return Cache("pruned", (mirror,), (self.hdf5,), lost=(libpng,))

    def in_registry(self, host: str) -> Cache:
        """Push to an OCI registry."""
        mirror = Mirror("registry", f"oci://{host}/live/cache", None, is_signed=False)
        self._push(mirror, "--unsigned", [self.hdf5, self._specs["libxml2"]])
        return Cache("registry", (mirror,), (self.hdf5, self._specs["libxml2"]))

    def unusual(self) -> Cache:
        """A binary that Spack uses only if it reuses binaries."""
        mirror = self._mirror("unusual", "unusual", "--unsigned", [self.unusual_hdf5])
        return Cache("unusual", (mirror,), (self.unusual_hdf5,))

    def partial_unusual(self) -> Cache:
        """The same binary without its dependencies."""
        name = "unusual-partial"
        mirror = self._mirror(
            name, name, "--unsigned", [self.unusual_hdf5], PACKAGE_ONLY
        )
        return Cache(name, (mirror,), (self.unusual_hdf5,))

    def lose(self, cache: Cache) -> None:
        """Delete what a cache has lost, and write its index again."""
        # Only mirrors in folders lose something.
        for mirror in cache.mirrors:
            if mirror.folder is None:
                continue
            for spec in cache.lost:
                package, _, _ = spec.partition("/")
                shutil.rmtree(mirror.folder / "v3" / "manifests" / "spec" / package)
            self._spack.checked("buildcache", "update-index", mirror.url)

    def _mirror(
        self,
        cache: str,
        release: str,
        signing: str,
        specs: list[str],
        only: Sequence[str] = (),
    ) -> Mirror:
        """Push specs to a new mirror in a folder, and write its URL beside them."""
        folder = self._folder / "mirrors" / cache / release / "all"
        is_signed = signing == "--signed"
        mirror = Mirror(release, f"file://{folder}", folder, is_signed=is_signed)
        self._push(mirror, signing, specs, only)
        record = json.dumps({"url": mirror.url})
        (folder / "mirror.json").write_text(record, encoding="utf-8")
        return mirror

    def _push(
        self, mirror: Mirror, signing: str, specs: list[str], only: Sequence[str] = ()
    ) -> None:
        options = [signing, "--update-index", *only]
        self._spack.checked("buildcache", "push", *options, mirror.url, *specs)


def site_packages(prefix: Path) -> dict[str, object]:
    """Return the section `packages` of a site whose zlib-ng has a prefix."""
    declared = {"spec": SITE_ZLIB, "prefix": str(prefix)}
    return {"zlib-ng": {"externals": [declared], "buildable": False}}
