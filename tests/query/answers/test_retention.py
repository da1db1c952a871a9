"""What a mirror has to keep: no rule, whatever it keeps, prunes what a kept binary
needs to run.
"""

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spack_cache_db import ArgumentError
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.retention import retention
from spack_cache_db.spack.versions import preference
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash, write

PACKAGES = ("aa", "bb", "cc")
DAYS = ("2025-01-05", "2025-01-12")
RUN = {"link", "run"}
RULES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"newest": 1},
    {"newest": 2},
    {"newer_than": DAYS[1]},
    {"keep_stacks": ["e4s"]},
    {"newer_than": 6},
    {"keep_stacks": ["e4s", "ml"], "newest": 1, "newer_than": 7},
)
MOSTLY = st.sampled_from([True, True, True, False])
COUNT = 8


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the nodes of an index: the versions of three packages, which need those
    behind them.
    """
    types = st.sampled_from(
        [("link",), ("run",), ("build", "link"), ("build",), ("test",)]
    )
    found = []
    for number in range(COUNT):
        later = list(range(number + 1, COUNT))
        needs = []
        if later:
            needs = draw(st.lists(st.sampled_from(later), max_size=3, unique=True))
        edges = []
        for needed_number in needs:
            needed_edge = edge(f"s{needed_number}", *draw(types))
            edges.append(needed_edge | {"name": PACKAGES[needed_number % 3]})
        # One of sixteen.
        is_external = not (draw(MOSTLY) or draw(MOSTLY))
        more = {"external": {"path": "/usr"}} if is_external else {}
        spec_node = node(f"s{number}", *edges, version=str(number), **more)
        found.append(spec_node | {"name": PACKAGES[number % 3]})
    return found


def needed(records: dict[str, Any], hashes: set[str]) -> set[str]:
    """Return the specs that some specs link or run, at any depth, as the records say
    it.
    """
    found: set[str] = set()
    ahead = list(hashes)
    while ahead:
        for dependency in records[ahead.pop()].get("dependencies", ()):
            is_run_time = RUN.intersection(dependency["parameters"]["deptypes"])
            if is_run_time and dependency["hash"] not in found:
                found.add(dependency["hash"])
                ahead.append(dependency["hash"])
    return found


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_nothing_that_a_kept_binary_needs_is_pruned(data: st.DataObject) -> None:
    """For any graph and any rules, what is kept is closed, and holds what each rule
    keeps.
    """
    every = data.draw(nodes())
    records = {each["hash"]: each for each in every}
    places = ["develop/e4s", "develop/ml", *(f"develop-{day}/e4s" for day in DAYS)]
    listed: dict[str, set[str]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for place in data.draw(
            st.lists(st.sampled_from(places), min_size=1, unique=True)
        ):
            mask = data.draw(st.lists(MOSTLY, min_size=COUNT, max_size=COUNT))
            pushed = [
                record(each, is_binary=is_own and "external" not in each)
                for each, is_own in zip(every, mask, strict=True)
            ]
            listed[place] = {
                each["spec"]["hash"] for each in pushed if each["in_buildcache"]
            }
            (folder / "in" / place).mkdir(parents=True)
            (folder / "in" / place / "index.json").write_bytes(index(*pushed))
        build([folder / "in"], folder / "x.db")
        names = [f"{each['name']}@{each['version']}" for each in every]
        specs = data.draw(st.lists(st.sampled_from([*names, "no"]), max_size=2))
        (folder / "specs.txt").write_text("\n".join(specs))
        rules: dict[str, Any] = data.draw(st.sampled_from(RULES))
        stacks = {place.partition("/")[2] for place in listed}
        rules = rules | {
            "keep_stacks": sorted(stacks.intersection(rules.get("keep_stacks", ())))
        }
        if not any("-" in place for place in listed):
            rules.pop("newer_than", None)
        paths = [folder / "specs.txt"] if specs else []
        if not paths and rules == {"keep_stacks": []}:
            with pytest.raises(ArgumentError, match="no rule keeps a binary"):
                retention(folder / "x.db", **rules)
            return
        found = retention(folder / "x.db", paths, **rules)

    # Each binary is either kept or pruned, and nothing that a kept one needs is pruned.
    binaries: set[str] = set().union(*listed.values())
    keep = set(found.keep)
    assert keep.isdisjoint(found.prune)
    assert (
        keep.union(found.prune)
        == {binary.hash for binary in found.binaries}
        == binaries
    )
    assert needed(records, keep).isdisjoint(found.prune)

    # The rules about stacks and days.
    for place, hashes in listed.items():
        is_new = place.startswith(("develop/", f"develop-{DAYS[1]}"))
        is_kept_as_new = "newer_than" in rules and is_new
        if place.partition("/")[2] in rules["keep_stacks"] or is_kept_as_new:
            assert hashes <= keep

    # The rule about versions.
    if "newest" in rules:
        for package in {records[dag_hash]["name"] for dag_hash in binaries}:
            version_of = {
                dag_hash: records[dag_hash]["version"]
                for dag_hash in binaries
                if records[dag_hash]["name"] == package
            }
            versions = sorted(set(version_of.values()), key=preference)
            newest = versions[-rules["newest"] :]
            for dag_hash, version in version_of.items():
                assert version not in newest or dag_hash in keep


def test_a_spliced_binary_needs_that_of_its_build_spec(tmp_path: Path) -> None:
    """Spack installs it from the binary of its build spec."""
    spliced = node("a", build_spec={"name": "a", "hash": hash_of("original")})
    original = node("a", hash=hash_of("original"), version="0.9")
    (tmp_path / "index.json").write_bytes(
        index(*map(record, (spliced, original, node("b", version="2.0"))))
    )
    build([tmp_path / "index.json"], tmp_path / "x.db", release="develop")
    (tmp_path / "a.txt").write_text("a@1.0\n")
    found = retention(tmp_path / "x.db", [tmp_path / "a.txt"])

    assert found.keep == tuple(sorted((hash_of("a"), hash_of("original"))))
    assert found.prune == (hash_of("b"),)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of pages with sizes, of a branch and two snapshots, in the current
    folder.
    """
    sizes = {"1.0": "100", "1.1": "2000", "2.0": "1.2 MB", "develop": "-"}
    specs = [
        spec(number, versions=[version], size=size)
        for number, (version, size) in enumerate(sizes.items())
    ]
    branch = page("foo", "develop", specs[2:])
    first_day = page("foo", f"develop-{DAYS[0]}", specs[:2])
    second_day = page("foo", f"develop-{DAYS[1]}", specs[1:3])
    folder = write(tmp_path / "pages", a=branch, b=first_day, c=second_day)
    build([folder], tmp_path / "x.db")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "x.db"


