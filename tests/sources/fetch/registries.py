"""Debian's docker-registry, and the fake images that Spack pushes."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.server import free_port
from tests.programs import needed
from tests.serving import running

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@contextmanager
def registry(folder: Path, auth: str = "") -> Iterator[str]:
    """Run a registry that keeps its images in a folder while the context lasts; give
    its host.
    """
    command = needed("docker-registry", "docker-registry")
    folder.mkdir(exist_ok=True)
    port = free_port()
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/images}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n{auth}"
    )
    with running([command, "serve", str(config)], port):
        yield f"127.0.0.1:{port}"


def push(
    host: str, name: str, layers: Sequence[bytes], tag: str = "index.spack"
) -> None:
    """Push an image of these layers by the registry's API, as Spack pushes an index."""
    with httpx.Client(base_url=f"http://{host}/v2/{name}", verify=False) as client:
        described = [_pushed(client, data) for data in layers]
        config = _pushed(client, b"{}")
        image = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                **config,
            },
            "layers": [
                {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **layer}
                for layer in described
            ],
        }
        answer = client.put(
            f"/manifests/{tag}",
            content=json.dumps(image),
            headers={"Content-Type": MANIFEST},
        )
        assert answer.status_code == 201, answer.text


def _pushed(client: httpx.Client, data: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = httpx.URL(client.post("/blobs/uploads/").headers["Location"])
    answer = client.put(upload.copy_merge_params({"digest": digest}), content=data)
    assert answer.status_code == 201, answer.text
    return {"digest": digest, "size": len(data)}
