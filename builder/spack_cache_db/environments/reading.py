"""Reads an environment in any format, which is recognized by its content.

`read_environment` is the way in of this package. A YAML or JSON document is read by its
kind, which its keys decide (`documents.kind_of`): a `spack.yaml` by `manifest`, a
`spack.lock` by `lockfile`, and so on. Any other text is a list of specs, or the output
of a terminal (`pasted.text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spack_cache_db.environments.decoding import decoded
from spack_cache_db.environments.documents import (
    EXPECTED,
    JsonDocument,
    Kind,
    YamlMapping,
    json_documents,
    json_fault,
    kind_of,
    nodes_of,
    refusal_of,
    unwrapped,
    yaml_mapping,
)
from spack_cache_db.environments.joined_files import file_or_folder, joined_files
from spack_cache_db.environments.lockfile import read_lock, read_nodes
from spack_cache_db.environments.model import (
    NOWHERE,
    Environment,
    Faults,
    Limits,
    Surroundings,
)
from spack_cache_db.environments.pasted.text import read_text
from spack_cache_db.environments.user_specs import legacy_notes, read_user_spec
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.parser import Parser, parse_query

MAX_BYTES = 2**26
"""Maximum size of an environment; a lockfile of a thousand specs has two million
bytes.
"""

LIMITS = Limits()
"""The limits that apply if none are given."""

_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"


def read_environment(
    data: bytes,
    path: str,
    limits: Limits = LIMITS,
    surroundings: Surroundings = NOWHERE,
) -> Environment:
    """Return the content of an environment.

    Args:
        data: a `spack.yaml`, a `spack.lock`, a list with one spec a line, or another
            text that has specs.
        path: its path in messages.
        limits: the limits of its size.
        surroundings: the files and values that a `spack.yaml` may refer to.

    Raises:
        UnreadableEnvironment: it is none of these, or cannot be read.
    """
    faults = Faults(path)
    environment = Environment()
    with faults.collected():
        if len(data) > MAX_BYTES:
            raise LineFault(0, f"has more than {MAX_BYTES:,} bytes")
        text = decoded(data)
        # Of several files in one text, the first is the environment, which may include
        # the others.
        files = joined_files(text, path)
        if files:
            path, text = next(iter(files.items()))
            surroundings = _with_files(surroundings, files)
        environment = _read(text, path, limits, surroundings)
    faults.raise_any()
    return environment


def user_specs(texts: Iterable[str], parse: Parser = parse_query) -> Environment:
    """Return an environment of separate specs, such as the arguments of a command."""
    specs = tuple(read_user_spec(text, 0, LIMITS, parse) for text in texts)
    return Environment(specs, tuple(legacy_notes(specs)))


def _with_files(surroundings: Surroundings, files: Mapping[str, str]) -> Surroundings:
    """Return surroundings in which the files of a text are opened before others."""

    def open_either(path: str) -> bytes | Mapping[str, bytes] | None:
        content = file_or_folder(files, path)
        if content is not None:
            return content
        return surroundings.open(path)

    return replace(surroundings, open=open_either)


def _read(
    text: str, path: str, limits: Limits, surroundings: Surroundings
) -> Environment:
    """Return the content of one document or text."""
    if text.startswith(_SIGNED):
        message = f"is a signed file of a build cache (spec.json.sig), {EXPECTED}"
        raise LineFault(1, message)

    # A YAML mapping, also in a piece of Markdown.
    text = unwrapped(text)
    mapping = yaml_mapping(text)
    if mapping is not None:
        return _read_yaml(mapping, text, path, limits, surroundings)

    # JSON, perhaps with other lines around it.
    environment = _read_json(text, limits, surroundings)
    if environment is not None:
        return environment
    fault = json_fault(text)
    if fault is not None:
        raise fault

    # Else lines of any kind.
    return read_text(text, limits, surroundings)


def _read_yaml(
    mapping: YamlMapping,
    text: str,
    path: str,
    limits: Limits,
    surroundings: Surroundings,
) -> Environment:
    """Return the content of a YAML mapping, or of JSON with the keys of an
    environment.
    """
    kind = kind_of(mapping.keys)
    if kind is Kind.SPEC_FILE:
        nodes = nodes_of(mapping.content())
        if nodes:
            return read_nodes(nodes, limits.nodes)
    # The modules for YAML are imported here, because importing PyYAML takes longer than
    # reading a list of specs.
    if kind is Kind.CONDA:
        from spack_cache_db.environments.conda import read_conda

        return read_conda(mapping.content(), limits, surroundings)
    if kind is Kind.MANIFEST:
        from spack_cache_db.environments.manifest import read_manifest

        return read_manifest(text, path, limits, surroundings)
    raise LineFault(mapping.line, f"{refusal_of(kind, mapping.keys)}, {EXPECTED}")


def _read_json(
    text: str, limits: Limits, surroundings: Surroundings
) -> Environment | None:
    """Return the content of the JSON documents in a text; None if it has none.

    They may be below the prompt of a shell, between fences of Markdown, or in a row.
    Specs in the other lines count as well.
    """
    documents = json_documents(text)
    if not documents:
        return None

    # Each document is a lockfile, or has nodes.
    locks: list[Any] = []
    nodes: list[Any] = []
    for document in documents:
        value = document.value
        document_nodes = nodes_of(value)
        if document_nodes:
            nodes += document_nodes
            continue
        keys = value.keys() if isinstance(value, dict) else ()
        kind = kind_of(keys)
        if kind is not Kind.LOCKFILE:
            refusal = refusal_of(kind, keys, value)
            raise LineFault(document.line, f"{refusal}, {EXPECTED}")
        locks.append(value)

    # One lockfile, or nodes of any number of documents.
    if len(locks) > 1 or (locks and nodes):
        raise LineFault(documents[1].line, "has several lockfiles, expected one")
    most = limits.nodes
    locked = read_lock(locks[0], most) if locks else read_nodes(nodes, most)

    # Then the lines around the documents.
    other_lines = _without_documents(text, documents)
    beside = read_text(other_lines, limits, surroundings, is_beside_output=True)
    return Environment(
        specs=beside.specs,
        notes=(*locked.notes, *beside.notes),
        locked=locked.locked,
        is_lock=not beside.specs,
        others=beside.others,
    )


def _without_documents(text: str, documents: Sequence[JsonDocument]) -> str:
    """Return a text without its JSON documents; the other lines keep their numbers."""
    parts = []
    position = 0
    for document in documents:
        parts.append(text[position : document.start])
        # Blank lines take the place of the document.
        line_count = text.count("\n", document.start, document.stop)
        parts.append("\n" * line_count)
        position = document.stop
    parts.append(text[position:])
    return "".join(parts)
