"""The sections `packages:` and `toolchains:` of a `spack.yaml`.

The entry of a package replaces that of `all` (Spack 1.2, `solver/requirements.py`). Preferences
(`prefer`, `version`, `target`, `compiler`, `variants`, `providers`) weigh less than a binary that
exists, so they exclude none. Which binaries satisfy the requirements is decided in `query/`.

A toolchain is a name for compilers, such as `%clang_gfortran`, in specs (`spec_parser.py`, and the
page "Toolchains" of Spack): each of its specs counts if its `when:` holds, and a toolchain replaces
the compiler of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    is_nothing,
    items_of,
    line_of,
    quoting_advice,
    text_of,
)
from spack_cache_db.environments import (
    ALL,
    NO_RULES,
    PackageRules,
    Requirement,
    UserSpec,
    read_spec,
    ways,
)
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.versions import VersionRanges

PREFERENCES = ("prefer", "version", "target", "compiler", "variants", "providers")
LONGEST_TOOLCHAIN = 1_000
"""Characters of a toolchain as a spec: each spec that names it becomes so much longer."""
_NAME = re.compile(r"[\w-]+")
_GROUPS = ("spec", "one_of", "any_of")

# Those of Spack's recipes of 2026, of what centres install themselves; an environment or a file
# may say more.
_PROVIDERS = {
    "blas": """
acfl amdblis armpl-gcc atlas blis cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
netlib-lapack nvhpc nvpl-blas openblas veclibfort
""",
    "lapack": """
acfl amdlibflame armpl-gcc atlas cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
libflame netlib-lapack nvhpc nvpl-lapack openblas veclibfort
""",
    "mpi": """
cray-mpich cray-mvapich2 fujitsu-mpi hpcx-mpi intel-mpi intel-oneapi-mpi mpich mpilander
mpitrampoline mpt msmpi mvapich mvapich-plus mvapich2 mvapich2-gdr mvapich2x nmad openmpi
parastationmpi spectrum-mpi
""",
    "scalapack": """
