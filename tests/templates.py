"""Templates that are compiled once in each process of the tests."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from jinja2 import Environment


def compiled_once(compile_template: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Environment.compile`, which keeps the code of each template.

    The code depends on the source and on the options of the environment, and not on the
    environment itself.
    """
    code: dict[tuple[Any, ...], Any] = {}

    @wraps(compile_template)
    def compiled(environment: Environment, source: Any, *rest: Any, **more: Any) -> Any:
        if not isinstance(source, str):
            return compile_template(environment, source, *rest, **more)
        options = (
            environment.autoescape,
            environment.is_async,
            environment.lstrip_blocks,
            environment.trim_blocks,
            tuple(sorted(environment.extensions)),
            tuple(sorted(environment.filters)),
        )
        key = (source, options, rest, tuple(sorted(more.items())))
        if key not in code:
            code[key] = compile_template(environment, source, *rest, **more)
        return code[key]

    return compiled
