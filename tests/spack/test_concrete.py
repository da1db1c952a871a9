"""spack.concrete: what a concrete spec's record looks like where it is printed."""

from __future__ import annotations

from spack_cache_db.spack.concrete import Value, printed_variants


def test_variants_are_printed_as_pages_print_them() -> None:
    """Bools, single values, sorted lists and short patches, in normal form; flags are left out."""
    parameters: dict[str, Value] = {
        "shared": True,
        "pic": False,
        "build_system": "cmake",
        "libs": ("static", "shared"),
        "patches": ("f7d58d3aa", "0ae1b2c3d"),
        "languages": ("c", "c++"),
        "cflags": ("-O2",),
        "none_of_them": (),
    }

    assert printed_variants(parameters) == (
        "+shared",
        "build_system=cmake",
        "languages='c,c++'",
        "libs=shared,static",
        "none_of_them='*'",
        "patches=0ae1b2c,f7d58d3",
        "~pic",
    )
