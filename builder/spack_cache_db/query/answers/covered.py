"""The answers of `cover`: one for each spec of an environment or node of a lockfile,
and totals.

For example the spec `hdf5 +mpi` has the status `binary`, with the configuration and the
hash of this binary; `CoveredSpec` lists the statuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from spack_cache_db.errors import bytes_text, counted, first_of
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.answers.toolchains import (
    Toolchain,
    ToolchainCount,
    mixed_sentence,
    toolchain_counts,
)
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.closure import Closure

STATUSES = (
    "unanswerable",
    "none",
    "near",
    "incomplete",
    "unknown",
    "external",
    "binary",
    "installed",
)
"""The statuses of specs, in the order in which they are shown."""
OF_NODES = ("missing", "alike", "rebuilt")
"""The other statuses of nodes of a lockfile: they have no binary."""
LOST = "lost"
"""The status of what had a binary in the baseline. It is shown first, and is in no list
of statuses above, because it is counted only if there is a baseline.
"""
AVAILABLE = ("binary", "installed")
"""The statuses of what need not be built."""
TO_BUILD = ("near", "incomplete", LOST, *OF_NODES)
"""The statuses of specs and nodes that Spack builds from source. A spec with another
one, such as `none`, is not named as a package to build.
"""
MOST_TO_BUILD = 12
"""Maximum of packages to build that the totals name."""


@dataclass(frozen=True, slots=True)
class CoveredSpec:
    """The answer for one spec, or for one node of a lockfile.

    Each answer has a status. Of specs and nodes:

    - `installed`: an installed tree has it;
    - `binary`: a mirror has it, with all that it links or runs, as far as known;
    - `incomplete`: a mirror has it, but mirrors lack something that it links or runs;
    - `lost`: it was `binary` or `installed` in the baseline, which is an older
      database, and is neither now, nor `external`.

    Of specs also:

    - `external`: Spack must use an external, or only an installation's external
      satisfies it;
    - `near`: binaries satisfy it without one or two conditions; or a binary satisfies
      it, but Spack's solver does not reuse this binary, or its mirror has lost it;
    - `unknown`: binaries satisfy the conditions for which the database has data, or
      whether the solver reuses one depends on settings that are not known;
    - `none`: no binary satisfies it, even without two conditions;
    - `unanswerable`: the text is not a spec, or the database cannot answer it.

    Of nodes also:

    - `rebuilt`: a binary has the same configuration, and run-time dependencies of the
      same packages and versions, but another hash;
    - `alike`: binaries have the same configuration, but other run-time dependencies;
    - `missing`: no binary has the same configuration.

    Attributes:
        spec: the spec as in the environment, or the name and version of the node.
        status: one of these.
        line: its line, counted from 1; 0 if it is not from a text.
        query: the spec with the environment's requirements, as a query for `find`.
        configurations: the number of configurations that satisfy it.
        spec_count: the number of specs of these.
        configuration: the chosen one of these, or the nearest if there is none; for a
            node, its own.
        hash: the chosen spec that satisfies it, even if the solver does not reuse it;
            for a node, its own.
        why: why no binary satisfies it; None if one does, or the reason is unknown.
        reasons: `why` in sentences, or why it cannot be answered.
        corrected: the spec to type instead.
        group: its group of specs in the environment.
        external: the environment's external that satisfies it, or the path in an
            installation.
        release: the first release that has that spec, preferably an installed tree; for
            a node without a binary, the first release of the first of `others`.
        mirror: the URL of the mirror that has it; None if unknown or installed.
        is_root: whether a node is a root of the lockfile; None for a spec, which is not
            a node.
        others: the hashes of the first other binaries: current ones, or the most
            similar, first.
        other_count: the number of other binaries.
        differences: the differences between the node and the first of `others`.
        missing: what the binary links or runs and no mirror lists, each as
            `name@version/hash`.
        size: the size of the binary and all that it needs, in bytes; None if it is not
            known.
        closure: the binary and all that it needs; not part of the JSON.
        toolchains: those of all binaries that satisfy it; not part of the JSON.
    """

    spec: str
    status: str
    line: int = 0
    query: str = ""
    configurations: int = 0
    spec_count: int = 0
    configuration: Configuration | None = None
    hash: str | None = None
    why: WhyNot | None = None
    reasons: tuple[str, ...] = ()
    corrected: str | None = None
    group: str = ""
    external: str = ""
    release: str | None = None
    mirror: str | None = None
    is_root: bool | None = None
    others: tuple[str, ...] = ()
    other_count: int = 0
    differences: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    size: int | None = None
    closure: Closure | None = field(default=None, compare=False, repr=False)
    toolchains: frozenset[Toolchain] = field(
        default=frozenset(), compare=False, repr=False
    )

    @property
    def is_met(self) -> bool:
        """Whether a binary, an installed spec or an external satisfies the spec."""
        return self.status in (*AVAILABLE, "external")

    @property
    def title(self) -> str:
        """The spec, with the hash of a node, because nodes may share a name and a
        version.
        """
        is_node = self.is_root is not None
        return f"{self.spec}/{self.hash}" if is_node else self.spec

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints for it."""
        # `reasons` has the sentences of `why`.
        values = {}
        for attribute in fields(self):
            if attribute.name not in ("why", "closure", "toolchains"):
                values[attribute.name] = getattr(self, attribute.name)
        values["root"] = values.pop("is_root")
        for name in ("reasons", "others", "differences", "missing"):
            values[name] = list(values[name])
        # An empty text, and line 0, mean that there is none.
        for name in ("line", "query", "group", "external"):
            values[name] = values[name] or None
        if self.configuration is not None:
            values["configuration"] = self.configuration._asdict()
        return values


