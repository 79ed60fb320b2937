"""The steps' pure parts: command lines as literals, what is counted, what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from images.artifact.manifest import CHUNK_SIZE, ContainerImage, read_manifest
from images.artifact.measure import measure
from images.artifact.signing import SigningKey
from images.build.node_files import installable
from images.build.pipeline import sign
from images.build.plan import all_steps
from images.build.sources import Mirror
from images.build.step import Product
from images.build.steps import bootstrap, configure, kernel, manifest, root
from images.errors import RecipeError, SourceUnavailableError, UnknownSignerError
from images.formats import debian
from images.formats.overlay import Entry
from images.values.finding import BudgetError

MIRROR = Mirror(
    "http://m.example/d", ("a", "a-updates"), ("main", "universe"), b"key", ".asc", ("1" * 64, "2" * 64), 1000
)


def quiet(line: str) -> None:
    pass


def test_steps_in_their_order_with_versions() -> None:
    steps = all_steps()
    assert [step.name for step in steps] == [
        *("bootstrap", "dracut", "drivers", "configure", "kernel", "documents", "gather", "root"),
        *("initrd", "gates", "uki", "manifest"),
    ]
    assert all(step.version >= 1 and step.outputs for step in steps)
    assert len({step.identity() for step in steps}) == len(steps)


def test_bootstraps_command() -> None:
    inputs = bootstrap.Inputs("bookworm", "amd64", (MIRROR,), ("systemd", "usr-is-merged"), 1000)
    assert bootstrap.argv(inputs, Path("/c/root"), Path("/c/n.sources")) == [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
        "mmdebstrap",
        "--verbose",
        "--mode=root",
        "--format=directory",
        "--variant=essential",
        "--architectures=amd64",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        "--include=systemd,usr-is-merged",
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "3"',
        "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/info/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/lintian/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--skip=cleanup/apt/lists",
        "bookworm",
        "/c/root",
        "/c/n.sources",
    ]


def test_where_base_files_merges_usr_no_hook_does() -> None:
    inputs = bootstrap.Inputs("noble", "amd64", (MIRROR,), ("systemd",), 1000)
    assert not [word for word in bootstrap.argv(inputs, Path("/r"), Path("/s")) if "hook" in word]


def test_sources_name_the_only_keys_that_may_sign() -> None:
    other = Mirror("https://o.example", ("b",), ("main",), b"other", ".gpg", (), 0)
    assert bootstrap.sources_file((MIRROR, other), Path("/k")) == (
        "Types: deb\n"
        "URIs: http://m.example/d\n"
        "Suites: a a-updates\n"
        "Components: main universe\n"
        "Signed-By: /k/2c70e12b7a0646f9.asc\n"
        "\n"
        "Types: deb\n"
        "URIs: https://o.example\n"
        "Suites: b\n"
        "Components: main\n"
        "Signed-By: /k/d9298a10d1b07358.gpg\n"
    )


def test_a_local_flat_repository_is_copied_from_and_signed_all_the_same() -> None:
    local = Mirror("file:///srv/r", ("/",), (), b"key", ".asc", ("3" * 64,), 1)
    assert bootstrap.sources_file((local,), Path("/k")) == (
        "Types: deb\nURIs: copy:///srv/r\nSuites: /\nSigned-By: /k/2c70e12b7a0646f9.asc\n"
    )
    sandboxed = [
        '--aptopt=APT::Sandbox::User "root"'
        in bootstrap.argv(bootstrap.Inputs("a", "amd64", mirrors, ("systemd",), 1), Path("/r"), Path("/s"))
        for mirrors in ((MIRROR,), (MIRROR, local))
    ]
    assert sandboxed == [False, True]


def test_the_same_packages_from_another_place_are_the_same_input() -> None:
    def key(*mirrors: Mirror) -> str:
        return bootstrap.STEP.key(bootstrap.Inputs("a", "amd64", mirrors, ("systemd",), 1))

    assert key(replace(MIRROR, url="file:///srv/elsewhere")) == key(MIRROR)
    assert key(replace(MIRROR, releases=("3" * 64, "2" * 64))) != key(MIRROR)
    assert key(replace(MIRROR, keyring=b"another")) != key(MIRROR)


def test_a_mirror_that_changed_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installs(argv: list[str], **options: object) -> str:
        lists = tmp_path / "root/var/lib/apt/lists"
        lists.mkdir(parents=True)
        (lists / "m.example_dists_a_InRelease").write_text("another")
        return ""

    monkeypatch.setattr(bootstrap, "run", installs)
    monkeypatch.setattr(bootstrap, "proxy_environment", dict)
    inputs = bootstrap.Inputs("a", "amd64", (MIRROR,), ("systemd",), 1000)
    with pytest.raises(SourceUnavailableError) as caught:
        bootstrap.bootstrap(inputs, tmp_path, quiet)
    assert str(caught.value) == (
        "a mirror (http://m.example/d) published new packages while they were being read; run the build again"
    )


@pytest.mark.parametrize(("profile", "level", "block"), [("dev", "3", "128K"), ("release", "19", "1M")])
def test_roots_command(profile: str, level: str, block: str) -> None:
    inputs = root.Inputs(Product("k", Path("/c/kernel")), profile, 1000)  # type: ignore[arg-type]
    assert root.argv(inputs, Path("/c/out")) == [
        "mksquashfs",
        "/c/kernel/root",
        "/c/out/root.img",
        "-noappend",
        "-no-progress",
        "-quiet",
        "-exit-on-error",
        "-mem",
        "128M",
        "-comp",
        "zstd",
        "-Xcompression-level",
        level,
        "-b",
        block,
    ]


@pytest.mark.parametrize(("profile", "compression"), [("dev", "-zlz4"), ("release", "-zlz4hc,9")])
def test_roots_command_for_erofs(profile: str, compression: str) -> None:
    inputs = root.Inputs(Product("k", Path("/c/kernel")), profile, 1000, "erofs")  # type: ignore[arg-type]
    assert root.argv(inputs, Path("/c/out")) == [
        "mkfs.erofs",
        "--quiet",
        "-U",
        "00000000-0000-0000-0000-000000000000",
        compression,
        "-C65536",
        "-Eztailpacking",
        "/c/out/root.img",
        "/c/kernel/root",
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "the image has no kernel in /boot and must have one; see kernel.package in the recipe"),
        (
            ("vmlinuz-1", "vmlinuz-2"),
            "the image has 2 kernels (1, 2) in /boot and must have one; see kernel.package in the recipe",
        ),
    ],
)
def test_an_image_has_one_kernel(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    (tmp_path / "boot").mkdir()
    for name in names:
        (tmp_path / "boot" / name).write_text("")
    with pytest.raises(RecipeError) as caught:
        kernel.version_of(tmp_path)
    assert str(caught.value) == message


def test_identity_files_are_found_wherever_they_come_from(tmp_path: Path) -> None:
    there = [
        "etc/ssh/ssh_host_rsa_key",
        "etc/ssh/ssh_host_rsa_key.pub",
        "etc/nvme/hostid",
        "etc/nvme/hostnqn",
        "var/lib/dbus/machine-id",
        "var/lib/systemd/random-seed",
        "var/lib/dhcp/dhclient.eth0.leases",
        "etc/hostname",
        "etc/machine-id",
    ]
    for name in (*there, "etc/ssh/sshd_config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert sorted(configure.identity_files(tmp_path)) == sorted(f"/{name}" for name in there)
    (tmp_path / "etc/machine-id").write_text("\n")
    assert "/etc/machine-id" not in set(configure.identity_files(tmp_path))


def test_units_of_ours_that_can_be_enabled() -> None:
    entries = (
        Entry("/usr/lib/systemd/system/a.service", content=b"[Unit]\n[Install]\nWantedBy=x\n"),
        Entry("/usr/lib/systemd/system/b.service", content=b"[Unit]\n"),
        Entry("/usr/lib/other/c.service", content=b"[Unit]\n[Install]\n"),
    )
    assert installable(entries) == ("a.service",)


def test_chunks_cover_the_root_image(tmp_path: Path) -> None:
    path = tmp_path / "root"
    path.write_bytes(b"x" * (CHUNK_SIZE + 1))
    found = measure(path, chunks=True)
    assert (found.size, len(found.chunks)) == (CHUNK_SIZE + 1, 2)
    path.write_bytes(b"")
    assert measure(path, chunks=True).chunks == ()


def test_memory_is_the_packed_root_kernel_and_initrd_packed_and_unpacked_and_a_margin() -> None:
    assert manifest.ram_mib(14 << 20, 2 << 20, 35 << 20) == 35 + 4 * 16 + 256
    assert manifest.ram_mib(0, 0, 1) == 257


STATUS = """\
Package: b
Status: install ok installed
Architecture: amd64
Version: 1:2.0-1
Description: text
 more: text

