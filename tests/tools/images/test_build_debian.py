"""The shipped Debian recipe, built through the command line, and what is in the image."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from images.artifact.keyring import KeyRing
from images.artifact.manifest import Manifest
from images.artifact.signing import verify
from images.build.steps.configure import IDENTITY
from images.store.store import Store
from tests.image_keys import image_keys
from tests.tools.images.image_build import BUILD_CACHE, blob, image_build
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools
MINIMAL = "debian-12-minimal"

"""The demo's and the boot tests' own, so that Debian is fetched once for all of them."""


@dataclass(frozen=True)
class Made:
    folder: Path
    manifest: Manifest
    listing: dict[str, tuple[str, str]]
    """Path in the image → (mode as `ls` writes it, owner/group)."""

    def blob(self, name: str) -> Path:
        return blob(self.folder, self.manifest, name)

    def cat(self, path: str) -> str:
        argv = ["unsquashfs", "-cat", str(self.blob("root")), path.lstrip("/")]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("debian")
    shutil.copytree(image_keys(), folder / "keys")
    before = mounts()
    result = image_build(folder, MINIMAL)
    assert mounts() == before
    store = Store(folder / "store")
    manifest = store.manifest(str(result["image"]))
    verify(manifest.to_bytes(), store.signature(manifest.digest), KeyRing(folder / "keys").trusted())
    argv = ["unsquashfs", "-lln", str(store.blob_path(manifest.artifacts.root.sha256))]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in shown.splitlines() if "squashfs-root" in line]
    paths = {line[5].removeprefix("squashfs-root") or "/": (line[0], line[1]) for line in words}
    yield Made(folder, manifest, paths)


def test_the_image_is_whole_and_within_its_budget(made: Made) -> None:
    for name, artifact in made.manifest.artifacts:
        data = made.blob(name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (artifact.sha256, artifact.size)
    kernel = made.blob("kernel").read_bytes()
    assert kernel[0x202:0x206] == b"HdrS", "a bzImage (the kernel's Documentation/arch/x86/boot.rst)"
    assert made.manifest.kernel_version.encode() in kernel
    assert made.manifest.artifacts.initrd.size < 4 << 20
    assert made.manifest.ram_mib < 512
    packages = {name for name, _, _ in json.loads(made.blob("packages").read_bytes())}
    assert {"systemd", "udev", "linux-image-cloud-amd64"} <= packages
    assert not {"perl", "apt", "man-db"} & packages


def test_there_is_an_init_and_no_kernel_in_the_root(made: Made) -> None:
    assert made.listing["/sbin"][0] == "lrwxrwxrwx"
    assert {"/usr/sbin/init", "/usr/lib/systemd/systemd", "/usr/bin/busybox"} <= made.listing.keys()
    assert [path for path in made.listing if path.startswith("/boot/")] == []
    assert [path for path in made.listing if path.startswith(("/dev/", "/proc/", "/sys/", "/run/", "/tmp/"))] == []


def test_nothing_names_one_machine(made: Made) -> None:
    assert [path for path in made.listing if any(fnmatchcase(path, pattern) for pattern in IDENTITY)] == []
    assert made.cat("/etc/machine-id") == ""
    assert [line for line in made.cat("/etc/shadow").splitlines() if line.startswith("root:*:")]


def test_nothing_of_the_build_is_left(made: Made) -> None:
    left = [
        path for path in made.listing if path.startswith(("/var/lib/apt/lists/", "/var/cache/apt/", "/var/log/dpkg"))
    ]
    assert left == []
    assert not [path for path in made.listing if "mmdebstrap" in path or "netboot.sources" in path]
    assert "/etc/resolv.conf" not in made.listing, "the initrd writes it"


def test_who_may_become_root(made: Made) -> None:
    raised = {path for path, (mode, owner) in made.listing.items() if mode[3] in "sS" and owner == "0/0"}
    assert raised == {
        "/usr/bin/chfn",
        "/usr/bin/chsh",
        "/usr/bin/gpasswd",
        "/usr/bin/mount",
        "/usr/bin/newgrp",
        "/usr/bin/passwd",
        "/usr/bin/su",
        "/usr/bin/umount",
    }
    worldly = {path for path, (mode, _) in made.listing.items() if mode[8] == "w" and mode[0] != "l"}
    assert worldly == {"/tmp", "/var/tmp"}
    assert all(made.listing[path][0].endswith("t") for path in worldly)


def test_only_the_wanted_modules_are_there_and_depmod_knows_them(made: Made) -> None:
    folder = f"/usr/lib/modules/{made.manifest.kernel_version}"
    files = {path.rpartition("/")[2] for path in made.listing if path.startswith(folder) and path.endswith(".ko")}
    assert {"virtio_net.ko", "failover.ko", "net_failover.ko", "vfat.ko", "fat.ko", "overlay.ko"} <= files
    assert "nfsd.ko" not in files
    known = {line.partition(":")[0].rpartition("/")[2] for line in made.cat(f"{folder}/modules.dep").splitlines()}
    assert known == files


def test_units_of_a_machine_without_a_disk(made: Made) -> None:
    wanted = "/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
    assert wanted in made.listing
    assert "/usr/lib/systemd/system/netboot-booted.service" in made.listing
    assert made.listing["/etc/systemd/system/fstrim.timer"][0].startswith("l")
    assert "Storage=volatile" in made.cat("/etc/systemd/journald.conf.d/10-netboot.conf")
    assert "ClientIdentifier=mac" in made.cat("/etc/systemd/network/80-netboot.network")


def test_systemd_has_nothing_to_update_at_boot(made: Made) -> None:
    argv = ["unsquashfs", "-llnumeric", "-UTC", str(made.blob("root")), "usr", "etc/.updated", "var/.updated"]
    shown = subprocess.run(argv, capture_output=True, text=True, env=os.environ | {"TZ": "UTC"}, check=True).stdout
    times = {line.split()[5]: line.split()[3:5] for line in shown.splitlines() if "squashfs-root/" in line}
    assert times["squashfs-root/usr"] == times["squashfs-root/etc/.updated"] == times["squashfs-root/var/.updated"]


OWN_FILES = (
    "/etc/hosts",
    "/etc/systemd/journald.conf.d/10-netboot.conf",
    "/etc/systemd/network/80-netboot.network",
    "/etc/systemd/system/systemd-networkd-wait-online.service.d/10-netboot.conf",
)
"""Of the recipe's `files:`."""