COLUMNS = tuple(CoveredSpec("", "").as_dict())
"""The columns of `cover --csv`, which are the same for all answers."""


@dataclass(frozen=True, slots=True)
class Download:
    """The download with which Spack installs all specs that have a binary.

    Attributes:
        packages: the number of binaries, with all that they need.
        size: the sum of their sizes in bytes; None if a size is not known.
    """

    packages: int
    size: int | None


@dataclass(frozen=True)
class Cover(NotebookTable):
    """The answers for all specs of an environment, in its order.

    In names and texts, the nodes of a lockfile are specs too.

    Attributes:
        specs: the answers; those for lockfiles that a `spack.yaml` includes come last.
        is_lock: whether the environment is a lockfile.
        notes: the parts of it that were ignored, with reasons.
        is_of_trees: whether the database has only installations, and no build cache.
        others: if the environment is a list of specs, its lines that are not specs.
        baseline: the older database that it is compared with; empty for none.
        download: what Spack downloads; None if the database lacks the dependencies.
        release: the id of the release whose mirror must have everything; None for any.
    """

    specs: tuple[CoveredSpec, ...]
    is_lock: bool
    notes: tuple[str, ...] = ()
    is_of_trees: bool = False
    others: tuple[str, ...] = ()
    baseline: str = ""
    download: Download | None = None
    release: int | None = None

    @property
    def binary(self) -> int:
        """The number of specs that have a binary and are not installed."""
        return self.counted("binary")

    @property
    def available(self) -> int:
        """The number of specs that are installed or have a binary."""
        return sum(self.counted(status) for status in AVAILABLE)

    @property
    def total(self) -> int:
        """The number of specs without externals."""
        return len(self.specs) - self.counted("external")

    def counted(self, status: str) -> int:
        """Return the number of specs with a status."""
        return sum(spec.status == status for spec in self.specs)

    @property
    def share(self) -> str:
        """How many specs are installed or have a binary, such as `41 of 44 specs have a
        binary`.
        """
        has = "has a binary"
        have = "have a binary"
        if self.is_of_trees:
            has = "is installed"
            have = "are installed"
        elif self.counted("installed"):
            has = f"is installed or {has}"
            have = f"are installed or {have}"
        is_singular = self.available == 1 or self.total == 1
        verb = has if is_singular else have
        text = f"{self.available:,} of {counted(self.total, 'spec')} {verb}"
        if self.baseline:
            text += f"; {self.counted(LOST):,} lost since {self.baseline}"
        return text

    @property
    def sentence(self) -> str:
        """`share` with the numbers of other statuses; for a lockfile with a percentage.

        For example `1 of 2 specs has a binary; 1 more binary lacks dependencies (50%)`.
        """
        text = self.share
        installed = self.counted("installed")
        if installed and not self.is_of_trees:
            text += f", {installed:,} of them installed"
        incomplete = self.counted("incomplete")
        if incomplete:
            more = "more binary lacks" if incomplete == 1 else "more binaries lack"
            text += f"; {incomplete:,} {more} dependencies"
        externals = self.counted("external")
        if externals:
            verb = "is" if externals == 1 else "are"
            text += f"; {externals:,} more {verb} external"
        if self.is_lock and self.total:
            text += f" ({self.available / self.total:.0%})"
        return text

    @property
    def statuses(self) -> str:
        """The number of specs by status, such as `none 4, binary 8`."""
        texts = []
        for status in (LOST, *OF_NODES, *STATUSES):
            count = self.counted(status)
            if count:
                texts.append(f"{status} {count}")
        return ", ".join(texts)

    @property
    def groups(self) -> tuple[str, ...]:
        """The totals of groups of specs, such as `compilers: 1 of 2`; none without
        several groups.
        """
        # Nodes of lockfiles have no group.
        specs = [spec for spec in self.specs if spec.is_root is None]
        names = dict.fromkeys(spec.group for spec in specs)
        if len(names) < 2:
            return ()
        texts = []
        for name in names:
            specs_of_group = tuple(spec for spec in specs if spec.group == name)
            group = Cover(specs_of_group, is_lock=False)
            title = name or "no group"
            texts.append(f"{title}: {group.available:,} of {group.total:,}")
        return tuple(texts)

    @property
    def to_build(self) -> tuple[str, ...]:
        """The packages that Spack builds from source, as far as they are known,
        sorted.
        """
        names = set()
        for spec in self.specs:
            if spec.status in TO_BUILD and spec.configuration is not None:
                names.add(spec.configuration.package)
            names.update(text.partition("@")[0] for text in spec.missing)
        return tuple(sorted(names))

    @cached_property
    def toolchains(self) -> tuple[ToolchainCount, ...]:
        """The toolchains with which specs have a binary, those of most specs first;
        none for a lockfile, which names its binaries.
        """
        toolchains_by_spec = [spec.toolchains for spec in self._with_binary]
        return toolchain_counts(toolchains_by_spec, self.chosen_toolchains)

    @property
    def chosen_toolchains(self) -> tuple[Toolchain, ...]:
        """The toolchains of the binaries that Spack takes for specs."""
        toolchains = []
        for spec in self._with_binary:
            if spec.configuration is not None:
                toolchains.append(Toolchain.of(spec.configuration))
        return tuple(toolchains)

    @property
    def _with_binary(self) -> tuple[CoveredSpec, ...]:
        """The specs that have a binary, without nodes of lockfiles."""
        return tuple(
            spec
            for spec in self.specs
            if spec.status == "binary" and spec.is_root is None
        )

    @property
    def mixed(self) -> str | None:
        """That the binaries mix compilers, and what one toolchain has alone; None if
        they do not.
        """
        toolchains = self.toolchains
        if not toolchains:
            return None
        # The toolchain of most specs.
        best = toolchains[0]
        return mixed_sentence(self.chosen_toolchains, best, self.total)

    @property
    def totals(self) -> tuple[str, ...]:
        """That binaries mix compilers; what Spack builds from source and what it
        downloads, if the database shows it.

        For example `to build from source: hdf5` and `to download: 14 packages, 212 MB`.
        """
        mixed = self.mixed
        texts = [] if mixed is None else [mixed]
        # If the dependencies are not known, neither is this: a binary may lack some.
        if self.download is None:
            return tuple(texts)
        names = self.to_build
        if names:
            texts.append(f"to build from source: {first_of(names, MOST_TO_BUILD)}")
        if self.download.packages:
            text = f"to download: {counted(self.download.packages, 'package')}"
            if self.download.size is not None:
                text += f", {bytes_text(self.download.size)}"
            texts.append(text)
        return tuple(texts)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints."""
        return {
            "specs": [spec.as_dict() for spec in self.specs],
            **self._counts(),
            "to_build": list(self.to_build),
            "toolchains": [toolchain.as_dict() for toolchain in self.toolchains],
            "mixed": self.mixed,
            "package_count": None if self.download is None else self.download.packages,
            "size": None if self.download is None else self.download.size,
            "notes": list(self.notes),
        }

    def _counts(self) -> dict[str, int]:
        """Return the number of specs by status, in the order of the JSON."""
        counts = {"binary": self.binary, "total": self.total}
        if self.is_lock:
            for status in ("rebuilt", "alike", "missing", "incomplete"):
                counts[status] = self.counted(status)
        else:
            for status in STATUSES:
                if status != "binary":
                    counts[status] = self.counted(status)
            # A `spack.yaml` may include a lockfile.
            for status in OF_NODES:
                count = self.counted(status)
                if count:
                    counts[status] = count
        if self.baseline:
            counts[LOST] = self.counted(LOST)
        return counts

    @property
    def rows(self) -> Rows:
        """The rows that `cover --csv` prints: the records of the JSON, with
        configurations as texts.
        """
        records = []
        for spec in self.specs:
            record = spec.as_dict()
            if spec.configuration is not None:
                record["configuration"] = spec.configuration.summary
            records.append(record)
        return Rows(COLUMNS, records)
