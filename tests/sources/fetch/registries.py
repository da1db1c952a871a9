"""Debian's docker-registry, with and without tokens, and the fake images that Spack pushes."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from benchmarks.server import free_port
from tests.processes import PATIENCE
from tests.programs import needed, serving
from tests.sources.fetch.server import Answer, Handler

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@contextmanager
def registry(folder: Path, auth: str = "") -> Iterator[str]:
    """Run a registry that keeps its images in a folder while the context lasts; give its host."""
    command = needed("docker-registry", "docker-registry")
    folder.mkdir(exist_ok=True)
    port = free_port()
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/images}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n{auth}"
    )
    with serving([command, "serve", str(config)], port, folder / "registry.log"):
        yield f"127.0.0.1:{port}"


def push(host: str, name: str, layers: Sequence[bytes], tag: str = "index.spack") -> None:
    """Push an image of these layers by the registry's API, as Spack pushes an index."""
    with httpx.Client(base_url=f"http://{host}/v2/{name}", verify=False) as client:
        described = [_pushed(client, data) for data in layers]
        config = _pushed(client, b"{}")
        image = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
            "layers": [
                {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **each}
                for each in described
            ],
        }
        answer = client.put(
            f"/manifests/{tag}", content=json.dumps(image), headers={"Content-Type": MANIFEST}
        )
        assert answer.status_code == 201, answer.text


def _pushed(client: httpx.Client, data: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    place = httpx.URL(client.post("/blobs/uploads/").headers["Location"])
    answer = client.put(place.copy_merge_params({"digest": digest}), content=data)
    assert answer.status_code == 201, answer.text
    return {"digest": digest, "size": len(data)}


class Tokens:
    """Who gives tokens to anybody: a key of its own, which the registry is told of."""

    def __init__(self, folder: Path) -> None:
        self._key, self.certificate = folder / "key.pem", folder / "certificate.pem"
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tokens", "-days", "2"),
            *("-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def auth(self, realm: str) -> str:
        """Return the registry's configuration that sends whoever asks to `realm`."""
        return (
            f"auth: {{token: {{realm: '{realm}', service: here, issuer: tests, "
            f"rootcertbundle: {self.certificate}}}}}\n"
        )

    def answer(self) -> Answer:
        """Return how a server gives the token that a request's query asks for."""

        def answer(handler: Handler, data: bytes) -> None:
            query = parse_qs(urlsplit(handler.path).query)
            _, name, actions = query["scope"][0].split(":")
            token = self._token(query["service"][0], name, actions.split(","))
            handler.send(200, json.dumps({"token": token}).encode())

        return answer

    def _token(self, service: str, name: str, actions: list[str]) -> str:
        der = _openssl("x509", "-in", str(self.certificate), "-outform", "DER")
        now = int(time.time())
        head = {"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(der).decode()]}
        claims = {
            "iss": "tests",
            "sub": "",
            "aud": service,
            "nbf": now - 60,
            "exp": now + 600,
            "iat": now,
            "jti": "1",
            "access": [{"type": "repository", "name": name, "actions": actions}],
        }
        text = f"{_segment(json.dumps(head).encode())}.{_segment(json.dumps(claims).encode())}"
        signature = _openssl("dgst", "-sha256", "-sign", str(self._key), data=text.encode())
        return f"{text}.{_segment(signature)}"


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _openssl(*arguments: str, data: bytes = b"") -> bytes:
    command = [needed("openssl", "openssl"), *arguments]
    # Its output is bytes.
    done = subprocess.run(  # noqa: TID251
        command, input=data, capture_output=True, check=True, timeout=PATIENCE
    )
    return done.stdout
