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
from attacks.builder import Run, enough, run_command
from attacks.outcome import Outcome
from tests.sources.fetch.mirrors import LAYOUT_3, below, blob_path, index, layout_3
from tests.sources.fetch.server import Answer, Handler, Site, instead, serve, status

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
    outcome, chosen, began = Outcome("mirrors"), random.Random(17), time.monotonic()
    longest = 0.0
    for name, attack in cycle(ATTACKS.items()):
        with TemporaryDirectory(prefix="attacks-") as folder, serve() as site:
            output = Path(folder, "in", "mirrors")
            output.mkdir(parents=True)
            strangers = _strangers(Path(folder))
            url = attack(site, output, chosen)
            started = time.monotonic()
            ran = _fetch(url, output)
            waited = time.monotonic() - started
            faults = ran.faults((0, 1, 2), MOST_SECONDS)
            if waited > MOST_SECONDS:
                faults.append(f"took {waited:.0f} s")
            faults += [f"removed {path}" for path in strangers if not path.exists()]
            outside = {*Path(folder).rglob("*")} - {
                *output.rglob("*"),
                output,
                output.parent,
                *strangers,
            }
            faults += [f"wrote {path}" for path in sorted(outside)]
        longest = max(longest, waited)
        outcome.judge(name, faults)
        if enough(began, seconds):
            break
    outcome.note = f"the longest took {longest:.1f} s"
    return outcome


def _fetch(url: str, output: Path) -> Run:
    limits = ("--timeout", 1, "--deadline", DEADLINE, "--retries", 1)
    return run_command("fetch", url, "-o", output, *limits)


def _strangers(folder: Path) -> list[Path]:
    """Write files of other programs in the folder and around it."""
    output = folder / "in" / "mirrors"
    paths = (
        folder / "x",
        output.parent / "x",
        output / ".film.mkv.part",
        output / "notes" / "a.json",
    )
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
        for _second in range(60):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.5)


def _headers(handler: Handler, _: bytes) -> None:
    """Send headers without an end."""
    handler.send_response(200)
    with suppress(OSError):
        for number in range(10**6):
            handler.wfile.write(b"x-%d: %b\r\n" % (number, b"a" * 1_000))


def _always(answer: Answer) -> Callable[[Site, Path, random.Random], str]:
    """Return an attack that gives this answer to every request."""

    def attack(site: Site, output: Path, chosen: random.Random) -> str:
        site.serve(layout_3(INDEX))
        for path in (f"/{LAYOUT_3}", f"/{blob_path(INDEX)}", "/build_cache/index.json"):
            site.always[path] = answer
        return site.url

    return attack


def _blob(answer: Answer) -> Callable[[Site, Path, random.Random], str]:
    """Return an attack whose manifest is good, and whose index is not."""

    def attack(site: Site, output: Path, chosen: random.Random) -> str:
        site.serve(layout_3(INDEX))
        site.always[f"/{blob_path(INDEX)}"] = answer
        return site.url

    return attack


def _bomb(site: Site, output: Path, chosen: random.Random) -> str:
    packed = gzip.compress(bytes(200 * MEGABYTE))
    return _blob(instead(packed, content_encoding="gzip"))(site, output, chosen)


def _circle(site: Site, output: Path, chosen: random.Random) -> str:
    site.always = {
        f"/{LAYOUT_3}": status(302, location="/a"),
        "/a": status(307, location=f"/{LAYOUT_3}"),
    }
    return site.url


def _release_names(site: Site, output: Path, chosen: random.Random) -> str:
    """Give releases and stacks names that lead elsewhere."""
    names = {
        name: [{"label": chosen.choice(ABROAD), "url": f"{site.url}/m/{LAYOUT_3}"}]
        for name in chosen.sample(ABROAD, 4)
    }
    site.serve({"all.json": json.dumps(names).encode()} | below("m", layout_3(INDEX)))
    return f"{site.url}/all.json"


def _many_mirrors(site: Site, output: Path, chosen: random.Random) -> str:
    names = [
        {"label": f"s{number}", "url": f"{site.url}/{number}"}
        for number in range(100_000)
    ]
    site.serve({"all.json": json.dumps({"develop": names}).encode()})
    return f"{site.url}/all.json"


def _changed_records(site: Site, output: Path, chosen: random.Random) -> str:
    """Change the records of an earlier run so that they name other files."""
    site.serve(layout_3(INDEX))
    _fetch(site.url, output)
    for record in output.rglob(".fetched.json"):
        text = record.read_text(encoding="utf-8")
        value = json.loads(text)
        for key in [*value]:
            if isinstance(value[key], dict):
                value[key] |= {name: {} for name in ABROAD}
            elif isinstance(value[key], list):
                value[key] += ABROAD
        record.write_text(json.dumps(value), encoding="utf-8")
    return site.url


def _damaged_files(site: Site, output: Path, chosen: random.Random) -> str:
    files = layout_3(INDEX)
    site.serve({path: damaged(chosen, data) for path, data in files.items()})
    return site.url


ATTACKS: dict[str, Callable[[Site, Path, random.Random], str]] = {
    "an answer without an end": _always(_endless),
    "an index without an end": _blob(_endless),
    "a byte now and then": _blob(_slow),
    "headers without an end": _always(_headers),
    "redirects in a circle": _circle,
    "redirects elsewhere": _always(status(302, location="file:///etc/passwd")),
    "an hour's pause": _always(status(503, retry_after="3600")),
    "a pause of ages": _always(
        status(429, retry_after="Thu, 01 Jan 99999999 00:00:00 GMT")
    ),
    "a realm that is not an address": _always(
        status(401, www_authenticate='Bearer realm="https://[",service="x"')
    ),
    "a tag that no request can repeat": _always(instead(INDEX, etag='"\xe9\xff"')),
    "a length that lies": _blob(instead(INDEX, content_length=10**15)),
    "a bomb of gzip": _bomb,
    "an unknown encoding": _blob(instead(INDEX, content_encoding="gzip, gzip, br")),
    "names that lead elsewhere": _release_names,
    "a hundred thousand mirrors": _many_mirrors,
    "records of an earlier run": _changed_records,
    "damaged files": _damaged_files,
}
