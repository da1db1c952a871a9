"""The page /cover in a real browser, with and without JavaScript, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.site.browser.visitors import VISITORS, Visit

pytestmark = pytest.mark.slow

SPECS = "\n".join([*(f"hdf5@1.{number}" for number in range(1, 19)), "zlib", "py-torch +cuda"])


@VISITORS
def test_an_environment_to_what_lacks_a_binary(visit: Visit) -> None:
    """Paste twenty specs and submit: one block installs four, the others lead to what is near."""
    page = visit.page
    page.goto("/cover")
    page.get_by_label("One spec a line").fill(SPECS)
    page.get_by_role("button", name="Find binaries").click()

    expect(page.get_by_role("status").first).to_contain_text("4 of 20 specs have a binary")
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
    files = [["spack.yaml", "spack: {specs: [zlib]}"], ["packages.yaml", "packages: {}"]]
    page.evaluate(f"([area, files]) => ({DROP})(area, files)", [area.element_handle(), files])
    text = "".join(f"--- # {name}\n{text}\n" for name, text in files)
    expect(area).to_have_value(text)
    page.get_by_role("button", name="Find binaries").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 1 spec has a binary")
