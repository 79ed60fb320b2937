"""What differs between two images."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.diff import Diff, diff, read_packages
from images.artifact.manifest import Artifact, Artifacts, ContainerImage, Manifest
from images.errors import CorruptError
from tests.unit.images import samples


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Manifest, Manifest]:
    old, new = (samples.manifest(samples.parts(tmp_path / text, text)) for text in ("one", "three"))
    change = {"kernel_version": "6.1.0-2-amd64", "epoch": 3, "kernel_arguments": ("quiet",)}
    return old, new.model_copy(update=change)


def test_container_images_that_differ_are_named(pair: tuple[Manifest, Manifest]) -> None:
    image = ContainerImage(name="localhost/web:1", digest="7" * 64, size=1)
    found = diff(pair[0], pair[0].model_copy(update={"container_images": (image,)}), {}, {})
    assert found == Diff(facts={"container_images": ("", "localhost/web:1@777777777777")})


def test_everything_that_differs_is_named_and_nothing_else(pair: tuple[Manifest, Manifest]) -> None:
    old = {"bash:amd64": "5.1", "dash:amd64": "1", "gone:all": "2"}
    new = {"bash:amd64": "5.2", "dash:amd64": "1", "here:all": "3"}
    found = diff(*pair, old, new)
    assert found == Diff(
        facts={
            "epoch": ("0", "3"),
            "kernel_version": ("6.1.0-1-amd64", "6.1.0-2-amd64"),
            "kernel_arguments": ("console=ttyS0", "quiet"),
        },
        sizes={"initrd": (10, 12), "root": (8, 10), "packages": (50, 52)},
        added={"here:all": "3"},
        removed={"gone:all": "2"},
        changed={"bash:amd64": ("5.1", "5.2")},
    )
    assert not found.empty


def test_an_image_does_not_differ_from_itself(pair: tuple[Manifest, Manifest]) -> None:
    assert diff(pair[0], pair[0], {"a:all": "1"}, {"a:all": "1"}).empty


names = st.sampled_from("abcdef").map(lambda name: f"{name}:all")
packages = st.dictionaries(names, st.sampled_from("123"))
_PART = Artifact(sha256="0" * 64, size=1)
_SAME = samples.manifest_of(Artifacts(kernel=_PART, initrd=_PART, root=_PART, packages=_PART))


@given(packages, packages)
def test_the_difference_turns_the_old_list_into_the_new_one(old: dict[str, str], new: dict[str, str]) -> None:
    found = diff(_SAME, _SAME, old, new)
    kept = {name: version for name, version in old.items() if name not in found.removed}
    assert kept | found.added | {name: version for name, (_, version) in found.changed.items()} == new
    assert all(old[name] == was != now for name, (was, now) in found.changed.items())


def test_a_list_of_packages_is_read() -> None:
    data = json.dumps([["bash", "5.2", "amd64"], ["bash", "5.2", "i386"]]).encode()
    assert read_packages(data) == {"bash:amd64": "5.2", "bash:i386": "5.2"}


WRONG = [b"", b"{}", b'{"abc": 1}', b'["abc"]', b'[["a", "1"]]', b'[["a", 1, "all"]]', b"[" * 10**5]


@pytest.mark.parametrize("data", WRONG)
def test_what_is_no_list_of_packages_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptError) as caught:
        read_packages(data)
    assert str(caught.value) == (
        "not a list of packages, which is [[name, version, architecture], …]: build the image again"
    )


@given(st.binary(max_size=100))
def test_any_bytes_are_packages_or_refused(data: bytes) -> None:
    with contextlib.suppress(CorruptError):
        read_packages(data)
