"""Passwords in addresses of mirrors, which `fetch` must not print, and limits of
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import run_command
from attacks.outcome import Outcome, until
from tests.sources.fetch.server import Site, serve, status

SECRET = "hunter2"
PASSWORDS = (
    "{}",
    "a/{}",
    "{}/a",
    "a?{}",
    "a#{}",
    "a@{}",
    "{}@a",
    "a:{}",
    "a%2F{}",
    "a%40{}",
    "[{}]",
    "a//{}",
    "a\\{}",
    "a {}",
    "a\n{}",
    "a&{}=",
    "a={}",
    "a;{}",
    "é{}",
    "%zz{}",
    "::{}",
    "a/@{}",
)
"""Passwords with characters that end a part of an address."""
SCHEMES = ("https", "http", "s3", "oci", "HTTPS", "ftp")
BUCKETS = ("Bucket", "BUCKET.With.Dots", "b_c", "a..b", "-a", "127.0.0.1", "x" * 64)
"""Names of buckets that S3 allowed once, or never."""
QUICK = ("--retries", 0, "--timeout", 1, "--deadline", 1)
MANIFEST = "/v2/caches/mine/manifests/index.spack"
REALMS = (
    "{}/token",
    "{}/token?a=b",
    "{}@/token",
    "http://user:pass@{host}/token",
    "HTTP://{host}/token",
    "http://localhost:{port}/token",
    "http://[::ffff:127.0.0.1]:{port}/token",
    "http://127.1:{port}/token",
)
"""Spellings of another port of this machine, as the server that gives tokens."""
LIMITS = (
    "--jobs=0",
    "--jobs=-1",
    "--max-size=0",
    "--max-total=0",
    "--max-mirrors=0",
    "--timeout=0",
    "--deadline=0",
    "--timeout=nan",
    "--deadline=nan",
    "--retries=-1",
    "--timeout=-inf",
)


def logins(seconds: float) -> Outcome:
    """Fetch with impossible limits, from registries that ask for a login elsewhere,
    from addresses with each password, and from buckets with odd names.
    """
    outcome = Outcome("logins")
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        output = folder / "o"
        for limit in LIMITS:
            ran = run_command("fetch", "https://127.0.0.1:9", "-o", output, limit)
            outcome.judge(limit, ran.faults((2,)))

        with serve() as registry, serve() as stranger:
            for realm in REALMS:
                faults = _challenged(registry, stranger, realm, folder)
                outcome.judge(f"a login for the realm {realm}", faults)

        for address in until(seconds, _addresses()):
            ran = run_command("fetch", address, "-o", output, *QUICK)
            faults = ran.faults((1, 2))
            printed = ran.output
            # The path in the address of a bucket is not secret.
            if address.startswith("s3://") and "@" not in address:
                printed = printed.replace(f"/{SECRET}", "")
            if SECRET in printed:
                faults.append(f"prints the password: {ran.output[-200:]!r}")
            outcome.judge(repr(address), faults)
    return outcome


def _addresses() -> Iterator[str]:
    """Yield addresses with each password in each scheme, and of each bucket."""
    for password, scheme in product(PASSWORDS, SCHEMES):
        yield f"{scheme}://user:{password.format(SECRET)}@127.0.0.1:9/mirror"
    for bucket in BUCKETS:
        yield f"s3://{bucket}/{SECRET}?x={SECRET}"


def _challenged(registry: Site, stranger: Site, realm: str, folder: Path) -> list[str]:
    """Return the faults of a fetch whose registry asks for a login at another port."""
    host = stranger.url.removeprefix("http://")
    _, _, port = host.rpartition(":")
    address = realm.format(stranger.url, host=host, port=port)
    challenge = f'Bearer realm="{address}"'
    registry.always[MANIFEST] = status(401, www_authenticate=challenge)
    stranger.files["/token"] = b'{"token": "of-a-stranger"}'

    # The mirror has a login, and the registry is used over plain HTTP.
    image = registry.url.replace("http://", "oci://") + "/caches/mine"
    mirror = {"url": image, "access_pair": ["user", SECRET]}
    mirrors = folder / "mirrors.yaml"
    mirrors.write_text(json.dumps({"mirrors": {"mine": mirror}}), encoding="utf-8")
    output = folder / "realms"
    options = ("--mirrors", mirrors, "--plain-http", "-o", output, *QUICK)
    count_before = len(registry.requests)
    ran = run_command("fetch", *options)

    faults = ran.faults((1, 2))
    if len(registry.requests) == count_before:
        faults.append("the registry was not asked: it tests nothing")
    if SECRET in ran.output:
        faults.append(f"prints the password: {ran.output[-200:]!r}")
    if stranger.secrets():
        faults.append("another port received the login")
    return faults
