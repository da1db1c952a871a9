"""cli.cover: what is printed of an environment, and with which exit status."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.cover_texts import STATUSES as PRINTED_STATUSES
from spack_cache_db.cli.main import cli
from spack_cache_db.query.answers.covered import LOST, OF_NODES, STATUSES
from spack_cache_db.spack import machine
from spack_cache_db.spack.machine import Machine
from tests.indexes import edge, hash_of, index, node, record

SPECS = "py-mpi4py@4: %gcc@13  # the compiler last\n\npy-mpi4py@99\npy-mpi4px\npy-mpi4py ^openmpi\n"


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes into a pipe of no known width, wherever the tests run."""
    monkeypatch.delenv("COLUMNS", raising=False)


def run(text: str | bytes, *arguments: object) -> Result:
    """Run the command in this process on what stands in standard input."""
    return CliRunner().invoke(cli, ["cover", "-", *map(str, arguments)], input=text)


def run_on(path: Path, *arguments: object) -> Result:
    """Run the command in this process on a file or a folder."""
    return CliRunner().invoke(cli, ["cover", *map(str, (path, *arguments))])


def test_a_table(samples_file: Path) -> None:
    """People get the total, then what lacks a binary with the reason, then what has
    one.
    """
    result = run(SPECS, samples_file)

    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    counts = "unanswerable 1, none 1, near 1, binary 1"
    assert lines[:3] == ["1 of 4 specs has a binary", counts, ""]
    assert [line.split()[0] for line in lines[3:]] == [
        "unanswerable",
        "none",
        "near",
        "binary",
    ]
    assert "newest 4.0.1" in lines[5]
    assert " ".join(lines[-1].split()[1:-3]) == (
        "py-mpi4py@4: %gcc@13 py-mpi4py@4.0.1 gcc@13.2.0 ubuntu24.04 x86_64_v3"
    )


def test_only_one_status(samples_file: Path) -> None:
    """What is not wanted is not shown, in any form; the totals stay those of all
    specs.
    """
    lines = run(
        SPECS, samples_file, "--only", "near", "--only", "none"
    ).stdout.splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["none", "near"]
    assert lines[0] == "1 of 4 specs has a binary"

    said = json.loads(run(SPECS, samples_file, "--only", "binary", "--json").stdout)
    assert [covered["status"] for covered in said["specs"]] == ["binary"]
    assert said["total"] == 4


MANIFEST = """
spack:
  specs:
  - py-mpi4py
  - {group: more, specs: [py-mpi4py@9, py-mpi4py@9, cray-mpich, cuda]}
  packages:
    cray-mpich: {buildable: false, externals: [{spec: cray-mpich@8.1.25, prefix: /opt}]}
    cuda: {externals: [{spec: cuda@12, prefix: /opt}]}
"""


def test_groups_and_externals(samples_file: Path, tmp_path: Path) -> None:
    """An external that Spack may not build needs no binary; groups have their own
    totals.
    """
    path = tmp_path / "spack.yaml"
    path.write_text(MANIFEST)
    result = run_on(path, samples_file)

    assert result.stdout.splitlines()[:4] == [
        "1 of 4 specs has a binary; 1 more is external",
        "none 1, near 2, external 1, binary 1",
        "no group: 1 of 1",
        "more: 0 of 3",
    ]
    none, near, again, external, _ = result.stdout.splitlines()[5:]
    assert none.endswith("; or the external cuda@12")
    assert near.startswith("near") and again.endswith("(the same)")
    assert external.split() == ["external", "cray-mpich", "cray-mpich@8.1.25"]

    said = json.loads(run_on(path, samples_file, "--json").stdout)
    assert (said["external"], said["total"]) == (1, 4)
    assert [covered["group"] for covered in said["specs"]] == [None, *["more"] * 4]
    assert [covered["external"] for covered in said["specs"]][3:] == [
        "cray-mpich@8.1.25",
        "cuda@12",
    ]


