"""Evaluates the conditions of a `spack.yaml` (`when:`), a small part of Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from spack_cache_db.spack.intersection import implies
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery

MOST_CHARACTERS = 1000
"""Longest condition that is evaluated."""


MACHINE = ("platform", "os", "target")
NAMES = (*MACHINE, "arch", "architecture", "arch_str", "hostname")
_METHODS = ("startswith", "endswith", "lower", "upper", "strip")
_SEARCHES = ("search", "match", "fullmatch")
_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "len": len,
    "str": str,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.Is: eq,
    ast.IsNot: ne,
    ast.In: lambda member, container: member in container,
    ast.NotIn: lambda member, container: member not in container,
}
_PATTERN = re.compile(r"(\^|\.\*)?((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])*)(\$|\.\*)?")
_ESCAPED = re.compile(r"\\(.)")


class ExpressionError(ValueError):
    """A condition that cannot be evaluated."""


class _UnknownError(Exception):
    """A value in the expression is unknown."""


def holds(
    text: str, names: Mapping[str, str | None], env: Mapping[str, str] | None
) -> bool | None:
    """Return whether a condition holds; None if that depends on unknown values.

    Args:
        text: the expression.
        names: the values of `NAMES`; None or missing is unknown.
        env: the environment variables, None if they are unknown.

    Raises:
        ExpressionError: it is not an expression, or has parts that are not evaluated.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(
            f"has {len(text):,} characters, expected at most {MOST_CHARACTERS:,}"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _Evaluation(names, env).is_true(tree)
    except _UnknownError:
        return None
    except ExpressionError:
        raise
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError("is not an expression") from None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise ExpressionError(f"cannot be evaluated: {error}") from None


class _Evaluation:
    """Evaluates the parts of an expression."""

    def __init__(
        self, names: Mapping[str, str | None], env: Mapping[str, str] | None
    ) -> None:
        self._names = names
        self._env = env

    def is_true(self, node: ast.expr) -> bool:
        """Return whether a part is true; one operand may decide although others are
        unknown.
        """
        if not isinstance(node, ast.BoolOp):
            return bool(self.value(node))
        decides, is_unknown = isinstance(node.op, ast.Or), False
        for operand in node.values:
            try:
                if self.is_true(operand) is decides:
                    return decides
            except _UnknownError:
                is_unknown = True
        if is_unknown:
            raise _UnknownError
        return not decides

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part; raises `ExpressionError`."""
        match node:
            case ast.Constant(value=str() | int() | None as value):
                return value
            case (
                ast.Tuple(elts=elements)
                | ast.List(elts=elements)
                | ast.Set(elts=elements)
            ):
                return [*map(self.value, elements)]
            case ast.Name(id="env"):
                return _known(self._env)
            case ast.Name(id=name) if name in NAMES:
                return _known(self._names.get(name))
            case ast.BoolOp(op=operator, values=operands):
                for operand in operands:
                    value = self.value(operand)
                    if bool(value) is isinstance(operator, ast.Or):
                        break
                return value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.is_true(operand)
            case ast.Compare(left=left, ops=operators, comparators=others):
                values = pairwise(map(self.value, (left, *others)))
                return all(
                    _COMPARISONS[type(operator)](*pair)
                    for operator, pair in zip(operators, values, strict=True)
                )
            case ast.Subscript(value=ast.Name(id="env"), slice=key):
                return _known(self._env)[self.value(key)]
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._called(function, arguments)
        raise ExpressionError(f"has {ast.unparse(node)[:40]!r}, which is not evaluated")

    def _called(self, function: ast.expr, arguments: list[ast.expr]) -> Any:
        match function, arguments:
            case ast.Name(id=name), [argument] if name in _FUNCTIONS:
                return _FUNCTIONS[name](self.value(argument))
            case ast.Attribute(value=ast.Name(id="env"), attr="get"), [_] | [_, _]:
                return _known(self._env).get(*map(self.value, arguments))
            case ast.Attribute(value=ast.Name(id="re"), attr=how), [pattern, text] if (
                how in _SEARCHES
            ):
                return self._searched(how, self.value(pattern), self.value(text))
            case ast.Attribute(value=ast.Name(id=name), attr="satisfies"), [spec] if (
                name
                in (
                    "arch",
                    "architecture",
                )
            ):
                return self._satisfied(self.value(spec))
            case ast.Attribute(value=subject, attr=name), _ if name in _METHODS:
                text = self.value(subject)
                if isinstance(text, str):
                    return getattr(text, name)(*map(self.value, arguments))
        raise ExpressionError(
            f"calls {ast.unparse(function)[:40]}, which is not evaluated"
        )

    def _satisfied(self, text: Any) -> bool:
        """Return whether the machine satisfies a spec, such as `target=x86_64_v3:`."""
        try:
            query = parse_query(str(text))
        except QuerySyntaxError as error:
            raise ExpressionError(
                f"asks for {str(text)[:40]!r}, which is not a spec"
            ) from error
        for part in MACHINE:
            if getattr(query, part) is not None:
                _known(self._names.get(part))
        platform, system, target = map(self._names.get, MACHINE)
        return implies(SpecQuery(platform=platform, os=system, target=target), query)

    def _searched(self, how: str, pattern: Any, text: Any) -> bool:
        if not isinstance(pattern, str) or not isinstance(text, str):
            raise ExpressionError("searches a value that is not text")
        return any(_fits(how, part, text) for part in pattern.split("|"))


def _fits(how: str, pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, which is a text with `^`, `$` or `.*`
    around it.
    """
    plain = _PATTERN.fullmatch(pattern)
    if plain is None:
        raise ExpressionError(
            f"has the pattern {pattern[:40]!r}, which is not evaluated"
        )
    before, word, behind = plain[1], _ESCAPED.sub(r"\1", plain[2]), plain[3]
    is_start = before == "^" or (before is None and how != "search")
    is_end = behind == "$" or (behind is None and how == "fullmatch")
    if is_start and is_end:
        return text == word
    return (
        text.startswith(word)
        if is_start
        else text.endswith(word)
        if is_end
        else word in text
    )


def _known(value: Any) -> Any:
    if value is None:
        raise _UnknownError
    return value
