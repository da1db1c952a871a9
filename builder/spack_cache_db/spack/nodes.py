"""One package of a spec query: its name and all that constrains it, collected option by option.

Owns what each word asks of a package, and which may not be said twice. How packages follow each
other is in `query`. The rules are those of Spack 1.1's `Spec._add_flag` and `variant.py`.
"""

import re
from dataclasses import dataclass, field

from spack_cache_db.spack.constraints import Dependency, Flag, SpecQuery, VariantConstraint
from spack_cache_db.spack.lexer import QuerySyntaxError, Token
from spack_cache_db.spack.variants import FLAG_NAMES, UNSPLIT_NAMES, Kind
from spack_cache_db.spack.versions import VersionRanges

_ARCH_KEYS = {"os": "os", "operating_system": "os", "platform": "platform", "target": "target"}
_WHOLE_ARCH = frozenset({"arch", "architecture"})
_NO_VARIANTS = _WHOLE_ARCH | _ARCH_KEYS.keys() | {"namespace"}
# Spack 1.1 `variant.py`, RESERVED_NAMES: of these nothing can be asked of all dependencies.
_RESERVED = _NO_VARIANTS | {"patches"} | (UNSPLIT_NAMES - FLAG_NAMES)
_PAIR = re.compile(r"(?P<key>[a-zA-Z0-9_.\-]+)(?P<colon>:?)(?P<equals>==?)(?P<value>.*)", re.DOTALL)
_SIGIL = re.compile(r"(?P<sigil>[+~\-]{1,2})\s*(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pair:
    """The parts of a `name=value` word, the value without its quotes."""

    name: str
    value: str
    exact: bool
    propagate: bool


def _unquoted(raw: str) -> str:
    """Return a value without its quotes; a query escapes nothing but the quote itself."""
    if len(raw) >= 2 and raw[0] in "'\"" and raw[-1] == raw[0]:
        return raw[1:-1].replace("\\" + raw[0], raw[0])
    return raw


def read_pair(word: Token) -> Pair:
    """Split a word that the lexer calls a pair, or a `+x`, in its parts."""
    if word.kind == "flag" and (flag := _SIGIL.fullmatch(word.text)):
        value = str(flag["sigil"][0] == "+")
        return Pair(flag["name"], value, exact=True, propagate=len(flag["sigil"]) == 2)
    pair = _PAIR.fullmatch(word.text)
    if pair is None:
        raise ValueError(f"{word.text!r} is not a pair")
    value = _unquoted(pair["value"])
    return Pair(pair["key"], value, bool(pair["colon"]), pair["equals"] == "==")


def _constraint(pair: Pair, column: int) -> VariantConstraint:
    """Read the value of a variant as Spack's `VariantValue.from_string_or_bool` does."""
    values: tuple[str, ...] = (pair.value,)
    kind: Kind = "multi"
    exact = pair.exact
    if pair.value.upper() in ("TRUE", "FALSE"):
        values, kind, exact = (pair.value.capitalize(),), "bool", True
    elif pair.value == "*":
        values, exact = (), False
    elif pair.name not in UNSPLIT_NAMES:
        values = tuple(sorted(set(pair.value.split(","))))
    return VariantConstraint(pair.name, values, kind, exact, pair.propagate, column)


@dataclass(slots=True)
class NodeReader:
    """The parts of one package of a query, as far as they are read; `query` makes the record."""

    text: str
    name: str | None = None
    namespace: str | None = None
    versions: VersionRanges | None = None
    hash: str | None = None
    arch: dict[str, str] = field(default_factory=dict)
    variants: dict[str, VariantConstraint] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)

    def named(self, word: Token) -> None:
        """Take the name, with its namespace where one is given; `*` is any name."""
        if word.text != "*":
            namespace, _, self.name = word.text.rpartition(".")
            self.namespace = namespace or None

    def take(self, word: Token) -> bool:
        """Take a word, and return whether it belongs to this package.

        Raises:
            QuerySyntaxError: the word is wrong, or says again what was said.
        """
        if word.kind == "version":
            self._version(word)
        elif word.kind in ("flag", "pair"):
            self._option(read_pair(word), word)
        elif word.kind == "hash" and self.hash is None:
            self.hash = word.text[1:]
        else:
            return False
        return True

    def _error(self, word: Token, found: str, expected: str) -> QuerySyntaxError:
        return QuerySyntaxError(self.text, word.column, expected, found)

    def _version(self, word: Token) -> None:
        if self.versions is not None:
            raise self._error(word, "a second version", "one version list (@a,b for several)")
        try:
            self.versions = VersionRanges.parse(word.text)
        except ValueError as error:
            raise self._error(word, str(error), "a version list like @1.2:1.4") from None

    def _option(self, pair: Pair, word: Token) -> None:
        """Take one option: an architecture, a namespace, a flag or a variant."""
        if word.kind == "flag" and pair.name in _NO_VARIANTS:
            raise self._error(word, f"{pair.name!r} is no variant", f"{pair.name}=, and a value")
        if pair.propagate and pair.name in _RESERVED:
            found = f"{pair.name!r} cannot be asked of all dependencies"
            raise self._error(word, found, f"one '=' after {pair.name}")
        if pair.name in _WHOLE_ARCH:
            self._whole_arch(pair, word)
        elif pair.name in _ARCH_KEYS:
            self._arch(word, {_ARCH_KEYS[pair.name]: pair.value})
        elif pair.name == "namespace":
            self.namespace = pair.value
        elif pair.name in FLAG_NAMES:
            self.flags.append(Flag(pair.name, pair.value, pair.propagate, word.column))
        elif pair.name in self.variants:
            raise self._error(word, f"{pair.name!r} stands here again", "each variant once")
        elif pair.value != "*" and "*" in pair.value.split(","):
            raise self._error(word, "'*' among other values", "'*' alone, or values without it")
        else:
            self.variants[pair.name] = _constraint(pair, word.column)

    def _whole_arch(self, pair: Pair, word: Token) -> None:
        """Take `platform-os-target` or a target alone: either sets all three parts in Spack."""
        if self.arch:
            expected = "arch= alone, or before the parts that it leaves open"
            raise self._error(word, f"{pair.name}= after {next(iter(self.arch))}=", expected)
        parts = pair.value.split("-")
        platform, os, target = parts if len(parts) == 3 else ("", "", pair.value)
        self._arch(word, {"platform": platform, "os": os, "target": target})

    def _arch(self, word: Token, parts: dict[str, str]) -> None:
        if not any(parts.values()):
            raise self._error(word, "an empty value", f"a value for {word.text.partition('=')[0]}")
        for key, part in parts.items():
            # Spack prints a part that is not set as the word None.
            if not part or part == "None":
                continue
            if key in self.arch:
                raise self._error(word, f"a second {key}", f"one {key} (target=a,b for several)")
            if not all(part.split(",")):
                raise self._error(word, "an empty value", f"a value for {key}")
            self.arch[key] = part

    def record(self, dependencies: tuple[Dependency, ...] = ()) -> SpecQuery:
        """Return what was read as a record; `*` asks for a part that every binary has."""
        arch = {key: part for key, part in self.arch.items() if part != "*"}
        return SpecQuery(
            name=self.name,
            namespace=self.namespace,
            versions=self.versions,
            variants=tuple(self.variants.values()),
            flags=tuple(self.flags),
            os=arch.get("os"),
            platform=arch.get("platform"),
            target=arch.get("target"),
            hash=self.hash,
            dependencies=dependencies,
            text=self.text,
        )
