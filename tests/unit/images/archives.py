"""Small archives of container images, in both forms."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

LAYER = b"a layer, " * 1000


def blob(data: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def descriptor(data: bytes, **more: Any) -> dict[str, Any]:
    return {"digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data), **more}


def config(architecture: str = "amd64") -> bytes:
    return json.dumps({"architecture": architecture, "os": "linux"}).encode()


def oci(
    name: str | None = "localhost/web:1", architecture: str = "amd64", media: str = "layer.v1.tar+gzip"
) -> dict[str, bytes]:
    """Files of an OCI layout with one image of one compressed layer."""
    layer, about = gzip.compress(LAYER, mtime=0), config(architecture)
    manifest = json.dumps({"config": descriptor(about), "layers": [descriptor(layer, mediaType=media)]}).encode()
    annotations = {} if name is None else {"io.containerd.image.name": name}
    index = json.dumps({"manifests": [descriptor(manifest, annotations=annotations)]}).encode()
    return {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": index,
        **{blob(data): data for data in (layer, about, manifest)},
    }


def saved(names: list[str] | None, architecture: str = "amd64") -> dict[str, bytes]:
    """Files as `docker save` writes them."""
    entry = {"Config": "c.json", "RepoTags": names, "Layers": ["l/layer.tar"]}
    return {"manifest.json": json.dumps([entry]).encode(), "c.json": config(architecture), "l/layer.tar": LAYER}


def write(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path
