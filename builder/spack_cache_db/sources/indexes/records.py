"""What an index says, as frozen records; the versions of its format differ in optional keys.

Keys are those of Spack's `database.py` and `spec.py` from 0.13 (database 5) to 1.1 (database 8).
What many records repeat to the letter (architecture, parameters, …) stays undecoded: it is looked
at once for each text. A key that is not declared here is refused by the decoder.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType


class Database(Struct, frozen=True, forbid_unknown_fields=True):
    """The object under `database`; `installs` has a record for each hash."""

    version: str
    installs: Raw


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of an index."""

    database: Database


class EdgeParameters(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """How a dependency is used, since specfile 4."""

    deptypes: tuple[str, ...]
    virtuals: tuple[str, ...] = ()
    direct: bool | UnsetType = UNSET


class Dependency(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One edge of the graph: `type` up to specfile 3, since then `EdgeParameters`, undecoded."""

    name: str
    hash: str
    type: tuple[str, ...] | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET


class NamedDependency(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One edge in specfile 1, where dependencies are keyed by name."""

    hash: str
    type: tuple[str, ...]


class Compiler(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The one compiler that a node names, up to specfile 4."""

    name: str
    version: str


class BuildSpec(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The spec from which a spliced one was built."""

    name: str
    hash: str


class Annotations(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What specfile 5 keeps of an older node: its version, and its compiler (`gcc@=12.2.0`)."""

    original_specfile_version: int
    compiler: str | UnsetType = UNSET


class Node(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One node of the graph, in any specfile version but the first (see `NamedNode`)."""

    name: str
    version: str
    arch: Raw
    namespace: str
    parameters: Raw
    hash: str
    compiler: Compiler | UnsetType = UNSET
    patches: tuple[str, ...] | UnsetType = UNSET
    package_hash: str | UnsetType = UNSET
    full_hash: str | UnsetType = UNSET
    build_hash: str | UnsetType = UNSET
    dependencies: tuple[Dependency, ...] = ()
    external: Raw | UnsetType = UNSET
    build_spec: BuildSpec | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET


class NamedNode(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One node in specfile 1, where a node is keyed by its name."""

    version: str
    arch: Raw
    namespace: str
    parameters: Raw
    hash: str
    compiler: Compiler | UnsetType = UNSET
    patches: tuple[str, ...] | UnsetType = UNSET
    full_hash: str | UnsetType = UNSET
    build_hash: str | UnsetType = UNSET
    dependencies: dict[str, NamedDependency] = {}
    external: Raw | UnsetType = UNSET


class Record(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What an index says of one spec: `in_buildcache` in caches, the rest in installations."""

    spec: Raw
    ref_count: Annotated[int, Meta(ge=0, lt=2**31)] | UnsetType = UNSET
    in_buildcache: bool | UnsetType = UNSET
    path: str | UnsetType | None = UNSET
    installed: bool | UnsetType = UNSET
    explicit: bool | UnsetType = UNSET
    installation_time: int | float | UnsetType | None = UNSET
    deprecated_for: str | UnsetType | None = UNSET
    origin: str | UnsetType | None = UNSET


class TargetDescription(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A CPU target that is no family: its name, and what archspec knew of it."""

    name: str
    vendor: str
    features: tuple[str, ...]
    generation: int
    parents: tuple[str, ...]
    cpupart: str | UnsetType = UNSET


class Arch(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Platform, operating system and CPU target of a node."""

    platform: str
    platform_os: str
    target: str | TargetDescription
