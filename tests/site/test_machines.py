"""What runs on a machine is the same for every way to ask: in SQL, in `find`, for the
proposed build, on the website, and for the scripts of an export.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db import build, find
from spack_cache_db.query.choice.proposal import propose_among
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Lookups, opened
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.pages.list_page import ListFilters
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.package_list import load_packages
from spack_cache_db.site.pages.processor_columns import processor_columns
from spack_cache_db.site.site_facts import read_choices
from spack_cache_db.site.static.export import machines_module, phrases_module
from spack_cache_db.site.static.vocabulary import search_vocabulary
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.processors import OTHERS
from spack_cache_db.spack.targets import (
    Build,
    build_runs_on,
    is_mac,
    known_targets,
)
from tests.pagetexts import page, spec, write
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

UNKNOWN = "graviton2"
"""A target that archspec does not know, as some pages have it."""
TARGETS = (
    "x86_64", "x86_64_v3", "core2", "haswell", "cascadelake", "sapphirerapids", "zen3",
    "aarch64", "neoverse_n1", "neoverse_v2", "a64fx", "m1", "m2",
    "ppc64le", "power9le", "riscv64", UNKNOWN,
)  # fmt: skip
PLATFORMS = ("linux", "darwin", "windows")
BUILDS = tuple(Build(*pair) for pair in product(PLATFORMS, TARGETS))
HOSTS = (*known_targets(), UNKNOWN)
EXPECTED = {
    host: {build for build in BUILDS if build_runs_on(build, host)} for host in HOSTS
}
"""The builds that run on each machine."""
SCRIPT = """
import { readFileSync } from "node:fs";
import { runsOn } from "./builds.js";
import { buildsOf, isChosen } from "./matches.js";
const [builds, hosts, vocabulary] = JSON.parse(readFileSync(0, "utf8"));
const ofPages = {};
const ofSearch = {};
const columns = {};
for (const host of hosts) {
  const token = { kind: "target", text: `target=:${host}` };
  const toolchains = builds.map(([platform, target]) => ({ toolchain: { platform, target } }));
  const found = buildsOf({ builds: toolchains }, [token], vocabulary);
  ofPages[host] = builds.filter(([platform, target]) => runsOn({ platform, target }, host));
  ofSearch[host] = found.map(({ toolchain }) => [toolchain.platform, toolchain.target]);
  columns[host] = vocabulary.processors
    .map(([,, target, platform]) => isChosen(target, platform, [token], vocabulary));
}
console.log(JSON.stringify({ ofPages, ofSearch, columns }));
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a binary for each platform and target."""
    folder = tmp_path_factory.mktemp("machines")
    specs = [
        spec(number, platform=platform, target=target)
        for number, (platform, target) in enumerate(BUILDS)
    ]
    build(write(folder / "pages", foo=page("foo", specs=specs)), folder / "x.db")
    return folder / "x.db"


def test_sql_and_find_have_the_builds_of_each_machine(file: Path) -> None:
    """The view `host_builds`, the SQL function and `find` have exactly these."""
    with closing(sqlite3.connect(file)) as conn:
        spack_cache_db.register(conn)
        in_view: dict[str, set[Build]] = {host: set() for host in HOSTS}
        for host, *words in conn.execute(
            "SELECT host, platform, target FROM host_builds"
        ):
            in_view[host].add(Build(*words))
        statement = "SELECT platform, target FROM builds WHERE build_runs_on(platform, target, ?)"
        for host in HOSTS:
            by_function = {Build(*row) for row in conn.execute(statement, [host])}
            assert by_function == EXPECTED[host], host
    assert in_view == EXPECTED
    for host in HOSTS:
        found = [row.configuration for row in find(file, "foo", host=host)]
        assert {Build(row.platform, row.target) for row in found} == EXPECTED[host]


def test_the_proposed_build_runs_on_the_machine(file: Path) -> None:
    """For a host, and for a range of targets, which leaves the platform open: one that
    runs there is taken if there is any.
    """
    with opened(file) as lookups:
        for host in HOSTS:
            by_host = proposed(lookups, "foo", Scope(host=host))
            assert (by_host is None) == (not EXPECTED[host])
            assert by_host is None or by_host in EXPECTED[host], host
            # Spack refuses a range of a target that it does not know.
            if host != UNKNOWN and EXPECTED[host]:
                assert (
                    proposed(lookups, f"foo target=:{host}", Scope()) in EXPECTED[host]
                )


def proposed(lookups: Lookups, text: str, scope: Scope) -> Build | None:
    """Return what the proposed build of a question was built for."""
    question = Question(lookups, parse_query(text), scope.conditions(lookups))
    proposal = propose_among(lookups, question.results)
    if proposal is None:
        return None
    return Build(proposal.configuration.platform, proposal.configuration.target)


def test_the_site_counts_the_builds_of_each_machine(file: Path) -> None:
    """On the page of a package, beside its machines, and in the list of packages; the
    forms have the machines that run any of them.
    """
    with opened(file) as lookups:
        package = load_package(lookups, "foo", Filters())
        assert package is not None
        (choice,) = [item for item in package.choices if item.name == "host"]
        assert dict(choice.values) == {
            host: len(builds) for host, builds in EXPECTED.items() if builds
        }
        for host in HOSTS:
            rows = load_packages(lookups, ListFilters(host=host)).rows
            counts = [row["configurations"] for row in rows]
            assert counts == ([len(EXPECTED[host])] if EXPECTED[host] else []), host
        groups: Any = read_choices(lookups)["hosts"]
        assert {host for group in groups.values() for host in group} == {
            host for host, builds in EXPECTED.items() if builds
        }


def test_the_scripts_of_an_export_have_the_same_rule(
    file: Path, tmp_path: Path
) -> None:
    """That of the pages of packages, and that of the search."""
    scripts = tmp_path / "scripts"
    shutil.copytree(ROOT / "static-site", scripts)
    (scripts / "machines.js").write_text(machines_module(), encoding="utf-8")
    (scripts / "phrases.js").write_text(phrases_module(), encoding="utf-8")
    with closing(sqlite3.connect(file)) as conn:
        vocabulary = search_vocabulary(conn)
    node = needed("node", "nodejs")
    done = completed(
        [node, "--input-type=module", "-e", SCRIPT],
        input=json.dumps([BUILDS, HOSTS, vocabulary]),
        cwd=scripts,
        check=True,
    )
    answers = json.loads(done.stdout)

    for name in ("ofPages", "ofSearch"):
        found = {
            host: {Build(*pair) for pair in pairs}
            for host, pairs in answers[name].items()
        }
        assert found == EXPECTED, name
    # The columns whose binaries run on the machine.
    with opened(file) as lookups:
        for host in HOSTS:
            conditions = Scope(host=host).conditions(lookups)
            columns = processor_columns(lookups, [{OTHERS: 1}], conditions).columns
            assert answers["columns"][host] == [column.is_chosen for column in columns]
            chosen = [column.processor.name for column in columns if column.is_chosen]
            assert ("macOS" in chosen) == (is_mac(host) is True), host
