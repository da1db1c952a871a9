"""`deploy/build.sh`: a facility's installation and mirror become a database, night after night."""

import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.deploy.tools import write_command
from tests.indexes import index, node, record, write_layout3
from tests.paths import ROOT
from tests.processes import completed
from tests.trees import installed, write_tree

pytestmark = pytest.mark.slow


def command(*words: object) -> CompletedProcess[str]:
    """Run the command."""
    return completed([sys.executable, "-m", "spack_cache_db", *words])


def test_a_required_binary_that_is_lost_stops_the_build(tmp_path: Path) -> None:
    """The options of `/etc/spack-cache` are used, and each night is a snapshot."""
    srv, etc = tmp_path / "srv", tmp_path / "etc"
    for folder in (srv / "pages", srv / "build", etc, tmp_path / "bin"):
        folder.mkdir(parents=True)
    script = (ROOT / "deploy" / "build.sh").read_text(encoding="utf-8")
    script = script.replace("/opt/spack-cache-db/.venv/bin/python", sys.executable)
    script = script.replace("/srv/spack-cache", str(srv)).replace("/etc/spack-cache", str(etc))
    (tmp_path / "build.sh").write_text(script, encoding="utf-8")
    tree = write_tree(tmp_path / "opt", [installed(node("tool"))])
    (etc / "build").write_text(f"--installation derecho={tree}  # a comment", encoding="utf-8")
    (etc / "mirrors").touch()
    (etc / "required").write_text("zlib\nfftw\nnever-built\n", encoding="utf-8")

    def night(day: str, *names: str) -> CompletedProcess[str]:
        records = (record(node(name)) for name in names)
        write_layout3(srv / "pages" / "main" / "root", {None: index(*records)})
        write_command(tmp_path / "bin", "date", f"echo {day}")
        path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
        return completed(["sh", tmp_path / "build.sh"], env={"PATH": path}, cwd=ROOT)

    first = night("2026-11-25", "zlib", "hdf5", "fftw")
    assert first.returncode == 0, first.stderr
    (srv / "current").mkdir()
    published = (srv / "build" / "next.db").rename(srv / "current" / "spack-cache.db")
    (srv / "build" / "next.db").write_bytes(published.read_bytes())
    assert "tool" in command("find", "tool", published, "--release", "derecho").stdout

    second = night("2026-11-26", "zlib", "hdf5", "openblas")
    assert second.returncode == 1
    assert "fftw" in second.stdout and "never-built" in second.stdout

    (etc / "required").write_text("zlib\n", encoding="utf-8")
    third = night("2026-11-26", "zlib", "hdf5", "openblas")
    assert third.returncode == 0, third.stdout + third.stderr
    difference = command("diff", "main-2026-11-25", "main-2026-11-26", srv / "build" / "next.db")
    assert "fftw" in difference.stdout and "openblas" in difference.stdout
