"""Archives of container images: what is in them, how large it is, and what cannot be used, in words."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.manifest import ContainerImage
from images.build.containers import read
from images.errors import RecipeError
from images.values.digests import plain
from tests.unit.images import archives

PACKED = len(gzip.compress(archives.LAYER, mtime=0))
ID = hashlib.sha256(archives.config()).hexdigest()


def refused(path: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        read(path, "amd64")
    return str(caught.value).replace(str(path), "A")


def test_an_oci_layout_is_counted_packed_and_unpacked(tmp_path: Path) -> None:
    found = read(archives.write(tmp_path / "a.tar", archives.oci()), "amd64")
    assert found.images == (ContainerImage(name="localhost/web:1", digest=ID, size=PACKED + len(archives.LAYER)),)
    assert found.sha256 == hashlib.sha256((tmp_path / "a.tar").read_bytes()).hexdigest()


def test_an_image_that_docker_saved_under_two_names(tmp_path: Path) -> None:
    path = archives.write(tmp_path / "a.tar", archives.saved(["localhost/a:1", "registry.example:5000/x/b:2.0"]))
    found = read(path, "amd64").images
    assert [(image.name, image.digest) for image in found] == [
        ("localhost/a:1", ID),
        ("registry.example:5000/x/b:2.0", ID),
    ]
    assert {image.size for image in found} == {2 * len(archives.LAYER)}


def test_of_an_index_for_several_machines_ours_is_taken(tmp_path: Path) -> None:
    files = archives.oci()
    inner = json.loads(files["index.json"])["manifests"][0]
    theirs = archives.descriptor(b"not here", platform={"architecture": "arm64"})
    ours = {"digest": inner["digest"], "platform": {"architecture": "amd64"}}
    index = json.dumps({"manifests": [theirs, ours]}).encode()
    outer = archives.descriptor(index, annotations=inner["annotations"])
    files |= {archives.blob(index): index, "index.json": json.dumps({"manifests": [outer]}).encode()}
    assert [image.name for image in read(archives.write(tmp_path / "a.tar", files), "amd64").images] == [
        "localhost/web:1"
    ]


def test_where_an_archive_lies_is_no_input_of_a_step(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    one, two = (read(archives.write(tmp_path / name, archives.oci()), "amd64") for name in ("a.tar", "b/c.tar"))
    assert plain(one) == plain(two)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (archives.oci(architecture="arm64"), "A has no image for linux on amd64"),
        (archives.saved(["localhost/a:1"], "arm64"), "A has no image for linux on amd64"),
        (archives.oci(None), "A has an image without a name (the annotation io.containerd.image.name in index.json)"),
        (archives.saved(None), "A has an image without a name (RepoTags in manifest.json)"),
        (
            archives.oci("web:1"),
            "A has the image 'web:1': must be a container image's full name, registry/name:tag, like localhost/pause:1",
        ),
        (
            archives.oci("localhost/web"),
            (
                "A has the image 'localhost/web': "
                "must be a container image's full name, registry/name:tag, like localhost/pause:1"
            ),
        ),
        (
            archives.oci(media="layer.v1.tar+zstd"),
            "A has layers compressed with zstd; write it with gzip, or uncompressed",
        ),
        ({"a file": b""}, "A is neither an OCI layout nor of docker save's form"),
        (archives.oci() | {"index.json": b"[1]"}, "A is damaged: index.json is not what it must be"),
        ({"oci-layout": b""}, "A is not whole: it lacks index.json"),
        (
            archives.saved(["localhost/a:1"]) | {"l/layer.tar": gzip.compress(archives.LAYER, mtime=0)[:-20]},
            "A is damaged: l/layer.tar cannot be unpacked",
        ),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    assert refused(archives.write(tmp_path / "a.tar", files)) == f"container_images: {message}"


def test_a_blob_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    files = archives.oci()
    layer = archives.blob(gzip.compress(archives.LAYER, mtime=0))
    files[layer] = gzip.compress(archives.LAYER[::-1], mtime=0)
    path = archives.write(tmp_path / "a.tar", files)
    assert refused(path) == f"container_images: A is damaged: {layer} is not what its name says"


def test_what_is_no_tar_file(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar file " * 100)
    assert refused(tmp_path / "a.tar") == ("container_images: A is no tar file, or a compressed one: invalid header")
    packed = archives.write(tmp_path / "a.tar.gz", archives.oci(), "w:gz")
    assert refused(packed).startswith("container_images: A is no tar file, or a compressed one: ")


@given(st.data())
def test_a_damaged_archive_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("archive") / "a.tar"
    whole = bytearray(archives.write(path, archives.oci()).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        assert read(path, "amd64").images
    except RecipeError as error:
        assert str(error).startswith(f"container_images: {path} ")
