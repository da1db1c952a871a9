"""Sites of databases that are damaged or hostile, and what their visitors see."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import enough, run
from attacks.databases import CHANGES
from attacks.outcome import Outcome
from attacks.requests import SECONDS
from attacks.target import Reply, Target
from benchmarks.server import ServerError, free_port, start, stop, wait_until_up
from spack_cache_db.inspect_file import inspect_path
from tests.site.cache import write_pages

DAMAGED = b"is damaged"
"""Words of the page that visitors of a damaged database see."""
PATHS = (
    *(
        "/",
        "/packages",
        "/releases",
        "/stacks",
        "/about",
        "/find?q=hdf5",
        "/find.json?q=*",
    ),
    *(
        "/package/hdf5",
        "/package/hdf5.json",
        "/package/zlib",
        "/release/develop",
        "/stack/e4s",
    ),
    *("/diff/develop...v0.23.1", "/coverage/develop", "/feed.atom", "/badge/hdf5.svg"),
    *("/suggest.json?q=h", "/find.csv?q=%2Bmpi", "/cover.json?q=hdf5", "/sitemap.xml"),
    *("/spack-cache/builds.json", "/spack-cache/packages", "/spack-cache/listings.csv"),
    *(
        "/spack-cache/build_listings?_facet=release",
        "/spack-cache/specs/1",
        "/-/health.json",
    ),
)
LONGEST_LOG = 1_000
"""Characters of a line of log."""


def hostile_sites(seconds: float) -> Outcome:
    """Serve a database that was changed in each way, and ask for pages of each kind."""
    outcome = Outcome("hostile sites")
    chosen = random.Random(29)
    began = time.monotonic()
    started = 0
    with TemporaryDirectory(prefix="attacks-") as folder:
        good = Path(folder, "good.db")
        bad = Path(folder, "served", "spack-cache.db")
        bad.parent.mkdir()
        run("build", write_pages(Path(folder, "pages")), "-o", good)
        for name, change in cycle(CHANGES.items()):
            bad.write_bytes(good.read_bytes())
            inspect_path(bad).unlink(missing_ok=True)
            change(bad, chosen)
            log = Path(folder, "log")
            try:
                with _serving(bad, log) as target:
                    started += 1
                    for path in PATHS:
                        reply = target.ask(path)
                        outcome.judge(f"{path} of {name}", _faults(target, reply))
            except ServerError:
                # A database that is not ours or damaged is refused with a sentence.
                outcome.judge(f"serve of {name}", [])
            outcome.judge(f"the log of {name}", _log_faults(log))
            if enough(began, seconds):
                break
    outcome.note = f"{started} sites"
    return outcome


@contextmanager
def _serving(file: Path, log: Path) -> Iterator[Target]:
    """Serve a file with one process, and write its log."""
    port = free_port()
    with log.open("wb") as stream:
        one_process = ("--workers", "1")
        process = start(file, port, one_process, is_proxied=False, log=stream)
    try:
        wait_until_up(port, process)
        yield Target(file, process.pid, port)
    finally:
        stop(process)


def _faults(target: Target, reply: Reply) -> list[str]:
    faults = target.betrayals(reply)
    if reply.status == 503 and DAMAGED not in reply.body:
        faults.append(f"a 503 that does not say why: {reply.body[:120]!r}")
    if b"<script>'" in reply.body or b"\x1b[" in reply.body:
        faults.append("shows markup or escapes of the database")
    if reply.cpu_seconds > SECONDS:
        faults.append(f"{reply.cpu_seconds:.1f} s of CPU")
    return faults


def _log_faults(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace")
    faults = []
    for word in ("Traceback", "unexpected", "report it", "\x1b["):
        if word in text:
            place = text.index(word)
            faults.append(f"the log has {word!r}: {text[place - 60 : place + 400]!r}")
    if any(len(line) > LONGEST_LOG for line in text.splitlines()):
        faults.append("the log has a long line")
    return faults
