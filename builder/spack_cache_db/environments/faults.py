"""What is wrong with an environment: a part that is refused, and all of them as one error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spack_cache_db.errors import BuilderError, Fault, LineFault


class UnreadableEnvironment(BuilderError):
    """An environment that cannot be read. `faults` holds all that is wrong, sorted, each once."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        super().__init__("\n".join(map(str, self.faults)))


class Faults:
    """The faults of one environment, collected while the rest is read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[Fault] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep what is refused in the context, and go on after it."""
        try:
            yield
        except LineFault as fault:
            self.add(fault.line, fault.message)

    def add(self, line: int, message: str) -> None:
        """Keep one fault."""
        self._found.append(Fault(self._path, line, message))

    def raise_any(self) -> None:
        """Raise `UnreadableEnvironment` if there is any fault."""
        if self._found:
            raise UnreadableEnvironment(self._found)
