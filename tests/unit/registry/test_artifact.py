"""The registry's manifest of an image: its bytes, and what of another's is believed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.manifest import Manifest
from images.registry.artifact import ARTIFACT_TYPE, MANIFEST, SIGNATURE, read_artifact, read_blobs, write_artifact
from images.registry.errors import RegistryError
from tests.unit.images.samples import KEY, manifest, parts

WHERE = "registry.example/images:stable"
HEX = "cd" * 32
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
def sample(tmp_path: Path) -> Manifest:
    return manifest(parts(tmp_path, "one"))


def test_what_a_registry_is_given(sample: Manifest) -> None:
    """The form of ORAS: an artifact type, the empty configuration, layers with titles."""
    data = sample.to_bytes()
    written = json.loads(write_artifact(data, KEY.sign(data), sample))
    layers = written.pop("layers")
    assert written == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/vnd.netboot.image.v1",
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "annotations": {
            "org.opencontainers.image.title": "sample",
            "org.opencontainers.image.version": "6.1.0-1-amd64",
            "dev.netboot.architecture": "amd64",
            "dev.netboot.image": sample.digest,
        },
    }
    assert [(layer["mediaType"], layer["annotations"]["org.opencontainers.image.title"]) for layer in layers] == [
        ("application/vnd.netboot.manifest.v1+json", "manifest.json"),
        ("application/vnd.netboot.signature.v1", "manifest.sig"),
        ("application/vnd.netboot.kernel.v1", "kernel"),
        ("application/vnd.netboot.initrd.v1", "initrd"),
        ("application/vnd.netboot.root.v1", "root"),
        ("application/vnd.netboot.packages.v1", "packages"),
    ]
    assert layers[0]["digest"] == f"sha256:{sample.digest}"
    assert layers[4]["digest"] == f"sha256:{sample.artifacts.root.sha256}"


def test_written_and_read_again(sample: Manifest) -> None:
    data, signature = sample.to_bytes(), KEY.sign(sample.to_bytes())
    found = read_artifact(write_artifact(data, signature, sample), WHERE)
    assert found.manifest == (sample.digest, len(data))
    assert found.signature == (hashlib.sha256(signature).hexdigest(), len(signature))


def test_the_same_bytes_twice_are_one_blob(sample: Manifest) -> None:
    twice = sample.artifacts.model_copy(update={"uki": sample.artifacts.kernel})
    names = [name for name, _ in read_blobs(sample.model_copy(update={"artifacts": twice}))]
    assert names == ["kernel", "initrd", "root", "packages"]


def layer(media: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": media, "digest": f"sha256:{HEX}", "size": 10, **more}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, f"{WHERE} is no image of netboot's but of no kind that it says: push one with `netboot image push`"),
        (
            {"mediaType": INDEX, "manifests": []},
            f"{WHERE} is no image of netboot's but {INDEX}: push one with `netboot image push`",
        ),
        (
            {"artifactType": "application/vnd.cncf.helm", "layers": []},
            f"{WHERE} is no image of netboot's but application/vnd.cncf.helm: push one with `netboot image push`",
        ),
        (
            {"artifactType": ARTIFACT_TYPE, "layers": [layer(MANIFEST)]},
            f"{WHERE} lacks the signed manifest of its image: push the image again",
        ),
        (
            {"artifactType": ARTIFACT_TYPE, "layers": [layer(MANIFEST), layer(SIGNATURE, digest="md5:00")]},
            f"{WHERE} lacks the signed manifest of its image: push the image again",
        ),
        (
            {"artifactType": ARTIFACT_TYPE, "layers": [layer(MANIFEST, size=1 << 40), layer(SIGNATURE)]},
            f"{WHERE} has a signed manifest larger than any of ours: push the image again",
        ),
    ],
)
def test_what_is_none_of_ours(value: Any, words: str) -> None:
    with pytest.raises(RegistryError) as error:
        read_artifact(json.dumps(value).encode(), WHERE)
    assert str(error.value) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["mediaType", "digest", "size"]), inner)
    ),
    max_leaves=8,
)


def claiming(layers: Any) -> bytes:
    """An artifact of our type with anything for layers."""
    return json.dumps({"artifactType": ARTIFACT_TYPE, "layers": layers}).encode()


@given(st.binary(max_size=50) | st.builds(claiming, JSON))
def test_anything_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(RegistryError):
        read_artifact(data, WHERE)
