"""The tests mirror the modules: who looks for the tests of a module knows where they are."""

from __future__ import annotations

from tests.paths import ROOT

PACKAGE = ROOT / "builder" / "spack_cache_db"

_SPEC = "one language in several modules, tested whole in tests/spack/test_query.py"
_INDEXES = "seen in the file that comes out: tests/sources/indexes/test_files.py"
_REPORTS = "prints what other modules made: tests/cli/test_reports.py"

WITHOUT = {
    "build/graph_rows.py": _INDEXES,
    "cli/info.py": _REPORTS,
    "site/cover_answer.py": "tests/site/pages/test_cover.py asks it",
    "site/sql/runner.py": "tests/site/sql/test_runners.py starts the processes",
    "sources/own.py": "tests/sources/test_files.py passes over what build wrote",
    "site/reading.py": "each page reads so: tests/site/test_routes.py",
    "site/rendering.py": "each page is rendered so: tests/site/test_routes.py",
    "site/process.py": "tests/cli/test_serve.py ends the process in every way",
    "cli/scope.py": "tests/cli/test_find.py and tests/cli/test_cover.py use each option",
    "query/why_not/candidates.py": "tests/query/why_not/test_misses.py compares it with find",
    "query/cover/records.py": "records without behaviour",
    "query/why_not/instead.py": "tests/query/why_not/test_reasons.py compares its words",
    "environments/expanded.py": "tests/environments/test_read.py reads lists of specs",
    "environments/faults.py": "words of faults, compared in tests/environments",
    "environments/records.py": "records without behaviour",
    "schema/columns.py": "tests/test_schema.py compares it with the file",
    "schema/tables.py": "tests/test_schema.py compares it with the file",
    "schema/views.py": "tests/test_schema.py asks each view",
    "site/datasette065/language.py": "tests/site/test_wrapper.py looks for the language",
    "sources/graph.py": _INDEXES,
    "sources/indexes/faults.py": "words of faults, compared in tests/sources/indexes/test_files.py",
    "sources/indexes/fetch/faults.py": "words of faults, compared in tests/sources/indexes/fetch",
    "sources/indexes/fetch/records.py": "records without behaviour",
    "sources/indexes/records.py": "records without behaviour",
    "spack/constraints.py": _SPEC,
    "spack/lexer.py": _SPEC,
    "spack/nodes.py": _SPEC,
    "start.py": "tests/cli/test_stopping.py sends signals while it is loaded",
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
