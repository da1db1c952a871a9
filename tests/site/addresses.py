"""Addresses of every kind of page over the invented cache."""

from typing import Any

from tests.site.cache import MPI, spec_hash
from tests.site.conftest import SQL

OWN = (
    "/",
    "/package/hdf5",
    "/package/hdf5?release=develop&variant=%2Bmpi",
    "/package/hdf5?version=none",
    f"/spec/{spec_hash(MPI)}",
    "/spec/aaaaaaa",
    "/release/develop-2025-04-20",
    "/stack/e4s",
    "/find",
    "/find?q=hdf5+%2Bmpi",
    "/find?q=%22",
    "/find?q=hdf5@1.12:",
    "/find?q=hdf5@99+target=zen4",
    "/cover",
    "/cover?q=hdf5%0Ahdf5@99",
    "/cover?q=spack:+[",
    "/find?q=torc",
    "/find?q=fast+hdf5",
    "/packages",
    "/packages?release=develop&has=x86_64_v3&lacks=aarch64&sort=specs",
    "/releases?kind=snapshot",
    "/stacks?q=nothing",
    "/diff/develop-2025-04-20...develop",
    "/diff/develop-2025-04-20...develop?package=hdf5",
    "/diff/develop-2025-04-20...develop?all=rebuilt",
    "/coverage/develop",
    "/coverage/develop?by=stack&reference=v0.23.1",
    "/diff/develop:e4s...v0.23.1:hep",
    "/dependents",
    "/dependents?q=hdf5@:1.14",
    "/about",
)
DATASETTES = (
    "/spack-cache",
    "/spack-cache/configurations",
    "/spack-cache/configurations?_facet=platform_id&_search=hdf5",
    "/spack-cache/configurations?_search=nothing-has-this",
    "/spack-cache/configurations/1",
    "/spack-cache/listings?_size=2",
    "/spack-cache/builds",
    "/spack-cache/build_listings?release=develop&_nocount=1",
    "/spack-cache/packages?_sort_desc=spec_count",
    "/spack-cache/most_hashes",
    "/spack-cache/variant_values_of_package?package=hdf5",
    f"{SQL}?sql=select+1",
    f"{SQL}?sql=select+zeroblob(9)",
    "/-/versions",
    "/-/plugins",
    "/-/settings",
)
UNKNOWN = (
    "/package/nope",
    "/spec/zzzzzzz",
    "/spec/not-a-hash",
    "/release/v9",
    "/stack/root",
)


async def get(datasette: Any, path: str, **headers: str) -> Any:
    """Ask the site in process."""
    return await datasette.client.get(path, headers=headers)
