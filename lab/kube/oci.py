"""Container images without a registry: a tar file with an OCI image layout, made here, of one static program.

The layout and its media types: github.com/opencontainers/image-spec. `ctr images import` reads it.
"""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab.errors import UnusableError

PAUSE, HELLO = "localhost/pause:1", "localhost/hello:1"
HELLO_PORT = 8080
APPLETS = ("sh", "sleep", "hostname", "uname", "cut", "mkdir", "httpd", "cat", "ls", "ps", "ip", "wget", "id")
"""What the scripts call, and who looks around with `kubectl exec`. One layer for all images, carried once."""
_OCI = "application/vnd.oci.image"
_SCRIPT = f"""\
trap 'exit 0' INT TERM
echo "hello from inside Pod $(hostname) on $NODE_NAME: Linux $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
mkdir -p /tmp/www && echo "hello from $(hostname)" >/tmp/www/index.html
httpd -f -p {HELLO_PORT} -h /tmp/www &
wait
"""
_WAIT = "trap 'exit 0' INT TERM; sleep infinity & wait"


@dataclass(frozen=True, slots=True)
class Image:
    """A shell script and the busybox that runs it, for amd64. `name` in full."""

    name: str
    busybox: bytes
    script: str


def demo_images() -> list[Image]:
    """`PAUSE` holds a pod's sandbox, `HELLO` says something from inside and serves it on `HELLO_PORT`.

    Raises:
        UnusableError: there is no busybox here.
    """
    program = shutil.which("busybox")
    if program is None:
        raise UnusableError("no busybox to make container images of: install the package busybox-static")
    busybox = Path(program).read_bytes()
    return [Image(PAUSE, busybox, _WAIT), Image(HELLO, busybox, _SCRIPT)]


def write_layout(images: Sequence[Image], path: Path) -> None:
    """Write the images into one tar file; the same images give the same bytes."""
    blobs: dict[str, bytes] = {}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [_manifest(image, blobs) for image in images],
    }
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": _json(index)}
    path.write_bytes(_tar(files | {f"blobs/sha256/{digest}": data for digest, data in sorted(blobs.items())}))


def _manifest(image: Image, blobs: dict[str, bytes]) -> dict[str, Any]:
    """Its descriptor in the index; what it refers to goes into `blobs`."""
    links = {f"bin/{applet}": "busybox" for applet in APPLETS}
    layer = _tar({"bin/busybox": image.busybox}, mode=0o755, links=links, folders=("tmp",))
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/bin/sh", "-c", image.script], "Env": ["PATH=/bin"], "User": "65534:65534"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _blob(f"{_OCI}.config.v1+json", _json(configuration), blobs),
        "layers": [_blob(f"{_OCI}.layer.v1.tar+gzip", gzip.compress(layer, 6, mtime=0), blobs)],
    }
    # containerd takes the first annotation for the image's name, others the second.
    names = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name}
    described = _blob(f"{_OCI}.manifest.v1+json", _json(manifest), blobs)
    return described | {"annotations": names, "platform": {"architecture": "amd64", "os": "linux"}}


def _blob(media_type: str, data: bytes, blobs: dict[str, bytes]) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _tar(
    files: Mapping[str, bytes],
    *,
    mode: int = 0o644,
    links: Mapping[str, str] = MappingProxyType({}),
    folders: Sequence[str] = (),
) -> bytes:
    """Of root, from 1970, in the given order. `links`: path → target; `folders` are everybody's to write to."""
    entries = [(_entry(name, tarfile.REGTYPE, mode, size=len(data)), data) for name, data in files.items()]
    entries += [(_entry(name, tarfile.SYMTYPE, 0o777, target=target), b"") for name, target in links.items()]
    entries += [(_entry(name, tarfile.DIRTYPE, 0o1777), b"") for name in folders]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry, data in entries:
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int, *, size: int = 0, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, size, target
    return entry
