"""The answer for an environment, as the page `/cover` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from urllib.parse import urlencode

from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.answers.toolchains import Toolchain
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.site.filters import Narrowing
from spack_cache_db.site.pages.package_commands import Tab
from spack_cache_db.site.pages.toolchain_table import ToolchainTable, reason_id
from spack_cache_db.site.words import Vocabulary


@dataclass(frozen=True, slots=True)
class LackingSpec:
    """A spec without a usable binary, and what a reader can do.

    Attributes:
        spec: the answer for it.
        id: its id on the page.
        build: the command that builds it; empty if no package has its name.
        feed: the address of the feed that tells when it has a binary; empty for a node
            of a lockfile, and for a text that is not a spec.
        has_same_reason: whether the spec before it has the same reason.
    """

    spec: CoveredSpec
    id: str
    build: str
    feed: str
    has_same_reason: bool

    @property
    def is_unanswerable(self) -> bool:
        """Whether the text is no spec, or the database cannot answer the spec."""
        return self.spec.status == "unanswerable"


@dataclass(frozen=True, slots=True)
class EnvironmentPage:
    """The answer for an environment.

    Attributes:
        cover: the answer for all binaries.
        installed: the answer for the binaries that the commands install.
        toolchain: the toolchain of these binaries; None if toolchains are mixed.
        table: the specs by toolchain; None if toolchains are mixed.
        commands: the commands that install them; None for none.
        tabs: their forms; empty if they have only one.
        narrowing: the filters of the page.
    """

    cover: Cover
    installed: Cover
    toolchain: Toolchain | None
    table: ToolchainTable | None
    commands: Commands | None
    tabs: tuple[Tab, ...]
    narrowing: Narrowing

    @property
    def heading(self) -> str:
        """How many specs have a binary."""
        if self.table is None:
            return self.cover.share
        return self.table.heading(self.cover.share)

    @property
    def summary(self) -> str:
        """The numbers of other statuses and of groups; empty if the heading has all."""
        if not self.cover.groups and self.cover.sentence == self.cover.share:
            return ""
        return "; ".join((self.cover.sentence, *self.cover.groups))

    @property
    def totals(self) -> tuple[str, ...]:
        """The totals of builds and downloads, if Spack installs with the commands."""
        return self.installed.totals

    @property
    def percent(self) -> float:
        """The share of the specs that have a binary, as the width of a bar."""
        return round(100 * self.cover.available / (self.cover.total or 1), 1)

    @property
    def having(self) -> tuple[CoveredSpec, ...]:
        """The specs that the commands install, that are installed, or external."""
        return tuple(spec for spec in self.installed.specs if spec.is_met)

    @property
    def lacking(self) -> tuple[LackingSpec, ...]:
        """The specs that no toolchain has."""
        return tuple(lacking_specs(self.cover, self.narrowing))

    def having_heading(self, words: Vocabulary) -> str:
        """Return the heading of `having`, such as `9 with a binary`."""
        has_installed = self.cover.counted("installed") > 0
        return words.having_heading(len(self.having), has_installed)

    def lacking_heading(self, words: Vocabulary) -> str:
        """Return the heading of `lacking`, such as `3 without a binary`."""
        specs = [lacking.spec for lacking in self.lacking]
        has_binary = not self.cover.is_lock and any(spec.hash for spec in specs)
        has_unusable = has_binary or self.cover.counted("incomplete") > 0
        return words.lacking_heading(len(specs), has_unusable)

    def install_heading(self, words: Vocabulary) -> str:
        """Return the heading of the commands, such as `Install these 9`."""
        return words.install_heading(self.installed.available)


def lacking_specs(cover: Cover, narrowing: Narrowing) -> Iterable[LackingSpec]:
    """Yield the specs of an environment that have no usable binary."""
    before: object = None
    for number, spec in enumerate(cover.specs):
        if spec.is_met:
            continue
        reason = (spec.reasons, spec.corrected, spec.hash, spec.configuration)
        is_spec = bool(spec.query) and spec.status != "unanswerable"
        yield LackingSpec(
            spec=spec,
            id=reason_id(number),
            build=build_command(spec),
            feed=feed_of(spec, narrowing) if is_spec else "",
            has_same_reason=bool(spec.reasons) and reason == before,
        )
        before = reason


def build_command(spec: CoveredSpec) -> str:
    """Return the command that builds a spec; empty if no package has its name, and for
    a node of a lockfile.
    """
    known = None if spec.why is None else spec.why.known
    if not spec.query or (known is not None and known.kind == "unknown"):
        return ""
    return f"spack install {quote(spec.query)}"


def feed_of(spec: CoveredSpec, narrowing: Narrowing) -> str:
    """Return the address of the feed of a spec, in the same stack and for the same
    machine.
    """
    fields = {"q": spec.query, "host": narrowing.host, "stack": narrowing.stack}
    filled = {name: value for name, value in fields.items() if value}
    return f"/find.atom?{urlencode(filled)}"
