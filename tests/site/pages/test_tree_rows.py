"""site.pages.tree_rows: the rows of a dependency tree, in one piece."""

from __future__ import annotations

from spack_cache_db.query.dependencies.needs import Node
from spack_cache_db.site.pages.dependency_tree import Row
from spack_cache_db.site.pages.tree_rows import tree_rows
from tests.indexes import hash_of
from tests.site.cache import HOSTILE


def row(name: str, *types: str, **more: object) -> Row:
    """Return the row of a binary of this name; `more` replaces what is said of it."""
    node = Node(hash_of(name), name, "1.0", is_binary=True, external=None)
    plain = Row(node, types, (), 0, has_more=False, is_above=False, closes=0)
    return plain._replace(**more)  # type: ignore[arg-type]


def test_rows_stand_in_each_other() -> None:
    """What is unfolded holds the rows below it; what stands above links to there."""
    rows = [
        row("a", "build", "link", needs=1, has_more=True),
        row("b", "link", virtuals=("blas", "lapack"), needs=1, has_more=True),
        row("c", "run", closes=2),
        row("b", "run", needs=1, is_above=True),
        row("d", "run", needs=7),
    ]
    a, b, c, d = (hash_of(name) for name in "abcd")

    assert tree_rows(rows, "/x/spec/").splitlines() == [
        f'<li><a href="/x/spec/{a}">a@1.0</a> <span class="quiet">build, link</span>'
        f'<details id="d-{a[:7]}"><summary>needs 1'
        '<span class="visually-hidden"> of its own: a</span></summary><ul>',
        f'<li><a href="/x/spec/{b}">b@1.0</a> <span class="quiet">link for blas, lapack</span>'
        f'<details id="d-{b[:7]}"><summary>needs 1'
        '<span class="visually-hidden"> of its own: b</span></summary><ul>',
        f'<li><a href="/x/spec/{c}">c@1.0</a> <span class="quiet">run</span></li>'
        + "</ul></details></li>" * 2,
        f'<li><a href="/x/spec/{b}">b@1.0</a> <span class="quiet">run</span>'
        f' <a class="above" href="#d-{b[:7]}">needs 1, as above'
        '<span class="visually-hidden">: b</span></a></li>',
        f'<li><a href="/x/spec/{d}">d@1.0</a> <span class="quiet">run</span>'
        ' <span class="quiet">needs 7, not shown</span></li>',
    ]


def test_what_is_no_binary_says_so() -> None:
    """An external and what was not pushed are called so."""
    external = Node(hash_of("e"), "e", "2", is_binary=False, external="/usr")
    missing = external._replace(external=None)

    found = tree_rows([row("e", node=external), row("e", node=missing)], "/").splitlines()

    assert ['<span class="kind">external</span></li>' in line for line in found] == [True, False]
    assert ['<span class="kind">not pushed</span></li>' in line for line in found] == [False, True]


def test_words_are_text() -> None:
    """A name, a version, a type or a virtual package that is a script is shown, not run."""
    node = Node(hash_of("x"), HOSTILE, HOSTILE, is_binary=True, external=None)
    every = row("x", HOSTILE, node=node, virtuals=(HOSTILE,), needs=1)

    for each in (every, every._replace(has_more=True, closes=1), every._replace(is_above=True)):
        found = tree_rows([each], "/")
        assert "<script" not in found
        assert found.count("&lt;script&gt;") >= 4
