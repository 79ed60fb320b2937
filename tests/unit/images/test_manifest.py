"""The manifest's one form, with and without container images."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from images.manifest import ContainerImage, Manifest, read_manifest
from tests.unit.images import samples

IMAGE = ContainerImage(name="localhost/web:1", digest="7" * 64, size=5)


@pytest.fixture
def plain(tmp_path: Path) -> Manifest:
    return samples.manifest(samples.parts(tmp_path, "one"))


def test_without_container_images_the_bytes_are_those_of_before_there_were_any(plain: Manifest) -> None:
    data = plain.to_bytes()
    assert b"container_images" not in data
    assert read_manifest(data) == plain


def test_container_images_are_signed_with_the_rest(plain: Manifest) -> None:
    made = plain.model_copy(update={"container_images": (IMAGE,)})
    assert made.digest != plain.digest
    assert b'"container_images":[{"digest":"' + b"7" * 64 + b'","name":"localhost/web:1","size":5}],' in made.to_bytes()
    assert read_manifest(made.to_bytes()) == made


@pytest.mark.parametrize(
    "name",
    [
        "localhost/pause:1",
        "registry.k8s.io/pause:3.10.1",
        "registry.example:5000/team/app_x/web-1:v2",
        "harbor:5000/a:b",
    ],
)
def test_full_names(name: str) -> None:
    assert ContainerImage(name=name, digest="0" * 64, size=0).name == name


@given(
    st.sampled_from(["pause:1", "library/pause:1", "localhost/pause", "localhost/Pause:1", "a.b/c:", ""])
    | st.text(' "\\\n$`{}', min_size=1).map(lambda text: f"localhost/a{text}:1")
)
def test_no_other_name_is_one(name: str) -> None:
    with pytest.raises(ValidationError, match="must be a container image's full name"):
        ContainerImage(name=name, digest="0" * 64, size=0)