amdscalapack cray-libsci fujitsu-ssl2 intel-mkl intel-oneapi-mkl netlib-scalapack nvpl-scalapack
""",
}
PROVIDERS: Mapping[str, frozenset[str]] = {
    virtual: frozenset(packages.split()) for virtual, packages in _PROVIDERS.items()
}


@dataclass(frozen=True, slots=True)
class PackagesSection:
    """What the section `packages:` says.

    Attributes:
        rules: what it requires and excludes.
        externals: the externals of each package.
        buildable: which packages Spack may build.
        notes: what else it says, and is ignored.
        providers: the packages that provide each virtual package.
    """

    rules: PackageRules = NO_RULES
    externals: Mapping[str, tuple[SpecQuery, ...]] = field(default_factory=dict)
    buildable: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    providers: Mapping[str, Set[str]] = field(default_factory=dict)

    def external_of(self, query: SpecQuery) -> tuple[str, bool]:
        """Return the external that satisfies a spec, if there is one; and if Spack may build it.

        What an external does not say, such as its variants, may be as the spec asks.
        """
        for each in self.externals.get(query.name or "", ()):
            try:
                constrained(each, query)
            except UnsatisfiableSpec:
                continue
            return each.text, self._is_buildable(query.name)
        return "", self._is_buildable(query.name)

    def _is_buildable(self, name: str | None) -> bool:
        """Return whether Spack may build a package, by Spack 1.1's `is_spec_buildable`.

        Its own entry decides; else `all`, unless a virtual package that it provides says otherwise.
        """
        usual = self.buildable.get(ALL, True)
        provided = (virtual for virtual, packages in self.providers.items() if name in packages)
        if any(self.buildable.get(virtual, usual) != usual for virtual in provided):
            usual = not usual
        return self.buildable.get(name or "", usual)

    def as_specs(self) -> Iterator[UserSpec]:
        """Yield each way to satisfy what is required of a package, and each external, as a spec.

        What `all` requires is not a spec of its own: it counts for every package.
        """
        for package, requirements in self.rules.required.items():
            if package == ALL:
                continue
            start = UserSpec(package, requirements[0].line if requirements else 0, group="require")
            found = ways(SpecQuery(name=package, text=package), self.rules)
            for query in found:
                yield replace(start, text=spec_text(query), query=query, rules=self.rules)
            if not found:
                yield replace(start, error="what packages: requires of it contradicts itself")
        for external in chain.from_iterable(self.externals.values()):
            yield UserSpec(external.text, 0, external, group="externals")


def read_packages(node: yaml.Node, parse: Parser = parse_query) -> PackagesSection:
    """Return what the section `packages` requires.

    Raises:
        LineFault: a requirement cannot be read.
    """
    required: dict[str, tuple[Requirement, ...]] = {}
    conflicts: dict[str, tuple[Requirement, ...]] = {}
    preferred: set[str] = set()
    externals: dict[str, tuple[SpecQuery, ...]] = {}
    buildable: dict[str, bool] = {}
    providers = dict(PROVIDERS)
    for package, section in entries_of(node, "packages").items():
        # Each group of specs has the packages of all of them, and its own.
        said = entries_of(section, "what is said of the package")
        entries = {key: value for key, value in said.items() if not is_nothing(value)}
        preferred |= {each for each in PREFERENCES if each in entries}
        if "externals" in entries:
            externals[package] = tuple(_externals(entries["externals"], package, parse))
        if "buildable" in entries:
            is_built = text_of(entries["buildable"], "true or false").lower()
            buildable[package] = is_built not in ("false", "no", "off")
        if "require" in entries:
            required[package] = tuple(_required(entries["require"], parse))
        if "conflict" in entries:
            conflicts[package] = tuple(_conflicts(entries["conflict"], parse))
        if "providers" in entries:
            for virtual, names in _providers(entries["providers"]):
                providers[virtual] = providers.get(virtual, frozenset()) | names
    notes = tuple(_notes(preferred))
    rules = PackageRules(required, conflicts)
    return PackagesSection(rules, externals, buildable, notes, providers)


def _notes(preferred: set[str]) -> Iterator[str]:
    if preferred:
        keys = ", ".join(each for each in PREFERENCES if each in preferred)
        yield f"packages: {keys}: preferences exclude no binary and are ignored"


def _providers(node: yaml.Node) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the packages that provide each virtual package, by their names."""
    for virtual, specs in entries_of(node, "virtual packages").items():
        texts = (text_of(each, "a spec") for each in items_of(specs, "specs"))
        yield virtual, frozenset(name[0] for name in map(_NAME.match, texts) if name)


def _externals(node: yaml.Node, package: str, parse: Parser) -> Iterator[SpecQuery]:
    """Yield the externals of a package; a version that one names is its very version."""
    for each in items_of(node, "externals"):
        entries = entries_of(each, "an external")
        if "spec" not in entries:
            raise fault_at(each, "expected spec: here")
        query = _query(entries["spec"], parse)
        ranges = query.versions
        if ranges is not None and not set(ranges.text) & set(":,="):
            query = replace(query, versions=VersionRanges.parse(f"={ranges.text}"))
        yield replace(query, name=query.name or package)


def _required(node: yaml.Node, parse: Parser) -> Iterator[Requirement]:
    is_alone = isinstance(node, yaml.ScalarNode)
    for each in [node] if is_alone else items_of(node, "requirements"):
        if isinstance(each, yaml.ScalarNode):
            yield Requirement((_query(each, parse),), line_of(each))
            continue
        entries = entries_of(each, "a requirement")
        group = next((name for name in _GROUPS if name in entries), None)
        if group is None:
            expected = f"expected one of {', '.join(_GROUPS)} here"
            advice = "" if entries.keys() & {"message", "when"} else quoting_advice(each)
            raise fault_at(each, advice or expected)
        texts = [entries["spec"]] if group == "spec" else items_of(entries[group], "specs")
        yield Requirement(
            tuple(_query(text, parse) for text in texts),
            line_of(each),
            _query(entries["when"], parse) if "when" in entries else None,
            is_single=group == "one_of",
        )


def _conflicts(node: yaml.Node, parse: Parser) -> Iterator[Requirement]:
    for each in items_of(node, "conflicts"):
        spec, when = each, None
        if not isinstance(each, yaml.ScalarNode):
            entries = entries_of(each, "a conflict")
            if "spec" not in entries:
                raise fault_at(each, "expected spec: here")
            spec = entries["spec"]
            when = _query(entries["when"], parse) if "when" in entries else None
        yield Requirement((_query(spec, parse),), line_of(each), when, is_conflict=True)