@pytest.mark.parametrize(
    ("rules", "keep", "freed", "unknown"),
    [
        ("--newest 1", [2], 2100, 1),
        ("--newest 2", [1, 2], 100, 1),
        ("--newest 9", [0, 1, 2, 3], 0, 0),
        (f"--newer-than {DAYS[1]}", [1, 2, 3], 100, 0),
        ("--newer-than 6", [1, 2, 3], 100, 0),
        ("--newer-than 7", [0, 1, 2, 3], 0, 0),
        ("--newest 1 --release develop-2025-01-05", [1], 100, 0),
        ("--environment specs.txt", [0], 2000, 2),
        ("--environment specs.txt --newest 1", [0, 2], 2000, 1),
    ],
)
def test_each_rule_keeps_what_it_names(
    mirror: Path, rules: str, keep: list[int], freed: int, unknown: int
) -> None:
    """The forms of the answer agree; sizes that are not numbers are counted as
    unknown.
    """
    Path("specs.txt").write_text("foo@1.0\n")
    done = run("retention", mirror, *rules.split(), "--json")

    assert done.exit_code == 0, done.output

    found = json.loads(done.stdout)
    assert found["keep"] == sorted(map(spec_hash, keep))
    assert (found["freed_bytes"], found["unknown_sizes"]) == (freed, unknown)
    assert (
        run("retention", mirror, *rules.split(), "--keeplist").stdout.split()
        == found["keep"]
    )

    rows = csv.DictReader(
        io.StringIO(run("retention", mirror, *rules.split(), "--csv").stdout)
    )
    assert sorted(row["hash"] for row in rows if not row["reason"]) == found["prune"]

    first = run("retention", mirror, *rules.split()).stdout.partition("\n")[0]
    assert first.startswith(f"keep {len(keep)} binar")
    assert f"); prune {len(found['prune'])} binar" in first


@pytest.mark.parametrize(
    ("rules", "status", "message"),
    [
        ("", 2, "no rule keeps a binary: give one or more of --environment, --newest"),
        (
            "--newer-than yesterday",
            2,
            "newer_than is 'yesterday', expected a day such as",
        ),
        ("--newer-than 9999999", 2, "newer_than is 9999999"),
        ("--newest 0", 2, "0 is not in the range"),
        ("--stack nope --newest 1", 2, "no stack is called 'nope'"),
        ("--stack e4s", 2, "no rule keeps a binary: give one or more of"),
        ("--keep-stack nope", 2, "no stack is called 'nope'"),
        ("--environment none.txt", 2, "none.txt: cannot be read"),
        ("--environment specs.txt --newest 1", 1, "specs.txt:1: nothing keeps foo@9"),
        ("--json --csv --newest 1", 2, "exclude each other"),
    ],
)
def test_refusals_print_no_answer(
    mirror: Path, rules: str, status: int, message: str
) -> None:
    """Nothing is printed that somebody could prune with."""
    Path("specs.txt").write_text("foo@9\n")
    done = run("retention", mirror, *rules.split())

    assert done.exit_code == status, done.output
    assert done.stdout == "", done.output
    assert message in done.stderr, done.output
    if status == 1:
        assert (
            run("retention", mirror, *rules.split(), "--allow-missing").exit_code == 0
        )


