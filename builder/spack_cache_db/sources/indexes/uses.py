"""How a node uses what it depends on: the words of its edges, each text looked at once."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from spack_cache_db.sources.bounds import MAX_NAME, require_short
from spack_cache_db.sources.columns import Interned, Use
from spack_cache_db.sources.indexes.faults import name
from spack_cache_db.sources.indexes.records import Dependency, EdgeParameters
from spack_cache_db.spack.compilers import LANGUAGES

NO_LANGUAGE = len(LANGUAGES)

_PARAMETERS = msgspec.json.Decoder(EdgeParameters)


class Uses(dict[bytes | tuple[str, ...] | UnsetType, int]):
    """Numbers of uses by what an edge says: the text of its `parameters`, or its `type`.

    `language[number]` is the place in `LANGUAGES` of the first that the use provides, or
    `NO_LANGUAGE`. Asking for what is no `parameters` object raises `msgspec.DecodeError`.
    """

    def __init__(self, uses: Interned[Use]) -> None:
        super().__init__()
        self._uses = uses
        self.language: dict[int, int] = {}

    def __missing__(self, said: bytes | tuple[str, ...] | UnsetType) -> int:
        use = use_of(said)
        number = self[said] = self._uses[use]
        provided = [at for at, each in enumerate(LANGUAGES) if each in use.virtuals]
        self.language[number] = min(provided, default=NO_LANGUAGE)
        return number

    def of(self, dependencies: tuple[Dependency, ...]) -> list[int]:
        """Return the number of each edge's use; raise as asking for one does."""
        return [
            self[each.type if each.parameters is UNSET else bytes(each.parameters)]
            for each in dependencies
        ]


def use_of(said: bytes | tuple[str, ...] | UnsetType) -> Use:
    """Return a use from what an edge says (see `Uses`)."""
    if isinstance(said, bytes):
        parameters = _PARAMETERS.decode(said)
        direct = None if parameters.direct is UNSET else parameters.direct
        return Use(_set(parameters.deptypes), _set(parameters.virtuals), direct)
    return Use(_set(() if said is UNSET else said), (), None)


def _set(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words sorted; `ValueError` for one that cannot stand in a list with commas."""
    for word in words:
        if not word or "," in word:
            raise ValueError(f"{name(word)!r} is no type or virtual, expected a word")
        require_short("type or virtual", word, MAX_NAME)
    return tuple(sorted(words))