def _query(node: yaml.Node, parse: Parser) -> SpecQuery:
    found = read_spec(text_of(node, "a spec"), line_of(node), parse=parse)
    if found.query is None:
        raise fault_at(node, f"{found.text!r} {found.error}")
    return found.query


Toolchains = Mapping[str, SpecQuery | LineFault]
"""What each toolchain asks of a package, by its name; a fault if it cannot be read."""


def read_toolchains(node: yaml.Node, parse: Parser) -> Toolchains:
    """Return the toolchains of the section `toolchains`.

    Raises:
        LineFault: the section is not a mapping.
    """
    found: dict[str, SpecQuery | LineFault] = {}
    for name, entry in entries_of(node, "toolchains").items():
        try:
            found[name] = _together(_parts(entry, parse), entry)
        except LineFault as fault:
            found[name] = fault
    return found


def _parts(node: yaml.Node, parse: Parser) -> Iterator[SpecQuery]:
    """Yield what each entry of a toolchain asks."""
    if isinstance(node, yaml.ScalarNode):
        yield _direct_query(node, parse)
        return
    for each in items_of(node, "specs"):
        entries = entries_of(each, "an entry of a toolchain")
        if "spec" not in entries:
            raise fault_at(each, "expected spec: here")
        query = _direct_query(entries["spec"], parse)
        if "when" in entries:
            when = _direct_query(entries["when"], parse)
            edges = (replace(edge, when=_both(edge.when, when)) for edge in query.dependencies)
            query = replace(query, dependencies=tuple(edges))
        yield query


def _both(first: SpecQuery | None, second: SpecQuery) -> SpecQuery:
    return second if first is None else constrained(first, second)


def _direct_query(node: yaml.Node, parse: Parser) -> SpecQuery:
    query = _query(node, parse)
    if not all(edge.direct for edge in query.dependencies):
        raise fault_at(
            node, f"{text_of(node, 'a spec')!r} has a '^', expected '%' alone in a toolchain"
        )
    return query


def _together(parts: Iterable[SpecQuery], node: yaml.Node) -> SpecQuery:
    try:
        found = reduce(constrained, parts, SpecQuery())
    except UnsatisfiableSpec as error:
        raise fault_at(node, str(error)) from None
    if len(spec_text(found)) > LONGEST_TOOLCHAIN:
        raise fault_at(node, f"has more than {LONGEST_TOOLCHAIN:,} characters as one spec")
    return found


def parser_with(parse: Parser, toolchains: Toolchains) -> Parser:
    """Return what reads a spec and puts toolchains in the place of their names."""

    def parse_expanded(text: str) -> SpecQuery:
        try:
            return expanded(parse(text), toolchains)
        except UnsatisfiableSpec as error:
            raise QuerySyntaxError(text, 0, "a toolchain that fits", str(error)) from None

    return parse_expanded if toolchains else parse


def expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query in which no edge names a toolchain (Spack 1.2, `expand_toolchains`).

    The edges of a toolchain that is named behind `%%` are propagated.

    Raises:
        UnsatisfiableSpec: a toolchain cannot be read, or contradicts the query.
    """
    found = _expanded(query, toolchains)
    return query if found == query else replace(found, text=spec_text(found))


def _expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    named, kept = [], []
    for edge in query.dependencies:
        toolchain = toolchains.get(edge.node.name or "") if edge.direct else None
        if toolchain is None:
            kept.append(replace(edge, node=_expanded(edge.node, toolchains)))
        elif isinstance(toolchain, LineFault):
            raise UnsatisfiableSpec(f"the toolchain {edge.node.name} cannot be read: {toolchain}")
        else:
            edges = [replace(each, propagate=True) for each in toolchain.dependencies]
            named.append(
                replace(toolchain, dependencies=tuple(edges)) if edge.propagate else toolchain
            )
    found = replace(query, dependencies=tuple(kept))
    for toolchain in named:
        found = constrained(found, toolchain)
    return found
