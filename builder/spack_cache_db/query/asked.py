"""What a spec query asks of what a file shows of a spec.

What is asked of configurations is answered alike from every file. The rest can be answered where
the file has records of indexes, and in part from the one compiler that pages show.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from spack_cache_db.query.answerable import check_answerable, compiler_of_pages
from spack_cache_db.query.verdicts import Verdict
from spack_cache_db.spack.compilers import CompilerConstraint
from spack_cache_db.spack.constraints import SpecQuery, VariantConstraint
from spack_cache_db.spack.variants import PATCH_PRINTED
from spack_cache_db.spack.versions import VersionRanges


@dataclass(frozen=True, slots=True)
class Conditions:
    """An answerable query, one field per dimension; None or empty asks nothing.

    Attributes:
        specs: the specs that satisfy what is asked beyond configurations.
        beyond: what that is, as one types it.
        notes: what a user should know of the answer.
    """

    name: str | None
    versions: VersionRanges | None
    variants: tuple[VariantConstraint, ...]
    compilers: tuple[CompilerConstraint, ...]
    os: str | None
    platform: str | None
    target: str | None
    hash: str | None
    specs: Verdict | None = None
    beyond: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_of_specs(self) -> bool:
        """Whether the specs of one configuration may differ in the answer."""
        return self.hash is not None or self.specs is not None


@lru_cache(maxsize=1024)
def conditions(query: SpecQuery) -> Conditions:
    """Return what a query asks of each dimension of a page's specs.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
    """
    check_answerable(query)
    compilers = tuple(compiler_of_pages(edge) for edge in query.dependencies)
    return replace(of_configurations(query), compilers=compilers, notes=caveats(query))


def of_configurations(query: SpecQuery) -> Conditions:
    """Return what a query asks of configurations, and of the hash; see `asks_more` for the rest."""
    return Conditions(
        name=query.name,
        versions=query.versions,
        variants=tuple(each for each in query.variants if not each.propagate),
        compilers=(),
        os=query.os,
        platform=query.platform,
        target=query.target,
        hash=query.hash,
    )


def beyond_configurations(query: SpecQuery) -> SpecQuery:
    """Return what a query asks that configurations do not show, or do not show in full."""
    return SpecQuery(
        namespace=query.namespace,
        variants=tuple(
            each for each in query.variants if each.propagate or needs_whole_patches(each)
        ),
        flags=query.flags,
        dependencies=query.dependencies,
    )


def asks_more(query: SpecQuery) -> bool:
    """Return whether a query asks anything beyond configurations."""
    return beyond_configurations(query) != SpecQuery()


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether more is asked of patches than the characters of each that Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == "patches" and (constraint.exact or longest > PATCH_PRINTED)


def caveats(query: SpecQuery) -> tuple[str, ...]:
    """Return what a user should know of an answer from pages: how they read a compiler."""
    notes = []
    if query.dependencies:
        notes.append(
            "one compiler per binary is known, the one for C where C is used; "
            "compilers of other languages, and gcc or llvm used as a library, are not seen"
        )
    if any(edge.virtuals for edge in query.dependencies):
        notes.append(
            "nothing here says which languages a package uses: "
            "%c,cxx=… is answered as % with the compiler alone"
        )
    return tuple(notes)


def hash_matches(prefix: str | None, dag_hash: str) -> bool:
    """Return whether a hash begins as asked."""
    return prefix is None or dag_hash.startswith(prefix)