def test_days_need_snapshots(tmp_path: Path) -> None:
    """Days are counted from the newest snapshot, not from a clock."""
    (tmp_path / "index.json").write_bytes(index(record(node("a", edge("b", "run")))))
    build([tmp_path / "index.json"], tmp_path / "x.db", release="develop")
    with pytest.raises(ArgumentError, match="the database has no snapshot"):
        retention(tmp_path / "x.db", newer_than=3)


@pytest.mark.parametrize(
    "rule",
    [
        {"newest": 0}, {"newest": -1}, {"newest": "2"}, {"newest": True}, {"newest": 1.0},
        {"newer_than": -1}, {"newer_than": True}, {"newer_than": 1.5}, {"newer_than": "2"}, {},
    ],
)  # fmt: skip
def test_arguments_are_checked_in_python_as_in_the_command(
    mirror: Path, rule: Any
) -> None:
    """A number that is none would keep everything, or prune what is needed."""
    with pytest.raises(ArgumentError, match=r"expected|no rule keeps a binary"):
        retention(mirror, **rule)


def test_one_stack_is_a_rule_and_a_filter(tmp_path: Path) -> None:
    """`keep_stacks` keeps a stack; `stack` limits the answer to one, as in other
    commands.
    """
    for stack, name in (("e4s", "a"), ("ml", "b")):
        folder = tmp_path / "mirrors" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node(name))))
    build(tmp_path / "mirrors", tmp_path / "x.db")
    kept = retention(tmp_path / "x.db", keep_stacks="e4s")

    assert (kept.keep, kept.prune) == ((hash_of("a"),), (hash_of("b"),))

    done = run("retention", tmp_path / "x.db", "--stack", "ml", "--newest", 1, "--json")
    found = json.loads(done.stdout)
    assert (found["keep"], found["prune"]) == ([hash_of("b")], [])


def test_a_missing_hash_is_named_with_its_place(tmp_path: Path) -> None:
    """A needed binary that only another release has, one of no release, and an unknown
    one.
    """
    needs = node("a", edge("b", "run"), edge("c", "run"))
    unbuilt = record(node("c"), is_binary=False)
    sources = {"develop": [record(needs), record(node("b"), is_binary=False), unbuilt]}
    sources["v1.0"] = [record(node("b"))]
    for release, records in sources.items():
        (tmp_path / "in" / release / "e4s").mkdir(parents=True)
        (tmp_path / "in" / release / "e4s" / "index.json").write_bytes(index(*records))
    build(tmp_path / "in", tmp_path / "x.db")
    done = run("retention", tmp_path / "x.db", "--release", "develop", "--newest", 1)
    b = hash_of("b")[:7]
    c = hash_of("c")[:7]

    assert (
        f"b@1.0/{b} is needed, and the release develop does not have it: it is in v1.0\n"
    ) in done.stderr
    assert (
        f"c@1.0/{c} is needed, and no release of this database has its binary"
        in done.stderr
    )


def test_a_kept_binary_without_a_dependency_is_named(tmp_path: Path) -> None:
    """The text has the binary and what it lacks; a complete binary is not in the
    list.
    """
    top = record(node("top", edge("middle", "link")))
    middle = record(node("middle", edge("low", "run")))
    lost = record(node("low"), is_binary=False)
    whole = record(node("whole"))
    (tmp_path / "index.json").write_bytes(index(top, middle, lost, whole))
    build([tmp_path / "index.json"], tmp_path / "x.db")

    found = retention(tmp_path / "x.db", newest=1)
    assert found.incomplete == (
        f"middle@1.0/{hash_of('middle')[:7]} lacks low@1.0",
        f"top@1.0/{hash_of('top')[:7]} lacks low@1.0",
    )
    assert found.missing == (hash_of("low"),)
    result = run("retention", tmp_path / "x.db", "--newest", "1", "--allow-missing")
    assert "kept, but not complete: middle@1.0/" in result.stderr


def test_a_complete_mirror_has_no_incomplete_binary(tmp_path: Path) -> None:
    """Every member of each closure is listed."""
    top = record(node("top", edge("low", "link")))
    (tmp_path / "index.json").write_bytes(index(top, record(node("low"))))
    build([tmp_path / "index.json"], tmp_path / "x.db")
    assert retention(tmp_path / "x.db", newest=1).incomplete == ()
