"""The tests mirror the modules: who looks for the tests of a module knows where they are."""

from __future__ import annotations

from tests.paths import ROOT

PACKAGE = ROOT / "builder" / "spack_cache_db"

_SPEC = "one language in several modules, tested whole in tests/spack/test_query.py"
_BUILD = "what it stores is tested in the file that comes out, in tests/build/test_steps.py"
_REPORTS = "prints what other modules made: tests/cli/test_reports.py"

WITHOUT = {
    "build/contradictions.py": "told by what is merged: tests/build/test_merge.py",
    "build/counting.py": _BUILD,
    "build/facet_counts.py": _BUILD,
    "build/fold.py": "one step of merging: tests/build/test_merge.py",
    "build/ids.py": _BUILD,
    "build/listings.py": "arrays that merging and numbering share: tests/build/test_merge.py",
    "build/page_rules.py": "one step of merging: tests/build/test_merge.py",
    "build/problems.py": _BUILD,
    "build/rows.py": _BUILD,
    "cli/check.py": _REPORTS,
    "cli/find_table.py": "tests/cli/test_find.py compares what is printed",
    "cli/info.py": _REPORTS,
    "cli/input.py": "options that build and check share: tests/cli/test_build.py",
    "errors.py": "classes without behaviour but their text, which each refusal's test compares",
    "query/specs.py": "tests/query/test_find.py compares its answers",
    "records.py": "records without behaviour",
    "site/datasette065/language.py": "tests/site/test_browser.py looks for the language",
    "sources/pages/records.py": "records without behaviour",
    "sources/tar_streams.py": "tests/sources/test_files.py reads archives of each kind",
    "spack/constraints.py": _SPEC,
    "spack/lexer.py": _SPEC,
    "spack/match.py": "tests/query/test_find.py compares its answers",
    "spack/nodes.py": _SPEC,
}
"""Modules without a test module of their own, and where their tests are."""


def test_each_module_has_tests_of_its_name() -> None:
    """`room/module.py` is tested in `tests/room/test_module.py`, or listed here, and never both."""
    modules = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    missing = {
        module.as_posix()
        for module in modules
        if not module.name.startswith("__")
        and not (ROOT / "tests" / module.parent / f"test_{module.name}").exists()
    }
    assert missing == WITHOUT.keys()


def test_the_list_names_tests_that_exist() -> None:
    """What the list says about other tests is true of their names."""
    words = " ".join(WITHOUT.values()).replace(",", " ").replace(":", " ").split()
    named = {word for word in words if word.startswith("tests/")}
    assert {name for name in named if not (ROOT / name).exists()} == set()
