"""The answer to a search, as the records that its page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.site.filters import Narrowing, Pagination, Pairs
from spack_cache_db.site.pages.configurations import ConfigurationRow
from spack_cache_db.site.pages.package_rows import Packages
from spack_cache_db.site.pages.proposed import ProposedBuild
from spack_cache_db.site.pages.search_facets import Facet
from spack_cache_db.site.pages.search_tokens import Token
from spack_cache_db.site.search_words import (
    OF_ANY_PACKAGE,
    PHRASES,
    packages_heading,
    phrases_of,
    phrases_of_names,
)
from spack_cache_db.site.words import Vocabulary


class Elsewhere(NamedTuple):
    """The path and the query string of another page to which a search leads."""

    path: str
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class FoundConfigurations:
    """One page of the configurations that satisfy a spec, and the build that it
    proposes.
    """

    count: int
    rows: tuple[ConfigurationRow, ...]
    common_variants: tuple[str, ...]
    window: Pagination
    facets: tuple[Facet, ...]
    proposed: ProposedBuild | None

    @property
    def install(self) -> Commands | None:
        """The commands that install or load the proposed build."""
        return None if self.proposed is None else self.proposed.commands


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The answer to a search: configurations, or packages, or the reason for neither.

    Attributes:
        narrowing: the names that narrow the answer, with those among the words.
        reading: the meaning of plain words.
        spec: the spec that is answered, in Spack's order.
        compiler: a spec of the binaries that the package of the search compiled.
        answer: the configurations, also if there are none; None for packages.
        error: why the text is not a spec, or why the database cannot answer it.
        why: why no configuration satisfies the spec.
        notes: how the text was read, and what the database does not know.
        packages: the packages that words name or describe, or those whose binaries
            satisfy a spec without a package.
        facets: what narrows these.
        row: the package of a spec with its processors.
        is_of_compiler: whether a compiler without binaries of its own is read as the
            compiler of other packages.
        tokens: what was understood, in parts that can be removed.
    """

    narrowing: Narrowing
    reading: Reading | None = None
    spec: str = ""
    compiler: str | None = None
    answer: FoundConfigurations | None = None
    error: str | None = None
    why: WhyNot | None = None
    notes: tuple[str, ...] = ()
    packages: Packages | None = None
    facets: tuple[Facet, ...] = ()
    row: Packages | None = None
    is_of_compiler: bool = False
    tokens: tuple[Token, ...] = ()

    @property
    def has_words(self) -> bool:
        """Whether words are searched for, of which no spec tells."""
        return self.reading is not None and bool(self.reading.words)

    @property
    def is_of_spec(self) -> bool:
        """Whether the answer is that of a spec, so that it has rows and a feed."""
        has_answer = self.answer is not None or bool(self.spec)
        return has_answer and not self.has_words

    @property
    def title(self) -> str:
        """The spec, as a heading."""
        return "any package" if self.spec in ("", "*") else self.spec

    @property
    def place(self) -> str:
        """What the answer is limited to beside its spec, such as ` for zen3`.

        Of packages without a spec in common, also their systems and compilers.
        """
        if self.answer is not None:
            return self.names
        labels = tuple(PHRASES) if self.spec else OF_ANY_PACKAGE
        return phrases_of(self.tokens, labels)

    @property
    def names(self) -> str:
        """The names that narrow the answer, such as ` on zen3 in e4s in develop`."""
        return phrases_of_names(self.narrowing)

    @property
    def facet_names(self) -> str:
        """What narrows the answer, such as `package, system, target`."""
        facets = self.facets if self.answer is None else self.answer.facets
        return ", ".join(facet.label.lower() for facet in facets)

    @property
    def unknown(self) -> str:
        """The words that no package matches; empty if there are none."""
        return "" if self.packages is None else self.packages.words

    @property
    def other_spec(self) -> str:
        """The spec that words are, if the answer is the packages that they name."""
        reading = self.reading
        if self.spec or reading is None or not reading.package:
            return ""
        return "" if reading.spec == reading.package else reading.spec

    @property
    def has_no_way_out(self) -> bool:
        """Whether nothing satisfies a spec, and its reasons name no other search."""
        if self.answer is None or self.answer.rows:
            return False
        why = self.why
        if why is None:
            return True
        return not (why.corrected or why.named or why.close or why.without)

    @property
    def is_nothing(self) -> bool:
        """Whether words have no answer at all."""
        is_empty = self.answer is None and not self.packages and self.why is None
        return is_empty and (self.packages is not None or self.error is not None)

    @property
    def to_build(self) -> str:
        """The command that builds the first package that has no binary as asked."""
        rows = self.packages.rows if self.packages is not None else ()
        machines = [token.text for token in self.tokens if token.label == "machine"]
        for row in rows:
            if row.spec_count == 0:
                # A family of targets (`any aarch64`) is no target to build for.
                is_target = bool(machines) and " " not in machines[0]
                target = f" target={machines[0]}" if is_target else ""
                return f"spack install {row.name}{target}"
        return ""

    def heading(self, vocabulary: Vocabulary) -> str:
        """Return how many packages have a binary, as the heading of the answer."""
        assert self.packages is not None
        count = self.packages.count
        return packages_heading(count, self.packages.asked, self.place, vocabulary)
