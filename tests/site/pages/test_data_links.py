"""site.pages.data_links: the addresses of a page's data."""

from __future__ import annotations

from spack_cache_db.site.pages.data_links import package_links
from spack_cache_db.site.pages.filters import Filters


def test_data_links_carry_the_filters() -> None:
    """The data of a filtered page is filtered the same way."""
    links = package_links("spack-cache", "hdf5", Filters(release="develop", target="zen3"))

    assert links.json == (
        "/spack-cache/build_listings.json?package=hdf5&release=develop&target=zen3"
        "&_shape=array&_size=max"
    )


def test_a_machine_is_kept() -> None:
    """What runs on a machine has a view; in a release, its targets are named one by one."""
    anywhere = package_links("spack-cache", "hdf5", Filters(host="zen"))
    release = package_links("spack-cache", "hdf5", Filters(host="power9le", release="develop"))

    assert anywhere.browse == "/spack-cache/host_builds?package=hdf5&host=zen"
    assert release.browse == (
        "/spack-cache/build_listings?package=hdf5&release=develop"
        "&target__in=power8le%2Cpower9le%2Cppc64le"
    )
