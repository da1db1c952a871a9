"""Requirements and toolchains of a `spack.yaml`: what they ask of its specs.

The rules are those of Spack 1.1's `solver/requirements.py`: what stands under a package's name
takes the place of what stands under `all`; an `all` that asks for a variant holds for packages that
have it. Preferences (`prefer`, `version`, `target`, `compiler`, `variants`, `providers`) weigh less
than a binary that exists, so they take none away.

`toolchains:` are names for compilers, such as `%clang_gfortran`, in specs (`spec_parser.py`, and
the page "Toolchains"): what an entry asks holds where its `when:` does, and a toolchain takes the
place of the compiler of its name.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import yaml

from spack_cache_db.bounded_yaml import entries_of, fault_at, is_nothing, items_of, line_of, text_of
from spack_cache_db.environments import Alternative, UserSpec, Work, read_spec
from spack_cache_db.spack.constraints import SpecQuery, VariantConstraint, spec_text
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.versions import VersionRanges

ALL = "all"
PREFERENCES = ("prefer", "version", "target", "compiler", "variants", "providers")
MOST_ALTERNATIVES = 64
LONGEST_TOOLCHAIN = 1_000
"""Characters of a toolchain as a spec: each spec that names it becomes so much longer."""
T = TypeVar("T", bound=Hashable)
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
class Requirement:
    """One of `options` must hold where `when` does; `is_single`: and none of the others.

    `is_conflict`: none of the options may hold instead.
    """

    options: tuple[SpecQuery, ...]
    line: int
    when: SpecQuery | None = None
    is_single: bool = False
    is_conflict: bool = False


@dataclass(frozen=True, slots=True)
class Requirements:
    """All requirements, by the package under whose name they stand.

    `providers` are the packages that provide each virtual package, and `notes` say what else there
    is.
    """

    required: Mapping[str, tuple[Requirement, ...]]
    conflicts: Mapping[str, tuple[Requirement, ...]]
    externals: Mapping[str, tuple[SpecQuery, ...]]
    buildable: Mapping[str, bool]
    notes: tuple[str, ...] = ()
    providers: Mapping[str, Set[str]] = field(default_factory=dict)

    def external_of(self, query: SpecQuery, work: Work) -> tuple[str, bool]:
        """Return the external that satisfies a spec, if there is one; and if Spack may build it.

        What an external does not say, such as its variants, may be as the spec asks.
        """
        for each in self.externals.get(query.name or "", ()):
            work.join(query.text, each.text, line=0)
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

    def alternatives(self, query: SpecQuery, work: Work) -> tuple[Alternative, ...]:
        """Return the ways to satisfy a spec together with what is required of its package.

        Raises:
            UnsatisfiableSpec: there is none, or there are too many to look for.
            LineFault: the environment asks for too much in all.
        """
        found = [Alternative(query)]
        for kind in (self.required, self.conflicts):
            own = kind.get(query.name or "", ())
            for requirement in own or kind.get(ALL, ()):
                cases = _Cases(requirement, work, (query.name or ALL) if own else ALL)
                found = _few(case for each in found for case in cases.of(each))
                if not found:
                    said = f"the requirement on line {requirement.line} excludes it"
                    raise UnsatisfiableSpec(said)
        return tuple(found)

    def as_specs(self, work: Work) -> Iterator[UserSpec]:
        """Yield each way to satisfy what is required of a package, and each external, as a spec.

        What `all` requires is asked of every package, and is no spec of its own.

        Raises:
            LineFault: the requirements ask for too much in all.
        """
        for package, requirements in self.required.items():
            if package == ALL:
                continue
            line = requirements[0].line if requirements else 0
            start = UserSpec(package, line, group="require")
            try:
                ways = self.alternatives(SpecQuery(name=package), work)
            except UnsatisfiableSpec as error:
                yield replace(start, error=str(error))
                continue
            for each in ways:
                yield replace(start, text=spec_text(each.query), alternatives=(each,))
        for external in chain.from_iterable(self.externals.values()):
            yield UserSpec(external.text, 0, (Alternative(external),), group="externals")


NO_REQUIREMENTS = Requirements({}, {}, {}, {})


def read_requirements(node: yaml.Node, work: Work, parse: Parser = parse_query) -> Requirements:
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
        work.add(Work.JOIN, line_of(section))
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
    return Requirements(required, conflicts, externals, buildable, notes, providers)


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
            raise fault_at(each, f"expected one of {', '.join(_GROUPS)} here")
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


def _few(made: Iterable[T]) -> list[T]:
    """Return what is made, each once.

    Raises:
        UnsatisfiableSpec: it is more than `MOST_ALTERNATIVES`; no more are made.
    """
    found: dict[T, None] = {}
    for each in made:
        found[each] = None
        if len(found) > MOST_ALTERNATIVES:
            raise UnsatisfiableSpec(f"its requirements make more than {MOST_ALTERNATIVES} cases")
    return [*found]


class _Cases:
    """The ways to satisfy one requirement as well; `owner` is the package under which it stands."""

    def __init__(self, requirement: Requirement, work: Work, owner: str) -> None:
        self._requirement = requirement
        self._work = work
        self._owner = owner

    def of(self, start: Alternative) -> Iterator[Alternative]:
        """Yield the ways to satisfy what is asked already and the requirement."""
        requirement = self._requirement
        # Each new case is hashed, with all the specs that it excludes.
        self._work.add(2 * len(start.without), requirement.line)
        if requirement.is_conflict:
            yield from self._without_conflict(start)
            return
        if requirement.when is not None and not self._implies(start.query, requirement.when):
            yield replace(start, without=(*start.without, requirement.when))
        yield from self._with_option(start)
        if self._owner == ALL:
            yield from self._of_packages_without(start)

    def _without_conflict(self, start: Alternative) -> Iterator[Alternative]:
        (option,) = self._requirement.options
        conflict = self._both(option, self._requirement.when)
        if conflict is None or not self._implies(start.query, conflict):
            without = start.without if conflict is None else (*start.without, conflict)
            yield replace(start, without=without)

    def _with_option(self, start: Alternative) -> Iterator[Alternative]:
        """Yield what holds one of the options; of `one_of`, none of the others."""
        begun = self._both(start.query, self._requirement.when)
        if begun is None:
            return
        options = self._requirement.options
        both = ((place, self._both(begun, option)) for place, option in enumerate(options))
        possible = _few((place, query) for place, query in both if query is not None)
        for place, query in possible:
            is_single = self._requirement.is_single
            others = [options[other] for other, _ in possible if is_single and other != place]
            excluded = [each for each in others if self._both(query, each)]
            if not any(self._implies(query, each) for each in excluded):
                yield Alternative(query, (*start.without, *excluded))

    def _of_packages_without(self, start: Alternative) -> Iterator[Alternative]:
        """Yield packages that lack a variant of each option: the requirement is not theirs."""
        known = {each.name for each in start.query.variants}
        missing: list[frozenset[str]] = [frozenset()]
        for option in self._requirement.options:
            names = sorted({each.name for each in option.variants} - known)
            self._work.add(len(missing) * len(names), self._requirement.line)
            missing = _few(more for each in missing for more in _with_one_of(each, names))
        for lacking in missing:
            without = [VariantConstraint(name, (), "multi") for name in sorted(lacking)]
            unwanted = (SpecQuery(variants=(each,)) for each in without)
            yield replace(start, without=(*start.without, *unwanted))

    def _implies(self, query: SpecQuery, other: SpecQuery) -> bool:
        """Return whether a query implies another one, whatever the package's name."""
        self._work.compare(query.text, other.text, line=self._requirement.line)
        return implies(query, replace(other, name=None))

    def _both(self, first: SpecQuery, second: SpecQuery | None) -> SpecQuery | None:
        """Return what both ask, the first if there is no second; None if nothing can be both.

        What is required of a virtual package by another name is required of what provides it.
        """
        if second is None:
            return first
        if second.name is not None and first.name == self._owner:
            first = replace(first, name=None)
        self._work.join(first.text, second.text, line=self._requirement.line)
        try:
            return constrained(first, second)
        except UnsatisfiableSpec:
            return None


