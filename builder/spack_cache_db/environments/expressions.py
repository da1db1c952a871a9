"""Evaluates the `when:` of an include or a definition: a Python expression, which is never run.

The names are those of Spack 1.2's `eval_conditional`: `platform`, `os`, `target`, `arch_str` and
`hostname` are texts, `arch` and `architecture` a spec that `satisfies` others, `env` has the
environment variables, and `re` searches. An expression is parsed with `ast`; comparisons, `and`,
`or`, `not`, `in`, constants and a few calls are evaluated. A regular expression may only be a text
with `^`, `$` and `.*` around it, because others can take unlimited time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.intersection import implies
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query

MAX_LENGTH = 1000

MACHINE = ("platform", "os", "target")
NAMES = (*MACHINE, "arch", "architecture", "arch_str", "hostname")
_METHODS = ("startswith", "endswith", "lower", "upper", "strip")
_SEARCHES = ("search", "match", "fullmatch")
_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "len": len, "str": str}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.Is: eq,
    ast.IsNot: ne,
    ast.In: lambda first, second: first in second,
    ast.NotIn: lambda first, second: first not in second,
}
_PLAIN = re.compile(r"(\^|\.\*)?((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])*)(\$|\.\*)?")
_ESCAPED = re.compile(r"\\(.)")


class ExpressionError(ValueError):
    """A condition that cannot be evaluated."""


class _UnknownError(Exception):
    """A value in the expression is unknown."""


def holds(text: str, names: Mapping[str, str | None], env: Mapping[str, str] | None) -> bool | None:
    """Return whether a condition holds; None if that depends on unknown values.

    Args:
        text: the expression.
        names: the values of `NAMES`; None or missing is unknown.
        env: the environment variables, None if they are unknown.

    Raises:
        ExpressionError: it is not an expression, or has parts that are not evaluated.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"has {len(text):,} characters, expected at most {MAX_LENGTH:,}")
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

    def __init__(self, names: Mapping[str, str | None], env: Mapping[str, str] | None) -> None:
        self._names = names
        self._env = env

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part; raises `ExpressionError`."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | bool | None):
            return node.value
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [self.value(element) for element in node.elts]
        if isinstance(node, ast.Name) and node.id in NAMES:
            return self._known(self._names.get(node.id))
        if _is_name(node, "env"):
            return self._known(self._env)
        if isinstance(node, ast.BoolOp):
            return self._combined(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.is_true(node.operand)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.Subscript) and _is_name(node.value, "env"):
            return self._known(self._env)[self.value(node.slice)]
        if isinstance(node, ast.Call) and not node.keywords:
            return self._called(node)
        raise ExpressionError(f"has {ast.unparse(node)[:40]!r}, which is not evaluated")

    def _known(self, value: Any) -> Any:
        if value is None:
            raise _UnknownError
        return value

    def is_true(self, node: ast.expr) -> bool:
        """Return whether a part is true; one operand may decide although others are unknown."""
        if not isinstance(node, ast.BoolOp):
            return bool(self.value(node))
        decides = isinstance(node.op, ast.Or)
        is_unknown = False
        for operand in node.values:
            try:
                if self.is_true(operand) is decides:
                    return decides
            except _UnknownError:
                is_unknown = True
        if is_unknown:
            raise _UnknownError
        return not decides

    def _combined(self, node: ast.BoolOp) -> Any:
        """Return the value of `and` or `or`: that of its last evaluated operand."""
        value = None
        for operand in node.values:
            value = self.value(operand)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _compared(self, node: ast.Compare) -> bool:
        first = self.value(node.left)
        for operation, following in zip(node.ops, node.comparators, strict=True):
            second = self.value(following)
            if not _COMPARISONS[type(operation)](first, second):
                return False
            first = second
        return True

    def _called(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _FUNCTIONS and len(node.args) == 1:
            return _FUNCTIONS[function.id](self.value(node.args[0]))
        if not isinstance(function, ast.Attribute):
            raise ExpressionError(f"calls {ast.unparse(function)[:40]}, which is not evaluated")
        if _is_name(function.value, "env") and function.attr == "get" and 1 <= len(node.args) <= 2:
            name, default = ([self.value(argument) for argument in node.args] + [None])[:2]
            return self._known(self._env).get(name, default)
        if _is_name(function.value, "re") and function.attr in _SEARCHES and len(node.args) == 2:
            return self._searched(function.attr, *map(self.value, node.args))
        is_machine = _is_name(function.value, "arch") or _is_name(function.value, "architecture")
        if is_machine and function.attr == "satisfies" and len(node.args) == 1:
            return self._satisfied(self.value(node.args[0]))
        if function.attr in _METHODS:
            text = self.value(function.value)
            if isinstance(text, str):
                return getattr(text, function.attr)(*map(self.value, node.args))
        raise ExpressionError(f"calls {ast.unparse(function)[:40]}, which is not evaluated")

    def _satisfied(self, text: Any) -> bool:
        """Return whether the machine satisfies a spec, such as `target=x86_64_v3:`."""
        try:
            query = parse_query(str(text))
        except QuerySyntaxError as error:
            raise ExpressionError(f"asks for {str(text)[:40]!r}, which is not a spec") from error
        for part in MACHINE:
            if getattr(query, part) is not None:
                self._known(self._names.get(part))
        platform, system, target = map(self._names.get, MACHINE)
        return implies(SpecQuery(platform=platform, os=system, target=target), query)

    def _searched(self, how: str, pattern: Any, text: Any) -> bool:
        if not isinstance(pattern, str) or not isinstance(text, str):
            raise ExpressionError("searches a value that is not text")
        return any(_fits(how, part, text) for part in pattern.split("|"))


def _fits(how: str, pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, which is a text with `^`, `$` or `.*` around it."""
    plain = _PLAIN.fullmatch(pattern)
    if plain is None:
        raise ExpressionError(f"has the pattern {pattern[:40]!r}, which is not evaluated")
    before, word, behind = plain[1], _ESCAPED.sub(r"\1", plain[2]), plain[3]
    is_start = before == "^" or (before is None and how != "search")
    is_end = behind == "$" or (behind is None and how == "fullmatch")
    if is_start and is_end:
        return text == word
    return text.startswith(word) if is_start else text.endswith(word) if is_end else word in text


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
