"""Installed trees at the command line."""

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.commands import run
from tests.documents import fences, typed
from tests.indexes import index, node, record
from tests.pagetexts import page, spec, write
from tests.paths import ROOT
from tests.processes import completed
from tests.serving import eventually
from tests.trees import real_tree, write_tree


@pytest.mark.slow
def test_the_documented_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of docs/installed.md that ends by itself has an answer on a real
    tree.
    """
    monkeypatch.chdir(tmp_path)
    tree = write_tree(tmp_path / "opt", real_tree())
    hdf5 = [{"full": "hdf5/1.14.6", "path": "/m/hdf5/1.14.6", "versionName": "1.14.6"}]
    Path("modules.json").write_text(json.dumps([{"package": "hdf5", "versions": hdf5}]))
    mirror = tmp_path / "mirrors" / "develop" / "e4s"
    mirror.mkdir(parents=True)
    (mirror / "index.json").write_bytes(index(record(node("a"))))
    commands = [
        each
        for fence in fences(ROOT / "docs" / "installed.md")
        for each in typed(fence)
    ]
    ran = 0
    other = write_tree(tmp_path / "casper", real_tree()[:-1])
    places = dict.fromkeys(
        ('"$(spack location --install-root)"', "/opt/software"), tree
    )
    places |= {"/glade/derecho/opt": tree, "/glade/casper/opt": other}

    for command in commands:
        text = command.command
        for place, path in places.items():
            text = text.replace(place, str(path))
        # A line of a script may be a comment.
        words = shlex.split(text, comments=True)
        if words[:1] != ["spack-cache-db"] or words[1] == "serve":
            continue
        arguments = words[1:]
        result = run(*arguments)
        notes = [
            line for line in result.stderr.splitlines() if "1 module load" not in line
        ]
        assert (result.exit_code, notes) == (arguments[0] == "diff", []), command
        ran += 1
    assert ran >= 5


@pytest.mark.slow
def test_info_has_the_options_of_a_build(tmp_path: Path) -> None:
    """Options that a later build repeats are in words."""
    tree = write_tree(tmp_path / "derecho" / "opt", real_tree())
    output = tmp_path / "x.db"
    named = ["--installation", f"derecho={tree}", "--first", "derecho"]
    built = run("build", *named, "--without-paths", "-o", output)
    assert built.exit_code == 0, built.output

    lines = run("info", output).stdout.splitlines()
    (options,) = [line for line in lines if line.startswith("options ")]
    assert options.split(maxsplit=1)[1] == (
        "derecho comes first; the paths of installed specs are left out"
    )
    assert lines[0] == f"{output}: 1.2 MB"


def test_a_database_of_installations_has_no_binaries(tmp_path: Path) -> None:
    """`build` and `info` count installed specs and installations, unless a mirror or
    pages are in the database too.
    """
    tree = write_tree(tmp_path / "opt", real_tree())
    pages = write(tmp_path / "pages", zlib=page("zlib", specs=[spec(1)]))

    for sources, noun, others in (
        ([tree], "installed specs", "installations"),
        ([tree, pages], "binaries", "releases"),
    ):
        built = run("build", *sources, "-o", tmp_path / "x.db")
        assert built.exit_code == 0, built.output
        info = run("info", tmp_path / "x.db").stdout
        names = [line.split("  ")[0] for line in info.splitlines()[1:3]]
        assert f" {noun}, " in built.stdout + built.stderr
        assert names == [noun, others]
        assert ("binar" in built.output + info) == (noun == "binaries")


def test_the_nightly_script_serves_what_it_built(tmp_path: Path) -> None:
    """The documented script builds and serves; on the second night the server stays."""
    tree = write_tree(tmp_path / "opt", real_tree())
    (script,) = (
        fence.text
        for fence in fences(ROOT / "docs" / "installed.md")
        if "serve.pid" in fence.text
    )
    text = script.replace("/opt/software", str(tree)).replace("8001", "0")
    (tmp_path / "nightly.sh").write_text(text)
    program = tmp_path / ".venv" / "bin" / "spack-cache-db"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("spack-cache-db"))
    log = tmp_path / "serve.log"

    completed(["sh", tmp_path / "nightly.sh"], cwd="/", check=True)
    eventually(lambda: "Serving software.db on http://" in log.read_text())
    server = int((tmp_path / "serve.pid").read_text())
    completed(["sh", tmp_path / "nightly.sh"], cwd="/", check=True)
    assert int((tmp_path / "serve.pid").read_text()) == server
    os.kill(server, signal.SIGTERM)
    # The second night has nothing new.
    assert "unchanged" in (tmp_path / "build.log").read_text()
