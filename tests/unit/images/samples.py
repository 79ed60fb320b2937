"""Small images with real manifests and signatures."""

import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from images.artifact.manifest import Artifact, Artifacts, Manifest
from images.artifact.measure import measure
from images.artifact.signing import SigningKey
from images.build.context import Context
from images.build.step import Products
from images.store.store import Store


def unplanned(_context: Context, _products: Products) -> Any:
    """Of a step whose inputs a test gives by hand."""
    raise AssertionError("its inputs are not planned")


KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"only for tests, the same for all"))


def parts(folder: Path, text: str, root: bytes | None = None) -> dict[str, Path]:
    """Files of an image; `text` makes them differ from another's."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"kernel": b"kernel", "initrd": f"initrd {text}".encode(), "root": root or f"root {text}".encode()}
    contents["packages"] = json.dumps([["bash", text, "amd64"], ["dash", "1", "amd64"]]).encode()
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in contents}


def manifest(files: dict[str, Path], name: str = "sample", epoch: int = 0) -> Manifest:
    """The manifest of such files."""
    measured: dict[str, Artifact] = {part: measure(path, chunks=part == "root") for part, path in files.items()}
    return manifest_of(Artifacts.model_validate(measured), name, epoch)


def manifest_of(artifacts: Artifacts, name: str = "sample", epoch: int = 0) -> Manifest:
    """A manifest of such artifacts."""
    return Manifest(
        name=name,
        distribution="debian",
        suite="bookworm",
        architecture="amd64",
        recipe=hashlib.sha256(name.encode()).hexdigest(),
        epoch=epoch,
        created=1_700_000_000,
        kernel_version="6.1.0-1-amd64",
        kernel_arguments=("console=ttyS0",),
        ram_mib=512,
        artifacts=artifacts,
    )


def add(store: Store, folder: Path, text: str, *, name: str = "sample", root: bytes | None = None) -> str:
    """Put a signed image into a store; its digest."""
    files = parts(folder / text, text, root)
    data = manifest(files, name).to_bytes()
    return store.add_image(data, KEY.sign(data), files)
