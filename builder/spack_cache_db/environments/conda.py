"""Reads the dependencies of conda's `environment.yml` as specs of Spack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UserSpec,
)
from spack_cache_db.environments.pasted.version_signs import with_spack_versions
from spack_cache_db.environments.user_specs import read_user_spec
from spack_cache_db.errors import LineFault

NOTE = "an environment.yml of conda: names and versions are read, builds and channels are not"


def read_conda(content: Any, limits: Limits, surroundings: Surroundings) -> Environment:
    """Return the packages that an `environment.yml` lists, those for pip included.

    Args:
        content: the decoded mapping.
        limits: the limits of its size.
        surroundings: the known names, by which `numpy` is `py-numpy`.

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
    """Return the spec of an entry such as `hdf5=1.14.6=nompi_h1`."""
    # The name of a known package, such as `py-numpy` for `numpy`.
    versions = with_spack_versions(text, surroundings.known.is_package)
    if versions is None:
        # Else the name as it is.
        versions = with_spack_versions(text, lambda name: True)
    spec = text if versions is None else versions.spec
    return read_user_spec(spec, 0, limits, surroundings.parse)
