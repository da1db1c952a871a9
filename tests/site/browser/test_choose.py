"""The tasks on the page of a package, each with the command that a reader gets."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.site.browser.visitors import NARROW, VISITORS, Visit
from tests.site.cache import spec_hash

pytestmark = pytest.mark.slow

_HDF5 = "x86_64_v3 gcc@13.2.0 ('build_system=cmake', '~cxx', '{}mpi')"
OLD = "hdf5 1.9 x86_64_v3 gcc@11.4.0 ('build_system=cmake', '~cxx', '+mpi')"
ARM = "hdf5 1.14.5 aarch64 gcc@13.2.0 ('build_system=cmake', '~cxx', '+mpi')"
MPI = f"hdf5 1.14.5 {_HDF5.format('+')}"
SERIAL = f"hdf5 1.14.5 {_HDF5.format('~')}"


def expect_command(page: Page, seed: str) -> None:
    """Expect that the command installs a spec of a seed, and can be seen."""
    command = page.locator(".tab-shell pre")
    hashes = "|".join(spec_hash(f"{seed} {number}")[:7] for number in range(7))
    expect(command).to_contain_text(re.compile(f"hdf5/({hashes})"))
    expect(command).to_be_in_viewport()


def pick(page: Page, group: str, name: str) -> None:
    """Follow the link of a value in a group of the chooser."""
    values = page.get_by_role("group", name=group, exact=True)
    values.get_by_role("link", name=name).click()


@VISITORS
def test_a_choice_changes_the_command(visit: Visit) -> None:
    """Of a version, of a machine, of a system and of an option; choices add up, and a
    chosen value is chosen no more if it is followed again.
    """
    page = visit.page
    page.goto("/package/hdf5")
    pick(page, "Version", "1.9")
    expect_command(page, OLD)
    pick(page, "Version", "1.9")
    pick(page, "Machine", "aarch64")
    expect_command(page, ARM)
    page.goto("/package/hdf5")
    pick(page, "System", "RHEL 8")
    expect_command(page, OLD)
    page.goto("/package/hdf5?version=1.14.5")
    expect_command(page, MPI)
    pick(page, "Options", "mpi")
    expect_command(page, SERIAL)
    pick(page, "Options", "mpi")
    expect_command(page, MPI)


@VISITORS
def test_what_is_impossible_says_why(visit: Visit) -> None:
    """It is no link, and names the filter that excludes it."""
    page = visit.page
    page.goto("/package/hdf5?version=1.9")
    machines = page.get_by_role("group", name="Machine", exact=True)
    arm = machines.locator(".impossible", has_text="aarch64")
    expect(arm).to_contain_text("none of 1.9")
    expect(machines.get_by_role("link", name="aarch64")).to_have_count(0)
    mac = machines.locator(".impossible", has_text="macOS")
    expect(mac).to_contain_text("no binary")


@VISITORS
def test_a_cell_is_a_choice(visit: Visit) -> None:
    """A cell of the table of versions leads to the build for its processor."""
    page = visit.page
    page.goto("/package/hdf5")
    page.get_by_role("link", name="2 binaries: 1.14.5, aarch64").click()
    expect_command(page, ARM)
    chosen = page.locator(".map td [aria-current]")
    expect(chosen).to_have_text("2")


@VISITORS
def test_a_row_fills_the_command(visit: Visit) -> None:
    """Using a row shows its command, and marks the row."""
    page = visit.page
    page.goto("/package/hdf5")
    row = page.locator(".builds tr", has_text="~mpi")
    # Which of its three binaries is shown first depends on their hashes.
    name = row.get_by_role("link", name="Use /").get_attribute("aria-label") or ""
    row.get_by_role("link", name="Use /").click()
    command = page.locator(".tab-shell pre")
    expect(command).to_contain_text(f"hdf5{name.removeprefix('Use ')}")
    expect(command).to_be_in_viewport()
    expect(page.locator(".builds tr.chosen")).to_contain_text("~mpi")


@pytest.mark.parametrize(
    "visit", [{"viewport": NARROW, "java_script_enabled": False}], indirect=True
)
def test_the_command_has_three_forms(visit: Visit) -> None:
    """One is shown at a time, also without scripts, and the lines that a machine needs
    once are apart.
    """
    page = visit.page
    page.goto("/package/hdf5")
    expect(page.locator(".tab >> visible=true")).to_have_count(1)
    expect(page.locator(".tab-shell")).not_to_contain_text("mirror add")
    page.get_by_text("spack.yaml", exact=True).click()
    expect(page.locator(".tab-spack pre")).to_contain_text("specs:")
    expect(page.locator(".tab-shell")).to_be_hidden()
    page.get_by_text("Dockerfile", exact=True).click()
    expect(page.locator(".tab-dockerfile pre")).to_contain_text("RUN spack mirror add")
    page.get_by_text("First time on this machine?").click()
    expect(page.locator(".setup pre")).to_contain_text("spack mirror add develop")
