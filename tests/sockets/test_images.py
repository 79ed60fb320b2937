"""`/v1/images`: what lies in the store, what it is made of, and what is otherwise in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.world import World, documents
from tests.sites import add_image
from tests.sockets.api import Api


def _told(api: Api, path: str) -> Any:
    answer = api.get(path)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_images_are_listed_and_shown_and_what_is_wrong_with_one_is_said(world: World) -> None:
    api = world.api
    listed = _told(api, "/v1/images")["images"]
    assert {(each["image"], each["name"], each["revoked"]) for each in listed} == {
        (world.new, "compute-2026.11", False),
        (world.old, "compute-2026.10", False),
    }
    shown = _told(api, f"/v1/images/{world.new}")
    assert (shown["name"], shown["architecture"], shown["revoked"], shown["problem"]) == (
        *("compute-2026.11", "amd64", False, None),
    )
    assert shown["bytes"]["packages"] == len(documents("6.1.124-1")["packages"])
    root = api.store.manifest(world.new).artifacts.root.sha256
    api.store.blob_path(root).write_bytes(b"short")
    assert "root" in _told(api, f"/v1/images/{world.new}")["problem"]


def test_an_image_s_packages_its_bill_of_materials_and_what_differs(world: World) -> None:
    api = world.api
    assert _told(api, f"/v1/images/{world.new}/packages")["packages"] == [
        {"name": "kubelet", "version": "1.34.4", "architecture": "amd64"},
        {"name": "linux-image-amd64", "version": "6.1.124-1", "architecture": "amd64"},
        {"name": "tzdata", "version": "2024b", "architecture": "all"},
    ]
    answer = api.client.get(f"/v1/images/{world.new}/sbom", headers=api.authorised)
    assert answer.mimetype == "application/vnd.cyclonedx+json"
    assert json.loads(answer.data)["bomFormat"] == "CycloneDX"
    differs = _told(api, f"/v1/images/{world.new}/diff?with={world.old}")
    assert differs["changed"] == {"linux-image-amd64:amd64": ["6.1.119-1", "6.1.124-1"]}
    assert (differs["added"], differs["removed"]) == ({}, {})
    assert differs["facts"]["name"] == ["compute-2026.10", "compute-2026.11"]
    assert set(differs["sizes"]) == {"kernel", "initrd", "root", "packages"}
    same = _told(api, f"/v1/images/{world.new}/diff?with={world.new}")
    assert [same[part] for part in ("facts", "sizes", "added", "removed", "changed")] == [{}, {}, {}, {}, {}]


def test_what_is_not_there_is_unknown_and_what_is_damaged_is_no_list(world: World) -> None:
    api = world.api
    for path in ("", "/packages", "/sbom", f"/diff?with={world.old}"):
        answer = api.get(f"/v1/images/{'f' * 64}{path}")
        assert answer.status_code == 404, path
    bare = add_image(api.config, name="bare", documents={"packages": b"[]"})
    answer = api.client.get(f"/v1/images/{bare}/sbom", headers=api.authorised)
    assert (answer.status_code, answer.get_json()["detail"]) == (
        404,
        f"image {bare[:12]} has no sbom: the netboot that built it made none",
    )
    blob = api.store.blob_path(api.store.manifest(world.new).artifacts.packages.sha256)
    blob.write_bytes(blob.read_bytes().replace(b"1.34.4", b"1.34.5"))
    answer = api.client.get(f"/v1/images/{world.new}/packages", headers=api.authorised)
    assert answer.status_code == 502
    assert answer.get_json()["detail"] == (
        f"the list of packages of image {world.new[:12]} cannot be read: it is not what was signed"
    )
    answer = api.client.get("/v1/images/short", headers=api.authorised)
    assert answer.status_code == 400