def test_forms(samples_file: Path) -> None:
    """JSON and CSV have each spec in the order of the environment; Markdown has the
    table.
    """
    said = json.loads(run(SPECS, samples_file, "--json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(SPECS, samples_file, "--csv").stdout)))
    markdown = run(
        SPECS + "py-mpi4py x='a|b'\n", samples_file, "--markdown"
    ).stdout.splitlines()

    assert (said["binary"], said["total"], said["near"], said["none"]) == (1, 4, 1, 1)
    answers = [
        (covered["spec"], covered["status"], covered["line"])
        for covered in said["specs"]
    ]
    assert answers == [
        ("py-mpi4py@4: %gcc@13", "binary", 1),
        ("py-mpi4py@99", "near", 3),
        ("py-mpi4px", "none", 4),
        ("py-mpi4py ^openmpi", "unanswerable", 5),
    ]
    assert [row["status"] for row in rows] == [
        covered["status"] for covered in said["specs"]
    ]
    assert (
        rows[0]["configuration"] == "py-mpi4py@4.0.1 gcc@13.2.0 ubuntu24.04 x86_64_v3"
    )
    assert markdown[:3] == [
        "1 of 5 specs has a binary.",
        "",
        "| status | spec | answer |",
    ]
    assert "`` py-mpi4py x='a\\|b' ``" in markdown[7]


def test_what_a_binary_lacks_is_named(tmp_path: Path) -> None:
    """Table, JSON, CSV, Markdown and JUnit name the dependencies that no mirror has."""
    needing = node("app", edge("lib", "link"), edge("tool", "run"))
    below = [record(node("lib"), is_binary=False), record(node("tool"))]
    (tmp_path / "index.json").write_bytes(index(record(needing), *below))
    build(tmp_path / "index.json", tmp_path / "x.db", release="r")
    lacking = f"lib@1.0/{hash_of('lib')}"

    table = run("app\ntool\n", tmp_path / "x.db", "--junit", tmp_path / "report.xml")
    assert table.exit_code == 1
    assert table.stdout.splitlines()[:4] == [
        "1 of 2 specs has a binary; 1 more binary lacks dependencies",
        "incomplete 1, binary 1",
        "to build from source: app, lib",
        "to download: 1 package",
    ]
    assert (
        f"/{hash_of('app')} in r: no binary of lib@1.0, so Spack would build it"
        in table.stdout
    )
    assert lacking in (tmp_path / "report.xml").read_text()

    data = json.loads(run("app\ntool\n", tmp_path / "x.db", "--json").stdout)
    assert [spec["missing"] for spec in data["specs"]] == [[lacking], []]
    assert data["to_build"] == ["app", "lib"]
    assert data["package_count"] == 1
    assert data["size"] is None
    rows = list(
        csv.DictReader(io.StringIO(run("app\n", tmp_path / "x.db", "--csv").stdout))
    )
    assert (rows[0]["status"], rows[0]["missing"]) == ("incomplete", lacking)
    markdown = run("app\ntool\n", tmp_path / "x.db", "--markdown").stdout
    assert "\nTo build from source: app, lib.\n" in markdown
    assert run("app\n", tmp_path / "x.db", "--only", "incomplete").exit_code == 1


@pytest.mark.parametrize(
    ("text", "options", "status", "said"),
    [
        ("py-mpi4py\n", (), 0, "1 of 1 spec has a binary"),
        ("", (), 1, "0 of 0 specs have a binary"),
        ("py-mpi4py\n", ("--release", "develop"), 0, "1 of 1"),
        ("py-mpi4py\n", ("--host", "riscv64"), 1, "without host riscv64"),
        (
            "spack: {include: x}",
            (),
            2,
            "Error: standard input:1: expected a list of paths",
        ),
        ("spack: [", (), 2, "Error: standard input:1: broken YAML"),
        (b"\xff", (), 2, "Error: standard input:1: is not UTF-8"),
        ("py-mpi4py %gcc target=:zen3\n", ("--spack", "0.23"), 0, "1 of 1"),
        ("py-mpi4py %gcc target=:zen3\n", (), 1, "--spack 0.23"),
        ("py-mpi4py\n", ("--spack", "new"), 2, "not a version of Spack"),
        ("py-mpi4py\n", ("--release", "none"), 2, "no release is called 'none'"),
    ],
)
def test_the_exit_status(
    samples_file: Path,
    text: str | bytes,
    options: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    """0 if all have a binary, 1 if some lack one, 2 for what cannot be read or
    answered.
    """
    result = run(text, samples_file, *options)

    assert result.exit_code == status, result.output
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_machine_that_the_file_does_not_know(samples_file: Path) -> None:
    """It may be a typo, or one for which nothing is built yet: a note, and no error."""
    result = run(
        "py-mpi4py", samples_file, "--os", "ubunto24.04", "--platform", "solaris"
    )

    first, second = result.stderr.splitlines()
    assert first.startswith(
        "Note: no binary was built for the operating system 'ubunto24.04'"
    )
    assert "; close: ubuntu24.04" in first
    assert second.startswith("Note: no binary was built for the platform 'solaris'; ")
    assert result.exit_code == 1
    assert run("py-mpi4py", samples_file, "--os", "ubuntu24.04").stderr == ""


def test_a_file_that_is_not_there(samples_file: Path, tmp_path: Path) -> None:
    """An environment or a database that cannot be opened is said by its name."""
    result = run_on(tmp_path / "no.yaml", samples_file)
    assert result.exit_code == 2
    assert "no.yaml: cannot be read: No such file" in result.output

    result = run("zlib", tmp_path / "no.db")
    assert result.exit_code == 2
    assert "no such file" in result.output


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """A folder of environments at several depths, one of which cannot be read."""
    texts = {
        "a/spack.yaml": "spack: {specs: [py-mpi4py@4, py-mpi4py@99]}",
        "a/spack.lock": "{}",
        "b/c/spack.yaml": "spack: {specs: [py-mpi4py]}",
        "b/c/other.yaml": "spack: {specs: [zlib]}",
        "d/spack.yaml": "spack: [",
        ".hidden/spack.yaml": "spack: {specs: [zlib]}",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_folder(
    samples_file: Path, environments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All environments in a folder are one report; those that cannot be read are told
    in it.
    """
    result = run_on(environments, samples_file)
    total, _, first, second, broken = result.stdout.splitlines()

    assert result.exit_code == 2, result.output
    assert total == (
        "2 of 3 specs have a binary, in 2 environments; 1 more cannot be read"
    )
    assert " ".join(first.split()) == "a/spack.yaml 1 of 2 near 1, binary 1"
    assert " ".join(second.split()[:4]) == "b/c/spack.yaml 1 of 1"
    assert broken.startswith("d/spack.yaml") and "broken YAML" in broken
    monkeypatch.setenv("COLUMNS", "50")
    narrow = run_on(environments, samples_file).stdout
    assert "".join(narrow.split()) == "".join(result.stdout.split())
    assert max(map(len, narrow.splitlines()[1:])) <= 50
    (environments / "d" / "spack.yaml").unlink()
    assert run_on(environments, samples_file).exit_code == 1
    empty = run_on(environments / "d", samples_file)
    assert empty.exit_code == 2
    assert "there is no environment in this folder" in empty.stderr


def test_linked_folders(samples_file: Path, environments: Path, tmp_path: Path) -> None:
    """Links are followed, to each folder once; a folder that cannot be read is told."""
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "a").symlink_to(environments / "a")
    (linked / "again").symlink_to(environments / "a")
    (linked / "circle").symlink_to(linked)
    result = run_on(linked, samples_file, "--json")

    assert [
        environment["path"] for environment in json.loads(result.stdout)["environments"]
    ] == ["a/spack.yaml"]
    long = run_on(Path("x" * 5_000), samples_file)
    assert long.exit_code == 2
    assert "File name too long" in long.stderr


def test_a_folder_as_data(samples_file: Path, environments: Path) -> None:
    """JSON, CSV and Markdown have what they have of each environment alone."""
    said, text, markdown = (
        run_on(environments, samples_file, form).stdout
        for form in ("--json", "--csv", "--markdown")
    )
    said = json.loads(said)
    rows = list(csv.DictReader(io.StringIO(text)))
    path = environments / "a" / "spack.yaml"
    alone = json.loads(run_on(path, samples_file, "--json").stdout)

    assert (said["binary"], said["total"]) == (2, 3)
    assert said["environments"][0] == {"path": "a/spack.yaml", **alone}
    assert "broken YAML" in said["environments"][2]["error"]
    assert [(row["environment"], row["status"]) for row in rows] == [
        ("a/spack.yaml", "binary"),
        ("a/spack.yaml", "near"),
        ("b/c/spack.yaml", "binary"),
    ]
    assert run_on(path, samples_file, "--markdown").stdout in markdown + "\n"


def test_every_status_has_a_place_in_the_table() -> None:
    """The command lists them itself, because its help does not import queries."""
    assert [LOST, *OF_NODES, *STATUSES] == PRINTED_STATUSES


BY_PLATFORM = """
spack:
  definitions:
  - names: [on-linux]
    when: platform == 'linux'
  - names: [on-darwin]
    when: platform == 'darwin'
  specs: [$names]
"""


@pytest.mark.parametrize(
    ("this", "host", "platform"),
    [
        # A Mac has the platform darwin, wherever the command runs.
        (Machine("zen3", "rhel8", "linux"), "m2", "darwin"),
        (Machine("m1", "sequoia", "darwin"), "m2", "darwin"),
        # This machine, and others like it.
        (Machine("zen3", "rhel8", "linux"), "zen4", "linux"),
        (Machine("m1", "sequoia", "darwin"), "aarch64", "darwin"),
        # Other machines have some other platform than a Mac.
        (Machine("m1", "sequoia", "darwin"), "zen3", None),
    ],
)
def test_a_condition_is_about_the_platform_of_the_host(
    this: Machine,
    host: str,
    platform: str | None,
    samples_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`when:` is evaluated for the machine of `--host`; definitions are left out if its
    platform is not known.
    """
    monkeypatch.setattr(machine, "this_machine", lambda: this)
    result = run(BY_PLATFORM, samples_file, "--host", host, "--json")
    specs = {row["spec"] for row in json.loads(result.stdout)["specs"]}
    assert specs == (set() if platform is None else {f"on-{platform}"}), result.stdout