Package: a
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: c
Status: install ok installed
Version: 3
Architecture: all
"""


def test_packages_are_those_that_are_installed() -> None:
    packages = [package.identity for package in debian.installed(STATUS)]
    assert packages == [("b", "1:2.0-1", "amd64"), ("c", "3", "all")]
    assert manifest.packages_json(packages) == b'[\n["b", "1:2.0-1", "amd64"],\n["c", "3", "all"]\n]\n'


def described(tmp_path: Path, budget: int, containers: tuple[ContainerImage, ...] = ()) -> manifest.Inputs:
    kernel_, root_, initrd_ = (Product(name, tmp_path / name) for name in ("kernel", "root", "initrd"))
    tree = tmp_path / "kernel/root"
    info = tree / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (tree / "var/lib/dpkg/status").write_text(STATUS)
    (tree / "usr/lib/big").mkdir(parents=True)
    (tree / "lib").symlink_to("usr/lib")
    (tree / "usr/lib/big/file").write_bytes(b"x" * 3_000_000)
    (tree / "usr/lib/big/unowned").write_bytes(b"x" * 2_000_000)
    (info / "b:amd64.list").write_text("/.\n/lib\n/lib/big\n/lib/big/file\n")
    (tmp_path / "kernel/vmlinuz").write_bytes(b"k" * 1_500_000)
    (tmp_path / "kernel/version").write_text("6.1.0-9-amd64\n")
    for name in ("root", "initrd"):
        (tmp_path / name).mkdir()
    (tmp_path / "root/root.img").write_bytes(b"r" * 900_000)
    (tmp_path / "initrd/initrd.img").write_bytes(b"i" * 100_000)
    return manifest.Inputs(
        kernel_, root_, initrd_, name="mine",
        distribution="debian", suite="bookworm", architecture="amd64", recipe="5" * 64,
        epoch=3, created=1000, arguments=("quiet",), budget_mib=budget,
        containers=containers,
    )  # fmt: skip


def test_the_manifest_says_what_was_made(tmp_path: Path) -> None:
    inputs = described(tmp_path, budget=3)
    out = tmp_path / "out"
    out.mkdir()
    manifest.manifest(inputs, out, quiet)
    made = read_manifest((out / "manifest.json").read_bytes())
    assert (made.name, made.epoch, made.kernel_version, made.kernel_arguments) == (
        "mine",
        3,
        "6.1.0-9-amd64",
        ("quiet",),
    )
    assert made.artifacts.root.size == 900_000 and len(made.artifacts.root.chunks) == 1
    assert made.artifacts.packages.size == (out / "packages.json").stat().st_size


def test_container_images_are_in_the_manifest_and_in_the_memory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    image = ContainerImage(name="localhost/web:1", digest="7" * 64, size=10 << 20)
    manifest.manifest(described(tmp_path, 3, (image,)), out, quiet)
    made = read_manifest((out / "manifest.json").read_bytes())
    assert made.container_images == (image,)
    assert made.ram_mib == manifest.ram_mib(1_500_000, 100_000, 900_000) + 10


def test_over_budget_the_largest_contributors_are_named(tmp_path: Path) -> None:
    with pytest.raises(BudgetError) as caught:
        manifest.manifest(described(tmp_path, budget=2), tmp_path / "root", quiet)
    assert str(caught.value) == (
        "this image must not be booted, and was not stored; 1 finding:\n"
        "budget: mine is 2.4 MiB (kernel, initrd and root as a machine fetches them), its recipe allows budget_mib: 2\n"
        "  raise it, or leave something out. The largest parts, uncompressed:\n"
        f"{LARGEST}"
    )


LARGEST = """\
        2.9 MiB  b
        1.9 MiB  /usr/lib/big
        0.0 MiB  /var/lib/dpkg"""


def test_where_too_little_memory_is_left_the_largest_contributors_are_named(tmp_path: Path) -> None:
    inputs = replace(described(tmp_path, budget=3), machine_memory_mib=400)
    with pytest.raises(BudgetError) as caught:
        manifest.manifest(inputs, tmp_path / "root", quiet)
    assert str(caught.value) == (
        "this image must not be booted, and was not stored; 1 finding:\n"
        "memory: mine leaves 45 of 388 MiB for work, and a quarter is 97: "
        "image 17, system 262, overlay 64 (machine_memory_mib: 400)\n"
        "  boot it on larger machines, or leave something out. The largest parts, uncompressed:\n"
        f"{LARGEST}"
    )
    out = tmp_path / "out"
    out.mkdir()
    manifest.manifest(replace(inputs, machine_memory_mib=600), out, quiet)


def test_a_signature_that_the_images_own_initrd_would_refuse_is_not_made() -> None:
    key, other = SigningKey.generate(), SigningKey.generate()
    assert sign(b"{}\n", key, {"a.pub": key.public.to_bytes()})
    with pytest.raises(UnknownSignerError):
        sign(b"{}\n", key, {"a.pub": other.public.to_bytes()})
