"""The container image for arm64, built where that architecture is emulated: what it is made of, and that it runs."""

import json
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from lab import container, packages
from lab.container import Storage
from lab.elf import AARCH64, machines
from tests.containers import image, printed
from tests.tools.deploy.test_container import site

pytestmark = pytest.mark.tools

VERSION = "0.1.0"
IMAGE = f"{container.NAME}:{VERSION}"
COMPILED = ["_cffi_backend", "_yaml", "aiohttp._http_parser", "charset_normalizer.md", "cryptography.x509"]
COMPILED += ["frozenlist._frozenlist", "google._upb._message", "markupsafe._speedups", "multidict._multidict"]
COMPILED += ["propcache._helpers_c", "pydantic_core", "yarl._quoting_c"]
"""A module of each library that is."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the image; `deb`: this machine's own package, of which the other's is made."""
    return tmp_path_factory.mktemp("container-arm64")


@pytest.fixture(scope="module")
def storage(folder: Path) -> Iterator[Storage]:
    with image(folder, VERSION, of="arm64") as (storage, _):
        yield storage


@pytest.fixture(scope="module")
def root(storage: Storage) -> Iterator[Path]:
    with storage.mounted(IMAGE) as root:
        yield root


def test_an_archive_says_arm64(storage: Storage, tmp_path: Path) -> None:
    """The file that a registry is given, and not buildah's word for it."""
    file = tmp_path / "oci.tar"
    container.archive(storage, ["push", "--quiet", IMAGE], file, VERSION)
    with tarfile.open(file) as archive:

        def blob(name: str) -> Any:
            member = archive.extractfile(name)
            assert member is not None
            return json.load(member)

        (manifest,) = blob("index.json")["manifests"]
        settings = blob(f"blobs/sha256/{manifest['digest'].removeprefix('sha256:')}")["config"]
        said = blob(f"blobs/sha256/{settings['digest'].removeprefix('sha256:')}")
    assert (said["os"], said["architecture"]) == ("linux", "arm64")


def test_every_program_and_library_is_of_aarch64(root: Path) -> None:
    found = machines(root)
    assert set(found) == {AARCH64}
    python = (root / "usr/bin/python3").readlink().name
    assert {f"usr/bin/{python}", "usr/bin/dash"} <= set(found[AARCH64])
    assert not list(root.rglob("qemu-*")), "what ran them here is no part of the image"


def test_its_libraries_are_those_of_this_machines_own_package(root: Path, folder: Path) -> None:
    ours, own = (libraries(tree) for tree in (root, folder / "deb"))
    assert {each.name: each.version for each in metadata.distributions(path=[str(ours)])} == {
        each.name: each.version for each in metadata.distributions(path=[str(own)])
    }
    assert modules(ours) == modules(own)
    for path in ("bin/python3", "bin/python", "lib64"):
        assert (root / packages.HOME / path).readlink() == (folder / "deb" / packages.HOME / path).readlink()


def test_the_bill_is_of_arm64(root: Path, folder: Path) -> None:
    bill = json.loads(container.bill(root, VERSION))
    purls = [component["purl"] for component in bill["components"]]
    assert any(purl.startswith("pkg:deb/debian/libc6@") and "arch=arm64" in purl for purl in purls)
    assert not any("arch=amd64" in purl for purl in purls)
    named = {purl.removeprefix("pkg:pypi/").replace("_", "-").lower() for purl in purls if purl.startswith("pkg:pypi/")}
    installed = metadata.distributions(path=[str(libraries(folder / "deb"))])
    assert named == {f"{each.name}@{each.version}".replace("_", "-").lower() for each in installed}


def test_its_programs_run(storage: Storage, tmp_path: Path) -> None:
    """In a container, emulated, as the image's account: every compiled library, and a command that reads a site."""
    config, options = site(tmp_path)
    assert config.site == "test"
    code = ";".join(("import platform", *(f"import {name}" for name in COMPILED), "print(platform.machine())"))
    python = [f"--entrypoint=/{packages.HOME}/bin/python3", *options]
    assert printed(storage, IMAGE, python, ["-c", code]) == "aarch64\n"
    assert printed(storage, IMAGE, options, ["--version"]) == f"netboot {VERSION}\n"
    checked = printed(storage, IMAGE, options, ["config", "check"]).splitlines()
    assert checked[0] == "netboot.yaml: no faults; 1 machine, 1 profile, 1 channel"


def libraries(root: Path) -> Path:
    (found,) = (root / packages.HOME).glob("lib/python3*/site-packages")
    return found


def modules(folder: Path) -> set[str]:
    """What Python reads there, by its name; of a library that is compiled, all before its own suffix."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(path.with_name(path.name.partition(".")[0] if path.suffix == ".so" else path.name))
        for path in found
        if not any(part.endswith((".dist-info", ".libs")) for part in path.parts)
    }
