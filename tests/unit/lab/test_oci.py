"""Container images made in Python: what a container runtime will read."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from lab.kube.oci import APPLETS, Image, write_layout

IMAGES = [Image("localhost/one:1", b"busybox", "echo one"), Image("localhost/two:1", b"busybox", "echo two")]


def members(data: bytes) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {one.name: (one, (tar.extractfile(one) or io.BytesIO()).read() if one.isfile() else b"") for one in tar}


def test_every_blob_is_what_its_descriptor_says_and_a_shared_layer_is_there_once(tmp_path: Path) -> None:
    write_layout(IMAGES, tmp_path / "images.tar")
    files = {name: data for name, (_, data) in members((tmp_path / "images.tar").read_bytes()).items()}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def blob(descriptor: dict[str, Any]) -> bytes:
        algorithm, _, digest = descriptor["digest"].partition(":")
        data = files[f"blobs/{algorithm}/{digest}"]
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (digest, descriptor["size"])
        return data

    named = {}
    for descriptor in json.loads(files["index.json"])["manifests"]:
        manifest = json.loads(blob(descriptor))
        configuration, layer = json.loads(blob(manifest["config"])), gzip.decompress(blob(manifest["layers"][0]))
        assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
        named[descriptor["annotations"]["io.containerd.image.name"]] = configuration["config"]["Entrypoint"]
    assert named == {
        "localhost/one:1": ["/bin/sh", "-c", "echo one"],
        "localhost/two:1": ["/bin/sh", "-c", "echo two"],
    }
    assert len(files) == 2 + 2 * 2 + 1


def test_the_layer_is_busybox_with_its_names_and_a_place_to_write(tmp_path: Path) -> None:
    write_layout(IMAGES[:1], tmp_path / "images.tar")
    layers = [
        gzip.decompress(data)
        for _, data in members((tmp_path / "images.tar").read_bytes()).values()
        if data.startswith(b"\x1f\x8b")
    ]
    (inside,) = map(members, layers)
    assert inside["bin/busybox"][1] == b"busybox"
    assert inside["bin/busybox"][0].mode == 0o755
    assert {name: one.linkname for name, (one, _) in inside.items() if one.issym()} == {
        f"bin/{applet}": "busybox" for applet in APPLETS
    }
    assert inside["tmp"][0].mode == 0o1777


def test_the_same_images_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_layout(IMAGES, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
