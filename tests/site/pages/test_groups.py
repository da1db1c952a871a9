"""The pages of a release and of a stack."""

from __future__ import annotations

from spack_cache_db.query.connection import Lookups
from spack_cache_db.site.pages.groups import load_release, load_stack


def test_releases_know_their_neighbours(lookups: Lookups) -> None:
    """A snapshot leads to the one before and after; the branch comes after its newest."""
    earlier = load_release(lookups, "develop-2025-04-13")
    later = load_release(lookups, "develop-2025-04-20")
    branch = load_release(lookups, "develop")

    assert earlier is not None and (earlier.before, earlier.after) == (None, "develop-2025-04-20")
    assert later is not None and (later.before, later.after) == ("develop-2025-04-13", "develop")
    assert branch is not None and (branch.before, branch.after) == ("develop-2025-04-20", None)


def test_root_has_no_page(lookups: Lookups) -> None:
    """The top-level index is in the file, but is shown as no stack."""
    assert load_stack(lookups, "root") is None


def test_every_bar_leads_somewhere(lookups: Lookups) -> None:
    """Each value of a release and a stack has an address; the largest comes first."""
    release = load_release(lookups, "develop")
    stack = load_stack(lookups, "e4s")
    assert release is not None and stack is not None

    for chart in (*release.charts, *stack.charts):
        assert [name for name, _ in chart.bars] == list(
            dict(sorted(chart.bars, key=lambda each: (-each[1], each[0])))
        )
        assert chart.addresses.keys() == dict(chart.bars).keys()
    assert release.charts[0].addresses["aarch64"] == "/packages?release=develop&target=aarch64"
    assert stack.charts[1].addresses["gcc@13.2.0"] == "/packages?stack=e4s&compiler=gcc%4013.2.0"
