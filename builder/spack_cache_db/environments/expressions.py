"""Evaluates the conditions of a `spack.yaml` (`when:`), a small part of Python.

For example, an include may have the condition

    platform == 'linux' and re.search('^login', hostname)

A condition is never run: it is parsed with `ast`, and comparisons, `and`, `or`, `not`,
`in`, constants and a few calls are evaluated. A regular expression may only be a text
with `^`, `$` or `.*` around it, because others can take unlimited time.

The names are those of Spack 1.2's `eval_conditional`: `platform`, `os`, `target`,
`arch_str` and `hostname` are texts, `arch` and `architecture` a spec with the method
`satisfies`, `env` has the environment variables, and `re` searches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from spack_cache_db.spack.intersection import implies
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery

MOST_CHARACTERS = 1000
"""Longest condition that is evaluated."""
_LONGEST_SHOWN = 40
"""Maximum of characters of a condition in a message."""

MACHINE = ("platform", "os", "target")
NAMES = (*MACHINE, "arch", "architecture", "arch_str", "hostname")
"""The names of a condition that have a value, besides `env`."""
_SPECS = ("arch", "architecture")
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
    # `x is None` and `x is 'linux'`, which Python may answer either way.
    ast.Is: eq,
    ast.IsNot: ne,
    ast.In: lambda member, container: member in container,
    ast.NotIn: lambda member, container: member not in container,
}
_PATTERN = re.compile(
    r"(?P<before>\^|\.\*)?"
    r"(?P<text>(?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])*)"
    r"(?P<behind>\$|\.\*)?"
)
"""A regular expression that is a plain text: `^login`, `.*-gpu$`, `node\\.1`."""
_ESCAPED = re.compile(r"\\(.)")


class ExpressionError(ValueError):
    """A condition that cannot be evaluated."""


class _UnknownError(Exception):
    """A value in the expression is unknown."""


def evaluate_condition(
    text: str, names: Mapping[str, str | None], env: Mapping[str, str] | None
) -> bool | None:
    """Return whether a condition is true; None if that depends on unknown values.

    `target == 'zen3' or hostname.startswith('login')` is true if `names` has the target
    `zen3`, even if it has no host name.

    Args:
        text: the expression.
        names: the values of `NAMES`; None or missing is unknown.
        env: the environment variables, None if they are unknown.

    Raises:
        ExpressionError: it is not an expression, or has parts that are not evaluated.
    """
    if len(text) > MOST_CHARACTERS:
        count = f"has {len(text):,} characters"
        raise ExpressionError(f"{count}, expected at most {MOST_CHARACTERS:,}")
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
        # Python would raise these as well, such as `env['NO']` without this variable.
        raise ExpressionError(f"cannot be evaluated: {error}") from None


class _Evaluation:
    """Evaluates the parts of an expression.

    Its methods raise `_UnknownError` for an unknown value, and `ExpressionError` for a
    part that is not evaluated.
    """

    def __init__(
        self, names: Mapping[str, str | None], env: Mapping[str, str] | None
    ) -> None:
        self._names = names
        self._env = env

    def is_true(self, node: ast.expr) -> bool:
        """Return whether a part is true.

        One operand of `and` or `or` may decide although others are unknown.
        """
        if not isinstance(node, ast.BoolOp):
            return bool(self._value(node))
        # A true operand decides `or`, a false one `and`.
        deciding = isinstance(node.op, ast.Or)
        is_unknown = False
        for operand in node.values:
            try:
                if self.is_true(operand) is deciding:
                    return deciding
            except _UnknownError:
                is_unknown = True
        if is_unknown:
            raise _UnknownError
        return not deciding

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a part, as Python has it."""
        match node:
            # 'linux', 1, True, None
            case ast.Constant(value=str() | int() | None as value):
                return value
            # ('rhel8', 'rhel9')
            case ast.Tuple(elts=elements):
                return tuple(self._values(elements))
            # ['rhel8', 'rhel9'] or {'rhel8', 'rhel9'}, which have the same members
            case ast.List(elts=elements) | ast.Set(elts=elements):
                return self._values(elements)
            case ast.Name(id="env"):
                return _known(self._env)
            case ast.Name(id=name) if name in NAMES:
                return _known(self._names.get(name))
            # a or b
            case ast.BoolOp(op=operator, values=operands):
                return self._value_of_operands(operator, operands)
            # not a
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.is_true(operand)
            # a == b, a < b < c
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._is_each_true(operators, [left, *others])
            # env['HOME']
            case ast.Subscript(value=ast.Name(id="env"), slice=key):
                return _known(self._env)[self._value(key)]
            # f(a), a.f(b)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._called(function, arguments)
        part = ast.unparse(node)[:_LONGEST_SHOWN]
        raise ExpressionError(f"has {part!r}, which is not evaluated")

    def _values(self, nodes: Iterable[ast.expr]) -> list[Any]:
        return [self._value(node) for node in nodes]

    def _value_of_operands(self, operator: ast.boolop, operands: list[ast.expr]) -> Any:
        """Return the first operand that decides `and` or `or`, else the last one.

        In Python, `'' or 'linux'` is `'linux'`, not true or false.
        """
        deciding = isinstance(operator, ast.Or)
        for operand in operands:
            value = self._value(operand)
            if bool(value) is deciding:
                break
        return value

    def _is_each_true(
        self, operators: list[ast.cmpop], operands: list[ast.expr]
    ) -> bool:
        """Return whether each comparison of a chain such as `1 < x < 3` is true."""
        left = self._value(operands[0])
        for operator, operand in zip(operators, operands[1:], strict=True):
            right = self._value(operand)
            compare = _COMPARISONS[type(operator)]
            if not compare(left, right):
                return False
            # The right side of a comparison is the left one of the next.
            left = right
        return True

    def _called(self, function: ast.expr, arguments: list[ast.expr]) -> Any:
        """Return the value of a call, one case for each form that is evaluated."""
        match function, arguments:
            # len(os)
            case ast.Name(id=name), [argument] if name in _FUNCTIONS:
                return _FUNCTIONS[name](self._value(argument))
            # env.get('CRAYPE_VERSION') or env.get('SITE', 'none')
            case ast.Attribute(value=ast.Name(id="env"), attr="get"), [_] | [_, _]:
                return _known(self._env).get(*self._values(arguments))
            # re.search('^login', hostname)
            case (
                ast.Attribute(value=ast.Name(id="re"), attr=search),
                [pattern, text],
            ) if search in _SEARCHES:
                return _is_found(search, self._value(pattern), self._value(text))
            # arch.satisfies('target=x86_64_v3:')
            case (
                ast.Attribute(value=ast.Name(id=name), attr="satisfies"),
                [spec],
            ) if name in _SPECS:
                return self._machine_satisfies(self._value(spec))
            # hostname.startswith('login')
            case ast.Attribute(value=subject, attr=name), _ if name in _METHODS:
                value = self._value(subject)
                if isinstance(value, str):
                    method = getattr(value, name)
                    return method(*self._values(arguments))
        called = ast.unparse(function)[:_LONGEST_SHOWN]
        raise ExpressionError(f"calls {called}, which is not evaluated")

    def _machine_satisfies(self, text: Any) -> bool:
        """Return whether the machine satisfies a spec, such as `target=x86_64_v3:`."""
        try:
            query = parse_query(str(text))
        except QuerySyntaxError as error:
            shown = str(text)[:_LONGEST_SHOWN]
            message = f"asks for {shown!r}, which is not a spec"
            raise ExpressionError(message) from error
        # Only the parts that the spec constrains must be known.
        for part in MACHINE:
            if getattr(query, part) is not None:
                _known(self._names.get(part))
        machine = SpecQuery(
            platform=self._names.get("platform"),
            os=self._names.get("os"),
            target=self._names.get("target"),
        )
        return implies(machine, query)