def test_the_documents_are_about_all_that_is_in_the_image(made: Made) -> None:
    packages = json.loads(made.blob("packages").read_bytes())
    components = json.loads(made.blob("sbom").read_bytes())["components"]
    assert {(one["type"], one["name"]) for one in components if one["type"] != "library"} == {
        ("application", "netboot-initrd"),
        ("application", "netboot-node"),
        *(("file", path) for path in OWN_FILES),
    }
    parts = [one for one in components if one["type"] == "library"]
    assert sorted([part["name"], part["version"], part["properties"][0]["value"]] for part in parts) == packages
    assert [part["name"] for part in parts if len(part.get("hashes", ())) != 1 or "purl" not in part] == []
    licences = [json.loads(line) for line in made.blob("licences").read_bytes().splitlines()]
    assert sorted([one["package"], one["version"], one["architecture"]] for one in licences) == packages
    assert [one["package"] for one in licences if one["form"] == "none"] == []
    assert made.blob("config").read_text().startswith("#\n# Automatically generated file; DO NOT EDIT.\n")


def test_the_listing_is_what_is_in_the_root(made: Made) -> None:
    entries = {entry["path"]: entry for entry in map(json.loads, made.blob("files").read_bytes().splitlines())}
    assert entries.keys() == made.listing.keys()
    raised = {path for path, entry in entries.items() if entry["mode"][0] in "4567" and entry["kind"] == "file"}
    assert raised == {path for path, (mode, _) in made.listing.items() if mode[0] == "-" and mode[3] in "sS"}
    path = "/usr/lib/os-release"
    data = made.cat(path).encode()
    assert (entries[path]["size"], entries[path]["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_provenance_is_about_all_artifacts_and_names_all_that_went_in(made: Made) -> None:
    statement = json.loads(made.blob("provenance").read_bytes())
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert subjects == {name: part.sha256 for name, part in made.manifest.artifacts if name != "provenance"}
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["identity"] == made.manifest.recipe
    assert definition["externalParameters"]["recipe"]["name"] == "debian-12-minimal"
    dependencies = definition["resolvedDependencies"]
    assert [one for one in dependencies if "digest" not in one] == []
    releases = [one for one in dependencies if one.get("uri", "").endswith("/InRelease")]
    assert len(releases) == 3
    named = {one["name"] for one in dependencies if "uri" not in one}
    assert named >= {"/init", "/lib/netboot/fetch.sh", "/usr/lib/netboot/tell.sh", *OWN_FILES}, (
        "what no package brought"
    )
    packages = json.loads(made.blob("packages").read_bytes())
    assert len(dependencies) == len(releases) + len(packages) + len(named)


def test_a_second_build_is_the_same_image_from_the_cache(made: Made) -> None:
    result = image_build(made.folder, MINIMAL)
    assert result["image"] == made.manifest.digest
    steps = result["steps"]
    assert isinstance(steps, list)
    assert [step["step"] for step in steps if not step["cached"]] == ["mirrors", "sign", "store"]


def test_another_file_of_the_overlay_costs_only_what_follows_it(made: Made, tmp_path: Path) -> None:
    (tmp_path / "files/etc").mkdir(parents=True)
    (tmp_path / "files/etc/motd").write_text(f"{tmp_path}\n")
    (tmp_path / "mine.yaml").write_text("base: debian-12-minimal\noverlay: [files]\n")
    steps = image_build(made.folder, tmp_path / "mine.yaml")["steps"]
    assert isinstance(steps, list)
    assert {step["step"] for step in steps if step["cached"]} == {"bootstrap", "initrd"}


def test_packages_are_kept_for_the_next_build(made: Made) -> None:
    packages = json.loads(made.blob("packages").read_bytes())
    kept = {path.name[65:].partition("_")[0] for path in (BUILD_CACHE / "packages").iterdir()}
    assert {name for name, _, _ in packages} <= kept
