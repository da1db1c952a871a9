"""The record of a spec that is found in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastedSpec:
    """A spec from a text that a person pasted, or a part that may be one.

    `$ spack install -j 8 hdf5` has the spec `hdf5`, and `install -j 8` is left out.

    Attributes:
        spec: the spec; empty if the text has none.
        left_out: the words that are not part of the spec, such as
            `install --fresh -j 8`.
        external: where the external is, if Spack printed that it is one: its folder or
            the spec itself; empty for other specs.
        is_dependency: whether it is below another spec in a tree.
        is_printed: whether Spack printed it, with a state (`[+]`) or a hash.
        is_certain: whether it is a spec even if its name is unknown: it has a hash, or
            is the argument of a command that takes only specs.
        hash: the hash that Spack printed for it, whole or in part; empty for none.
        note: how the text was read, if it is written for another package manager.
    """

    spec: str
    left_out: str = ""
    external: str = ""
    is_dependency: bool = False
    is_printed: bool = False
    is_certain: bool = False
    hash: str = ""
    note: str = ""

    def notes_on(self, text: str) -> tuple[str, ...]:
        """Return how a text was read as this spec; empty if the text is the spec."""
        if self.spec == text.strip():
            return ()
        parts = [f"read as {self.spec!r}"]
        if self.note:
            parts.append(self.note)
        if self.left_out:
            parts.append(f"skipped: {self.left_out}")
        return ("; ".join(parts),)
