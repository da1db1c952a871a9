"""Between two installations, or two stacks, nothing was removed: words say which side
has what.
"""

import json
import re
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.diff import diff
from spack_cache_db.site.site import Site
from tests.commands import run
from tests.indexes import hash_of, index, node, record
from tests.site.conftest import asked_of, open_site
from tests.trees import installed, write_tree

FALSE_WORDS = (
    "removed",
    "added",
    "Removed",
    "New ",
    "Upgraded",
    "grown",
    "shrunk",
    "rebuilt",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two installations, which have some packages in common, and a release with two
    stacks.
    """
    folder = tmp_path_factory.mktemp("sides")
    trees = {}
    for name, packages in (("derecho", "abc"), ("casper", "cd")):
        records = [installed(node(package)) for package in packages]
        # The same configuration with another hash.
        records.append(installed(node("same") | {"hash": hash_of(f"same-{name}")}))
        trees[name] = write_tree(folder / name, records)
    for stack, packages in (("e4s", "ab"), ("ml", "bc")):
        mirror = folder / "mirrors" / "develop" / stack
        mirror.mkdir(parents=True)
        (mirror / "index.json").write_bytes(
            index(*(record(node(name)) for name in packages))
        )
    build([folder / "mirrors"], folder / "x.db", installations=trees.items())
    return folder / "x.db"


@pytest.fixture(scope="module")
def site(file: Path) -> Site:
    """The site as a worker has it."""
    return open_site(file)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("derecho", "casper", "on"),
        ("casper", "derecho", "on"),
        ("develop", "casper", "in"),
        ("develop:e4s", "develop:ml", "in"),
    ],
)
def test_no_side_has_lost_anything(
    old: str, new: str, place: str, file: Path, site: Site, tmp_path: Path
) -> None:
    """The report, Markdown, JUnit and the page name the sides; JSON keeps its keys."""
    report = tmp_path / "x.xml"
    table = run("diff", old, new, file, "--junit", report)
    markdown = run("diff", old, new, file, "--markdown")
    page = bytes(asked_of(site, f"/diff/{old}...{new}").body).decode()
    main = page[page.index("<main") : page.index("</main>")]

    for text in (table.stdout, markdown.stdout, main):
        assert f"only {place} {old}" in text
        assert f"only {place} {new}" in text
        visible = re.sub(r"<[^>]*>", " ", text)
        assert not [word for word in FALSE_WORDS if word in visible]
    assert "<failure" not in report.read_text()
    changes = json.loads(run("diff", old, new, file, "--json").stdout)
    assert {"removed", "added", "grown", "shrunk", "rebuilt"} == set(
        changes["configurations"]
    )


def test_the_sentence_has_each_number(file: Path) -> None:
    """Each side has its number of binaries, and of configurations that differ."""
    found = diff(file, "derecho", "casper")
    assert found.sentence == (
        "3 binaries only on derecho, 2 only on casper, 1 on both; of the configurations on both,"
        " 0 with more on casper, 0 with fewer on casper and 1 with other hashes."
    )


def test_a_release_and_an_older_one_keep_their_words(samples_file: Path) -> None:
    """What an older release had was removed."""
    found = diff(samples_file, "develop-2025-04-20", "develop")
    assert found.place == ""
    assert "were removed" in found.sentence