def _is_found(search: str, pattern: Any, text: Any) -> bool:
    """Return whether a function of `_SEARCHES` finds a pattern in a text."""
    if not isinstance(pattern, str) or not isinstance(text, str):
        raise ExpressionError("searches a value that is not text")
    # `rhel8|rhel9` is found if one of its choices is.
    return any(_fits(search, choice, text) for choice in pattern.split("|"))


def _fits(search: str, pattern: str, text: str) -> bool:
    """Return whether a plain text with `^`, `$` or `.*` around it is found."""
    parts = _PATTERN.fullmatch(pattern)
    if parts is None:
        shown = pattern[:_LONGEST_SHOWN]
        raise ExpressionError(f"has the pattern {shown!r}, which is not evaluated")
    plain = _ESCAPED.sub(r"\1", parts["text"])

    # `match` begins at the start of the text, and `fullmatch` ends at its end as well,
    # unless the pattern has a sign of its own there.
    is_at_start = parts["before"] == "^"
    if parts["before"] is None:
        is_at_start = search in ("match", "fullmatch")
    is_at_end = parts["behind"] == "$"
    if parts["behind"] is None:
        is_at_end = search == "fullmatch"

    if is_at_start and is_at_end:
        return text == plain
    if is_at_start:
        return text.startswith(plain)
    if is_at_end:
        return text.endswith(plain)
    return plain in text


def _known(value: Any) -> Any:
    """Return a value that is known, or raise `_UnknownError` if it is None."""
    if value is None:
        raise _UnknownError
    return value
