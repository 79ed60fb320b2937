"""What no package brought is in bill and provenance: compiled drivers with sources and patches, what is ours, files."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.model.bom import Bom

from images.build import initrd
from images.build.documents import compiled, parts, provenance, sbom
from images.build.node_files import entries_of
from images.build.step import Product
from images.build.steps import documents
from images.build.steps.drivers import COMPILED
from images.formats.debian import Package
from images.values.digests import canonical
from tests.unit.images.debian_tree import tree
from tests.unit.images.test_documents import SUBJECT

COMPILED_AGENT = "/usr/lib/netboot/node/agent/__pycache__/loop.cpython-311.pyc"
KERNEL = "6.1"
PATCH = b"--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"
STATUS = """\
Package: vendor-dkms
Status: install ok installed
Maintainer: Vendor <vendor@example.org>
Architecture: amd64
Version: 1.2-3

Package: gcc-12
Status: install ok installed
Architecture: amd64
Version: 12.2.0-14

"""
LIST = """\
Package: vendor-dkms
Architecture: amd64
Version: 1.2-3
Filename: pool/vendor-dkms.deb
Size: 5
SHA256: {digest}
"""


def build_root(folder: Path) -> Path:
    """Where a driver was compiled: two packages, the sources of one, and the module where dkms leaves it."""
    root = folder / "build"
    for place in ("var/lib/dpkg/info", "var/lib/apt/lists", f"var/lib/dkms/vendor/1.2/{KERNEL}/x86_64/module"):
        (root / place).mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text(STATUS)
    (root / "var/lib/dpkg/info/gcc-12.list").write_text("/.\n/usr/bin/gcc-12\n")
    (root / "var/lib/dpkg/info/vendor-dkms:amd64.list").write_text("/.\n/usr/src/vendor-1.2/dkms.conf\n")
    (root / "var/lib/apt/lists/m_Packages").write_text(LIST.format(digest="c" * 64))
    return root


def of_build(folder: Path) -> dict[str, Any]:
    root = build_root(folder)
    module = root / f"var/lib/dkms/vendor/1.2/{KERNEL}/x86_64/module/vendor-current.ko"
    return compiled.compiled(root, KERNEL, {"vendor.ko": module})


@pytest.fixture
def described(tmp_path: Path) -> dict[str, Any]:
    """Bill and predicate of an image with a driver, an agent, and two files of its recipe."""
    base, configured, kernel = tree(tmp_path)
    drivers = tmp_path / "drivers"
    drivers.mkdir()
    (drivers / COMPILED).write_bytes(canonical(of_build(tmp_path)))
    files = {f"/usr/lib/modules/{KERNEL}/updates/vendor.ko": b"module", "/etc/motd": b"hello", "/usr/x": b"ours"}
    files |= {COMPILED_AGENT: b"compiled"}
    for path, data in files.items():
        file = kernel.path / f"root{path}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (kernel.path / "root/etc/link").symlink_to("motd")
    inputs = documents.Inputs(
        base,
        configured,
        kernel,
        SUBJECT,
        {"name": "sample"},
        (("bootstrap", 1, "3" * 64),),
        {"zstd": "zstd 1.5", "mksquashfs": "mksquashfs version 4.5"},
        (),
        drivers=Product("d", drivers),
        patches=(("fits.patch", PATCH),),
        node=("/usr/x", "/etc/motd"),
        entries=("/etc/motd", "/etc/link", "/etc/removed"),
        stage=(("/init", "e" * 64),),
    )
    out = tmp_path / "out"
    out.mkdir()
    documents.documents(inputs, out, lambda line: None)
    bill = json.loads((out / "sbom").read_bytes())
    assert json.loads((out / "predicate.json").read_bytes())
    again = tmp_path / "again"
    again.mkdir()
    documents.documents(inputs, again, lambda line: None)
    assert (again / "sbom").read_bytes() == (out / "sbom").read_bytes()
    return {"bill": bill, "predicate": json.loads((out / "predicate.json").read_bytes())}


def component(described: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [part for part in described["bill"]["components"] if part["name"] == name]
    return dict(found)


def sha(data: bytes) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256(data).hexdigest()}]


def test_a_compiled_driver_has_its_version_modules_source_package_and_patches(described: dict[str, Any]) -> None:
    driver = component(described, "vendor")
    assert (driver["type"], driver["version"]) == ("device-driver", "1.2")
    assert [(file["name"], file["hashes"]) for file in driver["components"]] == [
        (f"/usr/lib/modules/{KERNEL}/updates/vendor.ko", sha(b"module"))
    ]
    (source,) = driver["pedigree"]["ancestors"]
    assert source["purl"] == "pkg:deb/debian/vendor-dkms@1.2-3?arch=amd64&distro=bookworm"
    assert source["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    text = {"content": PATCH.decode(), "contentType": "text/plain"}
    assert driver["pedigree"]["patches"] == [{"diff": {"text": text}, "type": "unofficial"}]
    assert driver["pedigree"]["notes"] == f"fits.patch sha256:{sha256(PATCH).hexdigest()}"


def test_files_of_the_recipe_and_ours_are_named_once_and_as_they_are_in_the_image(described: dict[str, Any]) -> None:
    node = component(described, "netboot-node")
    assert [(file["name"], file["hashes"]) for file in node["components"]] == [
        (COMPILED_AGENT, sha(b"compiled")),
        ("/usr/x", sha(b"ours")),
    ]
    early = component(described, "netboot-initrd")
    assert [file["name"] for file in early["components"]] == ["/init"]
    motd, link = component(described, "/etc/motd"), component(described, "/etc/link")
    assert (motd["type"], motd["hashes"]) == ("file", sha(b"hello"))
    assert "hashes" not in link
    assert "/etc/removed" not in {part["name"] for part in described["bill"]["components"]}


def test_tools_that_shaped_bytes_are_in_the_bill(described: dict[str, Any]) -> None:
    tools = described["bill"]["metadata"]["tools"]["components"]
    assert [(tool["name"], tool["version"]) for tool in tools] == [
        ("mksquashfs", "mksquashfs version 4.5"),
        ("zstd", "zstd 1.5"),
    ]


def test_the_bill_is_one_by_the_library_and_each_of_its_references_is_given(described: dict[str, Any]) -> None:
    bom = Bom.from_json(described["bill"])  # type: ignore[attr-defined]
    assert bom.validate()
    assert "BomRef." not in json.dumps(described["bill"]), "what nobody named is named by chance"


def test_the_provenance_has_files_patches_and_what_compiled(described: dict[str, Any]) -> None:
    found = {
        part.get("name", part.get("uri")): part
        for part in described["predicate"]["buildDefinition"]["resolvedDependencies"]
        if "kind" in part["annotations"]
    }
    gcc = "pkg:deb/debian/gcc-12@12.2.0-14?arch=amd64&distro=bookworm"
    vendor = "pkg:deb/debian/vendor-dkms@1.2-3?arch=amd64&distro=bookworm"
    assert found.keys() == {"/usr/x", COMPILED_AGENT, "/init", "/etc/motd", "fits.patch", gcc, vendor}
    assert found["/usr/x"]["annotations"] == {"part": "netboot-node", "kind": "application"}
    assert found["fits.patch"]["digest"] == {"sha256": sha256(PATCH).hexdigest()}
    assert (found[vendor]["digest"], found[vendor]["annotations"]["kind"]) == (
        {"sha256": "c" * 64},
        "compiled the drivers",
    )


def test_a_driver_that_no_package_brought_has_no_ancestor(tmp_path: Path) -> None:
    found = of_build(tmp_path)
    (tmp_path / "build/var/lib/dpkg/info/vendor-dkms:amd64.list").unlink()
    again = compiled.compiled(
        tmp_path / "build", KERNEL, {"vendor.ko": tmp_path / "build/var/lib/dkms/vendor/1.2/k/x/module/v.ko"}
    )
    assert (found["drivers"][0]["package"], again["drivers"][0]["package"]) == ("vendor-dkms", "")
    (part,) = parts.drivers(again, tmp_path, ())
    assert (part.made_of, part.files) == (None, ())
    bill = json.loads(sbom.sbom(SUBJECT, [], {}, {}, parts=[part]))
    assert "pedigree" not in bill["components"][0]


def test_the_same_package_from_elsewhere_is_another_provenance() -> None:
    source = parts.Source(Package("gcc-12", "1", "amd64", "gcc-12", "1"), ())
    one = provenance.part_dependencies(SUBJECT, (), [source])
    other = provenance.part_dependencies(SUBJECT, (), [replace(source, package=replace(source.package, version="2"))])
    assert one != other


def test_what_is_ours_in_the_initrd_is_every_file_of_the_stage() -> None:
    names = {path for path, _ in initrd.stage_files(debug=False)}
    ours = {path.name for path in initrd.STAGE.iterdir()} - {"init"}
    assert names == {"/init", *(f"/lib/netboot/{name}" for name in ours)}
    assert {path for path, _ in initrd.stage_files(debug=True)} - names == {"/etc/netboot/debug"}


def test_what_is_ours_in_a_root_follows_the_recipe() -> None:
    agent = "/usr/lib/netboot/node/agent/__main__.py"
    plain, joins, brings = (
        {entry.path for entry in entries_of(join=join, containers=containers)}
        for join, containers in ((False, False), (True, False), (False, True))
    )
    assert agent in joins - plain
    assert "/usr/lib/systemd/system/netboot-images.service" in brings - plain
