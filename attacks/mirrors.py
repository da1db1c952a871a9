"""Mirrors that lie to `fetch`, keep it waiting, or try to make it write and delete
other files.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.archives import damaged
from attacks.builder import Run, run_command
from attacks.outcome import Outcome, until
from tests.sources.fetch.mirrors import LAYOUT_3, below, blob_path, index, layout_3
from tests.sources.fetch.server import Answer, Handler, Site, instead, serve, status

Attack = Callable[[Site, Path, random.Random], str]
"""A function that prepares a hostile server for a fetch into a folder, and returns its
address.
"""
DEADLINE = 3
"""Seconds that `fetch` may take for a file, including retries."""
MOST_SECONDS = 15.0
"""Time and processor time of one run."""
MEGABYTE = 10**6
INDEX = index("zlib")
ABROAD = (
    "../../../x",
    "/etc/x",
    "a/../../x",
    "..",
    "",
    "a\0b",
    "é/\u202e",
    "x" * 5_000,
)
"""Names that lead out of a folder, or are invalid."""


def mirrors(seconds: float) -> Outcome:
    """Fetch from each hostile server, into folders that have other files."""
    outcome = Outcome("mirrors")
    chance = random.Random(17)
    longest = 0.0
    for name, prepare in until(seconds, cycle(ATTACKS.items())):
        with TemporaryDirectory(prefix="attacks-") as folder, serve() as site:
            waited, faults = _judged_fetch(Path(folder), site, prepare, chance)
        longest = max(longest, waited)
        outcome.judge(name, faults)
    outcome.note = f"the longest took {longest:.1f} s"
    return outcome


def _judged_fetch(
    folder: Path, site: Site, prepare: Attack, chance: random.Random
) -> tuple[float, list[str]]:
    """Fetch from a hostile server; return the seconds and the faults."""
    output = folder / "in" / "mirrors"
    output.mkdir(parents=True)
    strangers = _strangers(folder)
    url = prepare(site, output, chance)

    started = time.monotonic()
    ran = _fetch(url, output)
    waited = time.monotonic() - started

    faults = ran.faults((0, 1, 2), MOST_SECONDS)
    if waited > MOST_SECONDS:
        faults.append(f"took {waited:.0f} s")
    # No file of another program is removed, and none is written outside the output.
    for path in strangers:
        if not path.exists():
            faults.append(f"removed {path}")
    expected = {output.parent, output, *output.rglob("*"), *strangers}
    for path in sorted(folder.rglob("*")):
        if path not in expected:
            faults.append(f"wrote {path}")
    return waited, faults


def _fetch(url: str, output: Path) -> Run:
    limits = ("--timeout", 1, "--deadline", DEADLINE, "--retries", 1)
    return run_command("fetch", url, "-o", output, *limits)


def _strangers(folder: Path) -> list[Path]:
    """Write files of other programs in the folder and around it."""
    output = folder / "in" / "mirrors"
    paths = [
        folder / "x",
        output.parent / "x",
        output / ".film.mkv.part",
        output / "notes" / "a.json",
    ]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of another program", encoding="utf-8")
    return [*paths, output / "notes"]


def _endless(handler: Handler, _: bytes) -> None:
    """Send without an end, as fast as possible."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    piece = b"[" * 65_536
    with suppress(OSError):
        while True:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))


