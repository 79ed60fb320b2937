"""The manifest's one form, with and without container images."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from images.artifact.manifest import Artifact, Artifacts, ContainerImage, Manifest, read_manifest, schema
from images.errors import CorruptError
from images.values.digests import canonical
from tests.unit.images import samples

DOCS = Path(__file__).parents[3] / "docs"
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


PART = Artifact(sha256="0" * 64, size=1)
WHOLE = samples.manifest_of(
    Artifacts(kernel=PART, initrd=PART, root=PART.model_copy(update={"chunks": ("1" * 64,)}), packages=PART, sbom=PART)
)


def test_the_published_schema_is_the_models() -> None:
    """Write it anew: `from images.artifact.manifest import schema; print(json.dumps(schema(), indent=2))`."""
    published = (DOCS / "manifest.schema.json").read_text()
    assert published == json.dumps(schema(), indent=2) + "\n"


def test_the_documentation_names_every_key() -> None:
    text = (DOCS / "manifest.md").read_text()
    keys = {"schema" if name == "schema_" else name for name in Manifest.model_fields}
    assert [name for name in (*sorted(keys), *Artifacts.model_fields) if f"`{name}`" not in text] == []


def test_documents_are_signed_with_the_rest_and_left_out_where_there_are_none() -> None:
    assert read_manifest(WHOLE.to_bytes()) == WHOLE
    value = json.loads(WHOLE.to_bytes())
    assert value["artifacts"].keys() == {"kernel", "initrd", "root", "packages", "sbom"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "netboot.dev/manifest/v2"}, "schema: Input should be 'netboot.dev/manifest/v1'"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"recipe": "x"}, "recipe: must be a SHA-256 digest: 64 lower-case hexadecimal characters"),
        ({"root_format": "squashfs"}, "its bytes are not in canonical form"),
        ({"epoch": 0.0}, "its bytes are not in canonical form"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_reason(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CorruptError) as caught:
        read_manifest(canonical(json.loads(WHOLE.to_bytes()) | change))
    assert str(caught.value) == f"not a manifest: {words}"


@given(st.data())
def test_one_byte_more_or_other_is_another_manifest_or_none(data: st.DataObject) -> None:
    """What is signed has one reading: bytes that read as the same image are the same bytes."""
    good = WHOLE.to_bytes()
    at = data.draw(st.integers(0, len(good)))
    cut = data.draw(st.integers(0, 3))
    altered = good[:at] + data.draw(st.binary(max_size=3)) + good[at + cut :]
    try:
        assert (read_manifest(altered) == WHOLE) == (altered == good)
    except CorruptError:
        assert altered != good


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(json.loads(WHOLE.to_bytes()))), JSON)
def test_any_value_of_any_key_is_read_in_its_one_form_or_refused(key: str, value: Any) -> None:
    made = (
        json.dumps(json.loads(WHOLE.to_bytes()) | {key: value}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    )
    with contextlib.suppress(CorruptError):
        assert read_manifest(made).to_bytes() == made


@given(st.binary(max_size=200) | st.just(b"[" * 100_000) | st.just(b'{"a":' * 100_000))
def test_any_bytes_are_no_manifest(data: bytes) -> None:
    with pytest.raises(CorruptError):
        read_manifest(data)
