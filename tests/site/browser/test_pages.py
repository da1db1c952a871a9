"""The site in a real browser: the ways people go through it, and what must never happen
there.
"""

import pytest
from playwright.sync_api import Browser, expect

from tests.serving import Server
from tests.site.browser.test_every_page import faults_of
from tests.site.browser.visitors import NARROW, VISITORS, WIDE, Visit
from tests.site.cache import HOSTILE, MPI, spec_hash

pytestmark = pytest.mark.slow


@VISITORS
def test_filters_can_be_switched(visit: Visit) -> None:
    """A chosen filter is changed for another value in one step, even where nothing is
    left.
    """
    page = visit.page
    page.goto("/package/hdf5?host=neoverse_v2&variant=~mpi")
    heading = page.locator("#configurations-heading")
    expect(heading).to_contain_text("0 configurations")

    page.get_by_role("link", name="x86-64-v3", exact=False).first.click()
    expect(heading).to_contain_text(
        "1 configuration that runs on x86_64_v3, 3 binaries"
    )

    page.get_by_label("mpi", exact=True).select_option("+mpi")
    if not visit.options["java_script_enabled"]:
        page.get_by_role("button", name="Apply").click()
    expect(heading).to_contain_text(
        "2 configurations that run on x86_64_v3, 8 binaries"
    )


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_no_dead_buttons_without_scripts(visit: Visit) -> None:
    """Without scripts nobody sees a copy button that could not work."""
    visit.page.goto(f"/spec/{spec_hash(MPI)}")

    expect(visit.page.locator("button.copy").first).to_be_hidden()


def test_the_machine_is_remembered(visit: Visit) -> None:
    """A machine that was chosen once is shown on later pages, until it is forgotten; a
    page that shows what runs on a machine follows the choice at once.
    """
    page = visit.page
    machine = page.get_by_role("combobox", name="my machine")
    page.goto("/package/hdf5")
    machine.select_option("zen3")
    page.wait_for_url("**/package/hdf5?host=zen3")

    page.goto("/package/py-torch")
    expect(machine).to_have_value("zen3")
    page.get_by_role("link", name="Show for my zen3").click()
    page.wait_for_url("**/package/py-torch?host=zen3")
    page.goto("/")
    expect(machine).to_have_value("zen3")

    page.goto("/package/hdf5?host=zen3")
    machine.select_option("")
    page.wait_for_url("**/package/hdf5")
    page.goto("/")
    expect(machine).to_have_value("")


def test_the_machine_of_a_link_is_not_remembered(visit: Visit) -> None:
    """A link of somebody else shows their machine, and a search from there keeps it."""
    page = visit.page
    machine = page.get_by_role("combobox", name="my machine")
    page.goto("/package/hdf5?host=zen3")
    expect(machine).to_have_value("zen3")
    page.goto("/")
    expect(machine).to_have_value("")

    page.goto("/package/hdf5?host=zen3")
    page.locator(".site-search input[name=q]").fill("py-torch")
    page.keyboard.press("Enter")
    page.wait_for_url("**/package/py-torch?host=zen3")


def test_back_tells_the_truth(visit: Visit) -> None:
    """After Back and after Reload the forms show what the rows are filtered by."""
    page = visit.page
    page.goto("/package/hdf5")
    version = page.get_by_role("combobox", name="Version")
    version.select_option("1.9")
    page.wait_for_url("**/package/hdf5?version=1.9#configurations-heading")
    page.go_back()
    expect(version).to_have_value("")
    page.go_forward()
    expect(version).to_have_value("1.9")
    page.reload()
    expect(version).to_have_value("1.9")


def test_hostile_values_are_text(visit: Visit) -> None:
    """A variant that is a script is shown, not run, on our pages and on Datasette's."""
    for path in (
        "/package/hostile",
        "/find?q=hostile+%2Bfine",
        "/spack-cache/variants",
    ):
        visit.page.goto(path)
        expect(
            visit.page.get_by_text(HOSTILE).locator("visible=true").first
        ).to_be_visible()
        assert visit.page.title() != "owned"


def test_names_are_suggested(visit: Visit) -> None:
    """A typed name is completed with one small request, and leads to its page."""
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # How fast this machine types does not decide how many requests there are.
    page.clock.install(time=0)
    page.goto("/releases")
    page.clock.pause_at(3_600)
    asked.clear()
    box = page.get_by_role("combobox", name="Search packages, hashes and specs")
    box.press_sequentially("torchv")
    page.clock.run_for(1_000)
    suggested = page.locator("#suggestions option")
    expect(suggested).to_have_count(1)
    expect(suggested).to_have_attribute("value", "py-torchvision")

    assert [each.partition("?")[2] for each in asked] == ["q=torchv"]
    box.fill("py-torchvision")
    box.press("Enter")
    expect(page).to_have_url(f"{visit.server.address}/package/py-torchvision")


SPECS = "\n".join(
    [*(f"hdf5@1.{number}" for number in range(1, 19)), "zlib", "py-torch +cuda"]
)