def _slow(handler: Handler, _: bytes) -> None:
    """Send a byte now and then, more often than the time-out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    with suppress(OSError):
        for _half_second in range(60):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.5)


def _headers(handler: Handler, _: bytes) -> None:
    """Send headers without an end."""
    handler.send_response(200)
    with suppress(OSError):
        for number in range(10**6):
            handler.wfile.write(b"x-%d: %b\r\n" % (number, b"a" * 1_000))


def _always(answer: Answer) -> Attack:
    """Return an attack that gives this answer to every request."""

    def attack(site: Site, output: Path, chance: random.Random) -> str:
        site.serve(layout_3(INDEX))
        for path in (f"/{LAYOUT_3}", f"/{blob_path(INDEX)}", "/build_cache/index.json"):
            site.always[path] = answer
        return site.url

    return attack


def _blob(answer: Answer) -> Attack:
    """Return an attack whose manifest is good, and whose index is not."""

    def attack(site: Site, output: Path, chance: random.Random) -> str:
        site.serve(layout_3(INDEX))
        site.always[f"/{blob_path(INDEX)}"] = answer
        return site.url

    return attack


def _bomb(site: Site, output: Path, chance: random.Random) -> str:
    """Send an index that unpacks to 200 MB."""
    packed = gzip.compress(bytes(200 * MEGABYTE))
    attack = _blob(instead(packed, content_encoding="gzip"))
    return attack(site, output, chance)


def _circle(site: Site, output: Path, chance: random.Random) -> str:
    """Redirect to an address that redirects back."""
    site.always[f"/{LAYOUT_3}"] = status(302, location="/a")
    site.always["/a"] = status(307, location=f"/{LAYOUT_3}")
    return site.url


def _release_names(site: Site, output: Path, chance: random.Random) -> str:
    """Give releases and stacks names that lead elsewhere."""
    url = f"{site.url}/m/{LAYOUT_3}"
    releases = {}
    for release in chance.sample(ABROAD, 4):
        releases[release] = [{"label": chance.choice(ABROAD), "url": url}]
    files = below("m", layout_3(INDEX))
    files["all.json"] = json.dumps(releases).encode()
    site.serve(files)
    return f"{site.url}/all.json"


def _many_mirrors(site: Site, output: Path, chance: random.Random) -> str:
    """Name a hundred thousand mirrors."""
    stacks = []
    for number in range(100_000):
        stacks.append({"label": f"s{number}", "url": f"{site.url}/{number}"})
    site.serve({"all.json": json.dumps({"develop": stacks}).encode()})
    return f"{site.url}/all.json"


def _changed_records(site: Site, output: Path, chance: random.Random) -> str:
    """Change the records of an earlier run so that they name other files."""
    site.serve(layout_3(INDEX))
    _fetch(site.url, output)
    for path in output.rglob(".fetched.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        for value in record.values():
            if isinstance(value, dict):
                value.update({name: {} for name in ABROAD})
            elif isinstance(value, list):
                value.extend(ABROAD)
        path.write_text(json.dumps(record), encoding="utf-8")
    return site.url


def _damaged_files(site: Site, output: Path, chance: random.Random) -> str:
    """Damage the manifest and the index."""
    files = layout_3(INDEX)
    site.serve({path: damaged(chance, data) for path, data in files.items()})
    return site.url


ATTACKS: dict[str, Attack] = {
    "an answer without an end": _always(_endless),
    "an index without an end": _blob(_endless),
    "a byte now and then": _blob(_slow),
    "headers without an end": _always(_headers),
    # Redirects and refusals.
    "redirects in a circle": _circle,
    "redirects elsewhere": _always(status(302, location="file:///etc/passwd")),
    "an hour's pause": _always(status(503, retry_after="3600")),
    "a pause of ages": _always(
        status(429, retry_after="Thu, 01 Jan 99999999 00:00:00 GMT")
    ),
    "a realm that is not an address": _always(
        status(401, www_authenticate='Bearer realm="https://[",service="x"')
    ),
    # Headers that lie.
    "a tag that no request can repeat": _always(instead(INDEX, etag='"\xe9\xff"')),
    "a length that lies": _blob(instead(INDEX, content_length=10**15)),
    "a bomb of gzip": _bomb,
    "an unknown encoding": _blob(instead(INDEX, content_encoding="gzip, gzip, br")),
    # Names and records.
    "names that lead elsewhere": _release_names,
    "a hundred thousand mirrors": _many_mirrors,
    "records of an earlier run": _changed_records,
    "damaged files": _damaged_files,
}
