"""An object store that checks signatures by itself, as Amazon S3 describes them.

"Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)" of
the Amazon S3 API Reference.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from functools import reduce

from tests.sources.fetch.server import Answer, Handler, good

_SESSION = "x-amz-security-token"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<user>[^/]+)/(?P<scope>\d{8}/[\w-]+/s3/aws4_request),\s*"
    r"SignedHeaders=(?P<signed>[\w;-]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)


def signature(
    path: str,
    headers: Mapping[str, str],
    signed: str,
    scope: str,
    date: str,
    secret: str,
) -> str:
    """Return the signature of a GET request without a query; names of headers are lower
    case.
    """
    lines = [
        f"{name}:{' '.join(headers[name].split())}\n" for name in signed.split(";")
    ]
    payload = headers["x-amz-content-sha256"]
    request = "\n".join(["GET", path, "", "".join(lines), signed, payload])
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = reduce(_keyed, scope.split("/"), f"AWS4{secret}".encode())
    return _keyed(key, "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])).hex()


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def for_login(
    user: str, secret: str, session: str | None = None, region: str = ""
) -> Answer:
    """Answer as a good server whoever signs with this login, and others with 403.

    With a region, a signature for another one is refused as Amazon S3 does.
    """

    def answer(handler: Handler, data: bytes) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        match = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if match is not None and region and f"/{region}/" not in match["scope"]:
            handler.send(400, b"", x_amz_bucket_region=region)
            return
        is_user = match is not None and (match["user"], headers.get(_SESSION)) == (
            user,
            session,
        )
        if match is not None and is_user and _is_signed(handler, match, secret):
            good(handler, data)
        else:
            handler.send(403, b"")

    return answer


def _is_signed(handler: Handler, match: re.Match[str], secret: str) -> bool:
    headers = {name.lower(): value for name, value in handler.headers.items()}
    amazon = {name for name in headers if name.startswith("x-amz-")}
    if not {"host", "x-amz-content-sha256", "x-amz-date"} | amazon <= set(
        match["signed"].split(";")
    ):
        return False
    date = headers["x-amz-date"]
    made = signature(
        handler.path, headers, match["signed"], match["scope"], date, secret
    )
    return hmac.compare_digest(made, match["signature"])