@VISITORS
def test_an_environment_to_what_lacks_a_binary(visit: Visit) -> None:
    """Paste twenty specs and submit: one block installs those of one compiler, the
    others lead to what is near.
    """
    page = visit.page
    page.goto("/cover")
    page.get_by_label("One spec a line").fill(SPECS)
    page.get_by_role("button", name="Find binaries").click()

    expect(page.get_by_role("status").first).to_contain_text(
        "3 of 20 specs have a binary with gcc 13.2.0"
    )
    expect(page.get_by_role("heading", name="16 without a binary")).to_be_visible()
    expect(page.get_by_text("spack install --cache-only")).to_be_in_viewport()
    assert "/cover?q=hdf5%401.1%0A" in page.url
    page.reload()
    expect(page.get_by_label("One spec a line")).to_have_value(SPECS)

    page.get_by_role("link", name="Without @1.1:").first.click()
    expect(page).to_have_url(f"{visit.server.address}/package/hdf5")


DROP = """
(area, files) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  area.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
}
"""


def test_files_are_dropped(visit: Visit) -> None:
    """Files that are dropped into the box stand in it, several with their names."""
    page = visit.page
    page.goto("/cover")
    area = page.get_by_label("One spec a line")
    files = [
        ["spack.yaml", "spack: {specs: [zlib]}"],
        ["packages.yaml", "packages: {}"],
    ]
    page.evaluate(
        f"([area, files]) => ({DROP})(area, files)", [area.element_handle(), files]
    )
    text = "".join(f"--- # {name}\n{text}\n" for name, text in files)
    expect(area).to_have_value(text)
    page.get_by_role("button", name="Find binaries").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 1 spec has a binary")


FLEX = "/spec/dyheadhjccf4dd3wofittcndk263tjmh"
"""It links gcc-runtime, which links glibc, and has five other binaries of its
configuration.
"""


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_dependencies_unfold(
    browser: Browser, index_server: Server, script: bool
) -> None:
    """A dependency unfolds, what stands above is found there, and a link leads to its
    page.
    """
    visit = Visit(browser, index_server, viewport=NARROW, java_script_enabled=script)
    page = visit.page
    page.goto(FLEX)
    page.get_by_role("heading", name="9 dependencies").click()
    tree = page.get_by_role("list", name="To run")
    below = tree.locator("details").get_by_role("link", name="glibc@2.36")
    expect(below).to_be_hidden()
    tree.locator("summary", has_text="gcc-runtime").click()
    expect(below).to_be_visible()
    expect(page.get_by_text("gcc-runtime target x86_64_v3 → x86_64_v4")).to_be_visible()

    built_with = page.get_by_role("list", name="Only to build it")
    expect(built_with.locator("summary")).to_have_count(0)
    built_with.get_by_role("link", name="gcc@13.2.0").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("gcc@13.2.0")
    expect(
        page.get_by_text("It is an external, at /opt/compilers/gcc-13.2.0")
    ).to_be_visible()
    expect(page.get_by_text("spack install")).to_have_count(0)
    visit.context.close()
    assert visit.faults == []


def test_everyone_can_read_dependencies(browser: Browser, index_server: Server) -> None:
    """Axe finds nothing in an unfolded tree, nothing sticks out, and no text is
    pale.
    """
    visit = Visit(browser, index_server, viewport=WIDE, reduced_motion="reduce")
    found = [
        fault for path in (FLEX, "/package/gcc") for fault in faults_of(visit, path)
    ]
    visit.context.close()

    assert [*found, *visit.faults] == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_rows_begin_on_the_first_screen(
    browser: Browser, server: Server, size: dict[str, int]
) -> None:
    """Whoever opens a page sees the first row, or what to type, without scrolling."""
    visit = Visit(browser, server, viewport=size)
    places = {}
    links = {}
    for path in (
        "/packages",
        "/spack-cache/configurations",
        "/spack-cache/builds",
        "/spack-cache/variant_values_of_package?package=hdf5",
    ):
        visit.page.goto(path)
        row = visit.page.locator("#rows tbody tr").first.bounding_box()
        places[path] = row["y"] if row else None
    for path in (
        "/package/hdf5",
        "/package/hdf5?release=develop&host=zen3&variant=%2Bmpi",
    ):
        visit.page.goto(path)
        command = visit.page.get_by_role("button", name="Copy: the command")
        box = command.first.bounding_box()
        places[path] = box["y"] if box else None
        if size is WIDE:
            box = visit.page.locator(".map tbody tr").first.bounding_box()
            places[f"{path}, versions"] = box["y"] if box else None
    for path in ("/find?q=hdf5+%2Bmpi", "/find?q=%2Bmpi"):
        visit.page.goto(path)
        button = visit.page.get_by_role("button", name="Copy").first.bounding_box()
        links[path] = (
            button is not None and button["x"] + button["width"] <= size["width"]
        )
        places[path] = button["y"] if button else None
    visit.context.close()

    assert all(links.values()), links
    assert {
        path: y for path, y in places.items() if y is None or y + 20 > size["height"]
    } == {}
