"""A facility, from its installations and its mirror to a site, over two nights."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess
from threading import Thread

import httpx
import pytest

from benchmarks.nginx import nginx
from benchmarks.server import serving
from tests.indexes import edge, hash_of, index, node, record, write_layout3
from tests.paths import ROOT
from tests.processes import PATIENCE, completed
from tests.programs import needed
from tests.trees import installed, write_tree

pytestmark = pytest.mark.slow

MPICH = {
    "path": "/opt/cray/mpich/8.1",
    "module": ["cray-mpich/8.1.27"],
    "extra_attributes": {},
}


class Facility:
    """Two machines, a mirror that is served on loopback, and the folders of
    `deploy/`.
    """

    def __init__(self, folder: Path, mirror: str) -> None:
        self.folder = folder
        self.mirror = mirror
        self.srv = folder / "srv"
        self.etc = folder / "etc"
        for folder_of_site in (self.srv / "pages", self.srv / "build", self.etc):
            folder_of_site.mkdir(parents=True)
        script = (ROOT / "deploy" / "build.sh").read_text(encoding="utf-8")
        places: dict[str, object] = {
            "/opt/spack-cache-db/current/.venv/bin/python": sys.executable,
            "/srv/spack-cache": self.srv,
            "/etc/spack-cache": self.etc,
        }
        for name, path in places.items():
            script = script.replace(name, str(path))
        (folder / "build.sh").write_text(script, encoding="utf-8")

    def run(self, *words: object) -> CompletedProcess[str]:
        """Run the command."""
        return completed([sys.executable, "-m", "spack_cache_db", *map(str, words)])

    def night(self, day: str) -> CompletedProcess[str]:
        """Fetch the mirror and build, as the services do in one night."""
        fetched = self.run(
            "fetch", self.mirror, "-o", self.srv / "pages", "--release", "main"
        )
        assert fetched.returncode == 0, fetched.stderr
        date = self.folder / "bin" / "date"
        date.parent.mkdir(exist_ok=True)
        date.write_text(f"#!/bin/sh\necho {day}\n", encoding="utf-8")
        date.chmod(0o755)
        path = f"{date.parent}:/usr/bin:/bin"
        return completed(["sh", self.folder / "build.sh"], env={"PATH": path}, cwd=ROOT)

    def publish(self) -> Path:
        """Put the new database where it is served, as `publish.sh` does."""
        served = self.srv / "published"
        served.mkdir(exist_ok=True)
        for name in ("db", "inspect.json"):
            data = (self.srv / "build" / f"next.{name}").read_bytes()
            (served / f"spack-cache.{name}").write_bytes(data)
        return served / "spack-cache.db"


@contextmanager
def served_folder(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=folder)
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def published(file: Path, folder: Path) -> Iterator[httpx.Client]:
    """Serve a database behind the shipped nginx; yield a client of it."""
    folder.mkdir()
    with serving(file) as server, nginx(folder, server.port, published=folder) as port:
        yield httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False
        )


def write_machine(folder: Path, version: str) -> Path:
    """Write an installation with an external MPI, and hdf5 built with it; return its
    folder.
    """
    mpich = node("cray-mpich", version="8.1.27", external=MPICH)
    hdf5 = node("hdf5", edge("cray-mpich", "link", virtuals=("mpi",)), version=version)
    hdf5["hash"] = hash_of(f"hdf5-{version}")
    records = [installed(mpich, path=MPICH["path"]), installed(hdf5, explicit=True)]
    return write_tree(folder, records)


def write_mirror(folder: Path, *names: str) -> None:
    """Write a mirror with a binary of each name."""
    write_layout3(folder, {None: index(*(record(node(name)) for name in names))})


def test_two_machines_and_a_mirror_become_a_site(tmp_path: Path) -> None:
    """Machines, modules and the mirror are found; a lost binary is noticed and not
    published.
    """
    needed("nginx", "nginx-light")
    mirror = tmp_path / "mirror"
    machines = tmp_path / "machines"
    write_mirror(mirror, "zlib", "hdf5", "fftw")
    versions = {"derecho": "1.14.3", "casper": "1.12.2"}
    with served_folder(mirror) as address:
        facility = Facility(tmp_path / "facility", address)
        options = []
        for name, version in versions.items():
            tree = write_machine(machines / name / "opt", version)
            modules = machines / name / "modules" / "module-index.yaml"
            modules.parent.mkdir()
            lines = (
                f"    path: /modules/hdf5/{version}.lua\n    use_name: hdf5/{version}\n"
            )
            text = f"module_index:\n  {hash_of(f'hdf5-{version}')}:\n{lines}"
            modules.write_text(text, encoding="utf-8")
            options += [f"--installation {name}={tree}", f"--modules {name}={modules}"]
        (facility.etc / "build").write_text("\n".join(options), encoding="utf-8")
        (facility.etc / "mirrors").touch()
        (facility.etc / "required").write_text(
            "zlib\nfftw\nnever-built\n", encoding="utf-8"
        )

        first = facility.night("2026-11-25")
        assert first.returncode == 0, first.stderr
        file = tmp_path / "first.db"
        shutil.copy(facility.publish(), file)
        mpich = facility.run("find", "cray-mpich", file)
        assert "provided by the system" in mpich.stdout
        assert (
            "cray-mpich/8.1.27"
            in facility.run("find", "cray-mpich", file, "--install").stdout
        )
        install = facility.run("find", "hdf5@1.14", file, "--install").stdout
        assert "module load hdf5/1.14.3" in install
        assert facility.run("diff", "derecho", "casper", file).returncode == 1
        with published(file, tmp_path / "nginx1") as client:
            page = client.get("/package/hdf5").text
            assert all(
                name in page and version in page for name, version in versions.items()
            )
            assert "module load hdf5/1.14.3" in page

        write_mirror(mirror, "zlib", "hdf5", "openblas")
        second = facility.night("2026-11-26")
        assert second.returncode == 1
        assert "fftw" in second.stdout
        assert "never-built" in second.stdout

        (facility.etc / "required").write_text("zlib\n", encoding="utf-8")
        third = facility.night("2026-11-26")
        assert third.returncode == 0, third.stdout + third.stderr
        lost = facility.run(
            "diff", "--databases", file, facility.srv / "build" / "next.db"
        )
        assert "fftw" in lost.stdout
        newest = facility.publish()
        lost_binary = facility.run("find", "fftw", newest, "--install")
        assert "has lost its only binary, last listed" in lost_binary.stderr
        with published(newest, tmp_path / "nginx2") as client:
            feed = client.get("/feed.atom").text
            assert "main-2026-11-26" in feed
            assert client.get("/find.json?q=fftw").status_code == 404
            changes = client.get("/diff/main-2026-11-25...main-2026-11-26.json").text
            assert "fftw" in changes
            assert "openblas" in changes
