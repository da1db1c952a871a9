"""Passwords in addresses of mirrors, which `fetch` must not print, and limits of
nothing.
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import enough, run_command
from attacks.outcome import Outcome

SECRET = "hunter2"
PASSWORDS = (
    *(
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
    ),
    *(
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
    ),
)
"""Passwords with characters that end a part of an address."""
SCHEMES = ("https", "http", "s3", "oci", "HTTPS", "ftp")
BUCKETS = ("Bucket", "BUCKET.With.Dots", "b_c", "a..b", "-a", "127.0.0.1", "x" * 64)
"""Names of buckets that S3 allowed once, or never."""
LIMITS = (
    *(
        "--jobs=0",
        "--jobs=-1",
        "--max-size=0",
        "--max-total=0",
        "--max-mirrors=0",
        "--timeout=0",
    ),
    *(
        "--deadline=0",
        "--timeout=nan",
        "--deadline=nan",
        "--retries=-1",
        "--timeout=-inf",
    ),
)


def logins(seconds: float) -> Outcome:
    """Fetch from addresses with each password, of buckets with odd names, and with each
    limit.
    """
    outcome = Outcome("logins")
    began = time.monotonic()
    with TemporaryDirectory(prefix="attacks-") as folder:
        for limit in LIMITS:
            ran = run_command(
                "fetch", "https://127.0.0.1:9", "-o", Path(folder, "o"), limit
            )
            outcome.judge(limit, ran.faults((2,)))
        addresses = [
            f"{scheme}://user:{password.format(SECRET)}@127.0.0.1:9/mirror"
            for password, scheme in product(PASSWORDS, SCHEMES)
        ]
        buckets = [f"s3://{bucket}/{SECRET}?x={SECRET}" for bucket in BUCKETS]
        for address in [*addresses, *buckets]:
            quick = ("--retries", 0, "--timeout", 1, "--deadline", 1)
            ran = run_command("fetch", address, "-o", Path(folder, "o"), *quick)
            faults = ran.faults((1, 2))
            is_bucket = address in buckets
            if SECRET in ran.output.replace(
                f"/{SECRET}", "" if is_bucket else f"/{SECRET}"
            ):
                faults.append(f"prints the password: {ran.output[-200:]!r}")
            outcome.judge(repr(address), faults)
            if enough(began, seconds):
                break
    return outcome