def _with_one_of(chosen: frozenset[str], names: list[str]) -> Iterable[frozenset[str]]:
    """Return the ways to have one of the names among those chosen; none if there are no names."""
    return [chosen] if chosen & {*names} else [chosen | {name} for name in names]


Toolchains = Mapping[str, SpecQuery]
"""What each toolchain asks of a package, by its name."""


def read_toolchains(node: yaml.Node, parse: Parser) -> Toolchains:
    """Return the toolchains of the section `toolchains`.

    Raises:
        LineFault: one of them is none, or contradicts itself.
    """
    return {
        name: _together(_parts(each, parse), each)
        for name, each in entries_of(node, "toolchains").items()
    }


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


def _both(first: str | None, second: SpecQuery) -> str:
    text = spec_text(second)
    return text if first is None else f"{first} {text}"


def _direct_query(node: yaml.Node, parse: Parser) -> SpecQuery:
    query = _query(node, parse)
    if not all(edge.direct for edge in query.dependencies):
        raise fault_at(
            node, f"{text_of(node, 'a spec')!r} has a '^', expected '%' alone in a toolchain"
        )
    return query


def _together(parts: Iterable[SpecQuery], node: yaml.Node) -> SpecQuery:
    found = SpecQuery()
    for each in parts:
        try:
            found = constrained(found, each)
        except UnsatisfiableSpec as error:
            raise fault_at(node, str(error)) from None
    if len(spec_text(found)) > LONGEST_TOOLCHAIN:
        raise fault_at(node, f"has more than {LONGEST_TOOLCHAIN:,} characters as one spec")
    return found


def parser_with(parse: Parser, toolchains: Toolchains) -> Parser:
    """Return what reads a spec and puts toolchains in the place of their names."""

    def parse_expanded(text: str) -> SpecQuery:
        try:
            found = _expanded(parse(text), toolchains)
        except UnsatisfiableSpec as error:
            raise QuerySyntaxError(text, 0, "a toolchain that fits", str(error)) from None
        return replace(found, text=spec_text(found))

    return parse_expanded if toolchains else parse


def _expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query in which no edge names a toolchain, and no edge below either."""
    named, kept = [], []
    for edge in query.dependencies:
        toolchain = toolchains.get(edge.node.name or "")
        if edge.direct and toolchain is not None:
            named.append(toolchain)
        else:
            kept.append(replace(edge, node=_expanded(edge.node, toolchains)))
    found = replace(query, dependencies=tuple(kept))
    for each in named:
        found = constrained(found, each)
    return found
