"""`when:` of an include or a definition: a Python expression about the machine, never run.

The names are those of Spack 1.1's `eval_conditional`: `platform`, `os`, `target`, `arch_str` and
`hostname` are texts, `arch` and `architecture` a spec that `satisfies` others, `env` has the
environment's variables, and `re` searches. An expression is parsed with `ast`; comparisons, `and`,
`or`, `not`, `in`, constants, and a few calls are evaluated here.
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
MAX_PATTERN = 200
MAX_SEARCHED = 200
"""Characters in which a pattern is looked for."""

MACHINE = ("platform", "os", "target")
NAMES = (*MACHINE, "arch", "architecture", "arch_str", "hostname")
_METHODS = ("startswith", "endswith", "lower", "upper", "strip")
_SEARCHES: Mapping[str, Callable[..., Any]] = {
    "search": re.search,
    "match": re.match,
    "fullmatch": re.fullmatch,
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
    ast.In: lambda first, second: first in second,
    ast.NotIn: lambda first, second: first not in second,
}
# A group that is repeated, and several repetitions in a row, take exponential or cubic time.
_REPEATED_GROUP = re.compile(r"\)[*+{]|\\[1-9]|\(\?P?[=<]")
_REPETITION = re.compile(r"[*+{]")


class ExpressionError(ValueError):
    """A text that is no condition which is read here."""


class _UnknownError(Exception):
    """Something that the expression asks is not known."""


def holds(text: str, names: Mapping[str, str | None], env: Mapping[str, str] | None) -> bool | None:
    """Return whether a condition holds; None if that depends on what is not known.

    Args:
        text: the expression.
        names: the value of each of `NAMES`; None, or a name that is left out, is not known.
        env: the environment's variables, None if they are not known.

    Raises:
        ExpressionError: it is no expression, or not one of those that are read.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"has {len(text):,} characters, expected at most {MAX_LENGTH:,}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return bool(_Evaluation(names, env).value(tree))
    except _UnknownError:
        return None
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError("is no expression") from None
    except (TypeError, re.error, KeyError, IndexError) as error:
        raise ExpressionError(f"cannot be evaluated: {error}") from None


class _Evaluation:
    """The value of each part of an expression."""

    def __init__(self, names: Mapping[str, str | None], env: Mapping[str, str] | None) -> None:
        self._names = names
        self._env = env

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part.

        Raises:
            ExpressionError: it is none that is read.
        """
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | bool | None):
            return node.value
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [self.value(each) for each in node.elts]
        if isinstance(node, ast.Name) and node.id in NAMES:
            return self._known(self._names.get(node.id))
        if _is_name(node, "env"):
            return self._known(self._env)
        if isinstance(node, ast.BoolOp):
            return self._combined(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand)
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

    def _combined(self, node: ast.BoolOp) -> Any:
        """Return what `and` or `or` gives; one operand may decide though others are not known."""
        decides = isinstance(node.op, ast.Or)
        unknown, found = False, None
        for each in node.values:
            try:
                found = self.value(each)
            except _UnknownError:
                unknown = True
                continue
            if bool(found) is decides:
                return found
        if unknown:
            raise _UnknownError
        return found

    def _compared(self, node: ast.Compare) -> bool:
        first = self.value(node.left)
        for operation, following in zip(node.ops, node.comparators, strict=True):
            second = self.value(following)
            if not _COMPARISONS[type(operation)](first, second):
                return False
            first = second
        return True

    def _called(self, node: ast.Call) -> Any:
        called = node.func
        if not isinstance(called, ast.Attribute):
            raise ExpressionError(f"calls {ast.unparse(called)[:40]}, which is not evaluated")
        if _is_name(called.value, "env") and called.attr == "get" and 1 <= len(node.args) <= 2:
            name, default = ([self.value(each) for each in node.args] + [None])[:2]
            return self._known(self._env).get(name, default)
        if _is_name(called.value, "re") and called.attr in _SEARCHES and len(node.args) == 2:
            return self._searched(called.attr, *map(self.value, node.args))
        is_machine = _is_name(called.value, "arch") or _is_name(called.value, "architecture")
        if is_machine and called.attr == "satisfies" and len(node.args) == 1:
            return self._satisfied(self.value(node.args[0]))
        if called.attr in _METHODS:
            text = self.value(called.value)
            if isinstance(text, str):
                return getattr(text, called.attr)(*map(self.value, node.args))
        raise ExpressionError(f"calls {ast.unparse(called)[:40]}, which is not evaluated")

    def _satisfied(self, text: Any) -> bool:
        """Return whether the machine satisfies a spec, such as `target=x86_64_v3:`."""
        try:
            asked = parse_query(str(text))
        except QuerySyntaxError as error:
            raise ExpressionError(f"asks for {str(text)[:40]!r}, which is no spec") from error
        for part in MACHINE:
            if getattr(asked, part) is not None:
                self._known(self._names.get(part))
        platform, system, target = map(self._names.get, MACHINE)
        return implies(SpecQuery(platform=platform, os=system, target=target), asked)

    def _searched(self, how: str, pattern: Any, text: Any) -> bool:
        if not isinstance(pattern, str) or not isinstance(text, str):
            raise ExpressionError("looks for something that is no text")
        if (
            len(pattern) > MAX_PATTERN
            or len(text) > MAX_SEARCHED
            or _REPEATED_GROUP.search(pattern)
            or len(_REPETITION.findall(pattern)) > 2
        ):
            raise ExpressionError(f"has a pattern that may take long: {pattern[:40]!r}")
        return _SEARCHES[how](pattern, text) is not None


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
