"""Reads the dependencies of conda's `environment.yml` as specs of Spack.

For example, the specs of this file are `hdf5@1.14.6`, `zlib@1.2:1.3`, and `py-rich@13`
if Spack has a package `py-rich`:

    dependencies:
    - conda-forge::hdf5=1.14.6=nompi_h1
    - zlib>=1.2,<1.4
    - pip:
      - rich==13

Faults and specs have the line 0, because the decoded file has no line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UserSpec,
)
from spack_cache_db.environments.pasted.version_signs import (
    package_called,
    with_spack_versions,
)
from spack_cache_db.environments.user_specs import read_user_spec
from spack_cache_db.errors import LineFault

NOTE = "an environment.yml of conda: names and versions are read, builds and channels are not"
"""The note on each such file."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


def read_conda(content: Any, limits: Limits, surroundings: Surroundings) -> Environment:
    """Return the packages that an `environment.yml` lists, those for pip included.

    Args:
        content: the decoded file, a mapping with the key `dependencies`.
        limits: the maximum number of specs, and the maximum length of one.
        surroundings: the parser of specs, and the known packages, by which `numpy` is
            `py-numpy`.

    Raises:
        LineFault: its dependencies are not a list of texts, or too many.
    """
    specs: list[UserSpec] = []
    for text in _dependencies(content["dependencies"]):
        specs.append(_user_spec(text, limits, surroundings))
        if len(specs) > limits.specs:
            raise LineFault(0, f"has more than {limits.specs:,} specs")
    return Environment(tuple(specs), (NOTE,))


def _dependencies(items: Any) -> Iterator[str]:
    """Yield the entries of `dependencies:`, and of the list for pip in it."""
    if not isinstance(items, list):
        message = "dependencies: is not a list, expected one of conda's packages"
        raise LineFault(0, message)
    for item in items:
        if isinstance(item, str):
            # `conda-forge::hdf5` names the channel of a package.
            yield item.rpartition("::")[2].strip()
        elif isinstance(item, dict) and isinstance(item.get("pip"), list):
            for name in item["pip"]:
                yield str(name).strip()
        else:
            raise LineFault(0, f"dependencies: has {item!r:.60}, expected a package")


def _user_spec(text: str, limits: Limits, surroundings: Surroundings) -> UserSpec:
    """Return the spec of an entry such as `hdf5=1.14.6=nompi_h1` or `numpy`."""
    spec = _spec_text(text, surroundings)
    return read_user_spec(spec, 0, limits, surroundings.parse)


def _spec_text(text: str, surroundings: Surroundings) -> str:
    is_package = surroundings.known.is_package

    # A name without a version.
    if _NAME.fullmatch(text):
        return package_called(text, is_package) or text

    # A version behind the name of a known package, or behind any name.
    versions = with_spack_versions(text, is_package)
    if versions is None:
        versions = with_spack_versions(text, lambda name: True)
    if versions is not None:
        return versions.spec

    # Another form, such as an address for pip, which is reported as not a spec.
    return text
