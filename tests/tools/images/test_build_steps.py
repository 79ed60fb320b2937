"""Each step with its real tool on something small, and what it says when it is asked for what cannot be."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from images.build import bytecode
from images.build.containers import Archive
from images.build.sources import Mirror
from images.build.step import Product
from images.build.steps import bootstrap, configure, gather, kernel, root
from images.errors import CommandError, RecipeError
from images.formats.overlay import Entry
from images.recipe.inherit import SHIPPED
from images.recipe.recipe import Profile
from tests.tools.images.file_server import served
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools

CREATED = 1_700_000_000
SYSTEMCTL = """\
#!/bin/busybox sh
[ "$SYSTEMD_OFFLINE" = 1 ] || exit 1
case $2 in missing.service) echo "Failed to $1 unit: Unit file $2 does not exist." >&2; exit 1 ;; esac
echo "$1 $2" >>/etc/asked
"""


def quiet(line: str) -> None:
    pass


@pytest.fixture
def base(tmp_path: Path) -> Product:
    """A tree as bootstrap leaves it, small: busybox, a systemctl that writes down what it is asked, and leftovers."""
    tree = tmp_path / "base/root"
    for folder in (
        "bin",
        "etc/ssh",
        "etc/apt",
        "dev",
        "run",
        "tmp",
        "usr/share/junk",
        "var/log/journal",
        "var/log/keep",
        "var/lib/apt/lists",
    ):
        (tree / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", tree / "bin/busybox")
    (tree / "bin/systemctl").write_text(SYSTEMCTL)
    (tree / "bin/systemctl").chmod(0o755)
    (tree / "etc/shadow").write_text("root:$y$secret:20000:0:99999:7:::\nother:!:1::::::\n")
    (tree / "etc/shadow").chmod(0o640)
    os.chown(tree / "etc/shadow", 0, 42)
    for name in (
        "etc/machine-id",
        "etc/hostname",
        "etc/ssh/ssh_host_rsa_key",
        "etc/resolv.conf",
        "var/log/dpkg.log",
        "etc/shadow-",
    ):
        (tree / name).write_text("of one machine\n")
    (tree / "var/lib/apt/lists/x_InRelease").write_text("")
    (tree / "dev/null").write_text("")
    (tree / "bin/tool").write_text("x")
    os.setxattr(tree / "bin/tool", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    return Product("base", tmp_path / "base")


def inputs(base: Product, **changes: object) -> configure.Inputs:
    values: dict[str, object] = {
        "base": base, "node": (), "node_units": (), "entries": (), "units": {}, "remove": (), "created": CREATED,
    }  # fmt: skip
    return configure.Inputs(**(values | changes))  # type: ignore[arg-type]


def configured(tmp_path: Path, wanted: configure.Inputs) -> Path:
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    configure.configure(wanted, out, quiet)
    return out / "root"


def test_configure_puts_files_enables_units_and_removes(tmp_path: Path, base: Product) -> None:
    tree = configured(
        tmp_path,
        inputs(
            base,
            node=(Entry("/etc/a", content=b"node"), Entry("/etc/b", content=b"node")),
            node_units=("ours.service",),
            entries=(Entry("/etc/a", 0o600, b"recipe"), Entry("/etc/link", link="/run/x")),
            units={"x.service": "enable", "y.timer": "disable", "z.timer": "mask"},
            remove=("/usr/share/ju*",),
        ),
    )
    assert ((tree / "etc/a").read_text(), (tree / "etc/b").read_text()) == ("recipe", "node")
    assert (tree / "etc/a").stat().st_mode & 0o7777 == 0o600
    assert (tree / "etc/link").readlink() == Path("/run/x")
    assert (tree / "etc/asked").read_text() == "enable ours.service\nenable x.service\ndisable y.timer\n"
    assert (tree / "etc/systemd/system/z.timer").readlink() == Path("/dev/null")
    assert not (tree / "usr/share/junk").exists()


PYTHON = """\
#!/bin/busybox sh
echo "$PYTHONHASHSEED $*" >/etc/asked
umask 077
/bin/busybox mkdir /usr/lib/netboot/node/__pycache__
echo x >/usr/lib/netboot/node/__pycache__/a.pyc
"""


def test_configure_compiles_what_is_ours_by_the_images_own_python(tmp_path: Path, base: Product) -> None:
    python = base.path / "root/usr/bin/python3"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    tree = configured(tmp_path, inputs(base, node=(Entry("/usr/lib/netboot/node/a.py"),)))
    asked = "0 -Bs -m compileall -q --invalidation-mode unchecked-hash /usr/lib/netboot\n"
    assert (tree / "etc/asked").read_text() == asked
    made = tree / "usr/lib/netboot/node/__pycache__"
    assert [path.stat().st_mode & 0o7777 for path in (made, made / "a.pyc")] == [0o755, 0o644]
    assert bytecode.paths(tree) == ["/usr/lib/netboot/node/__pycache__/a.pyc"]


def test_configure_leaves_nothing_of_one_machine_and_of_the_build(tmp_path: Path, base: Product) -> None:
    tree = configured(tmp_path, inputs(base))
    assert list(configure.identity_files(tree)) == []
    assert (tree / "etc/machine-id").read_bytes() == b""
    gone = (
        "etc/hostname",
        "etc/resolv.conf",
        "etc/shadow-",
        "var/log/dpkg.log",
        "var/log/journal",
        "dev/null",
        "var/lib/apt/lists/x_InRelease",
    )
    assert [name for name in gone if os.path.lexists(tree / name)] == []
    assert (tree / "var/log/keep").is_dir()
    assert (base.path / "root/etc/hostname").exists(), "the product of the step before is as it was"


def test_configure_locks_root_and_keeps_owners_and_capabilities(tmp_path: Path, base: Product) -> None:
    tree = configured(tmp_path, inputs(base))
    assert (tree / "etc/shadow").read_text() == "root:*:20000:0:99999:7:::\nother:!:1::::::\n"
    status = (tree / "etc/shadow").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, 42, 0o640)
    assert os.getxattr(tree / "bin/tool", "security.capability") == os.getxattr(
        base.path / "root/bin/tool", "security.capability"
    )


def test_configure_settles_times_so_that_no_boot_rebuilds_caches(tmp_path: Path, base: Product) -> None:
    tree = configured(tmp_path, inputs(base))
    assert max(path.lstat().st_mtime for path in (tree, *tree.rglob("*"))) == CREATED
    assert {(tree / name).stat().st_mtime for name in ("usr", "etc/.updated", "var/.updated")} == {CREATED}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"units": {"missing.service": "enable"}},
            (
                "units.missing.service: enable is not possible in this image: "
                "Failed to enable unit: Unit file missing.service does not exist."
            ),
        ),
        ({"remove": ("/no/such",)}, "remove: nothing in the image fits '/no/such'; take it out of the recipe"),
        (
            {"entries": (Entry("/etc/hostname", content=b"me"),)},
            "/etc/hostname names one machine, and an image is for many; take it out of the recipe's files",
        ),
        ({"entries": (Entry("/bin", content=b""),)}, "/bin cannot be put into the image: Is a directory"),
        (
            {"node": (Entry("/usr/lib/netboot/node/a.py"),)},
            "join: the image has no /usr/bin/python3 to run the agent with; add the package python3",
        ),
    ],
)
def test_what_configure_refuses(tmp_path: Path, base: Product, change: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        configured(tmp_path, inputs(base, **change))
    assert str(caught.value) == message


def test_archives_of_container_images_are_copied_under_their_digest(tmp_path: Path, base: Product) -> None:
    (base.path / "root/usr/bin").mkdir()
    (base.path / "root/usr/bin/ctr").touch()
    (tmp_path / "a.tar").write_bytes(b"an archive")
    digest = hashlib.sha256(b"an archive").hexdigest()
    tree = configured(tmp_path, inputs(base, archives=(Archive(tmp_path / "a.tar", digest, ()),)))
    copy = tree / f"usr/lib/netboot/images/{digest[:16]}.tar"
    assert (copy.read_bytes(), copy.stat().st_mode & 0o7777) == (b"an archive", 0o644)


def test_an_archive_that_changes_while_it_is_read_or_that_nothing_loads(tmp_path: Path, base: Product) -> None:
    (tmp_path / "a.tar").write_bytes(b"another archive")
    wanted = inputs(base, archives=(Archive(tmp_path / "a.tar", "0" * 64, ()),))
    with pytest.raises(RecipeError) as caught:
        configured(tmp_path, wanted)
    assert str(caught.value) == (
        "container_images: the image has no /usr/bin/ctr to load them with; add the package containerd"
    )
    (base.path / "root/usr/bin").mkdir()
    (base.path / "root/usr/bin/ctr").touch()
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(RecipeError) as caught:
        configured(tmp_path, wanted)
    assert str(caught.value) == (
        f"container_images: {tmp_path}/a.tar changed while it was being read; run the build again"
    )


def test_configure_cannot_be_led_out_of_the_tree(tmp_path: Path, base: Product) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/precious").write_text("mine")
    (base.path / "root/var/tmp").symlink_to(tmp_path / "host")
    (base.path / "root/opt").symlink_to(tmp_path / "host")
    configured(
        tmp_path, inputs(base, entries=(Entry("/opt/precious", content=b"theirs"),), remove=("/usr/share/junk",))
    )
    assert (tmp_path / "host/precious").read_text() == "mine"


@pytest.fixture
def booted(tmp_path: Path) -> Product:
    """A configured tree with a kernel and the tables of its modules."""
    tree = tmp_path / "tree/root"
    modules = tree / "usr/lib/modules/6.1"
    (modules / "kernel").mkdir(parents=True)
    (tree / "lib").symlink_to("usr/lib")
    (tree / "boot").mkdir()
    (tree / "boot/vmlinuz-6.1").write_text("kernel")
    (tree / "boot/config-6.1").write_text("config")
    (modules / "modules.dep").write_text("kernel/a.ko:\n")
    (modules / "kernel/a.ko").write_text("")
    return Product("tree", tmp_path / "tree")


def test_the_kernel_leaves_the_root(tmp_path: Path, booted: Product) -> None:
    out = tmp_path / "out"
    out.mkdir()
    kernel.kernel(kernel.Inputs(booted, None), out, quiet)
    assert ((out / "vmlinuz").read_text(), (out / "version").read_text()) == ("kernel", "6.1\n")
    assert list((out / "root/boot").iterdir()) == []
    assert (out / "root/lib/modules/6.1/kernel/a.ko").exists()
    assert (booted.path / "root/boot/config-6.1").exists(), "the product of the step before is as it was"


def test_a_module_that_the_kernel_has_not_is_named(tmp_path: Path, booted: Product) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(RecipeError, match=r"kernel 6\.1 has no module mlx5_core"):
        kernel.kernel(kernel.Inputs(booted, ("a", "mlx5_core")), out, quiet)


def squashed(tmp_path: Path, name: str, created: int = CREATED) -> Path:
    out = tmp_path / name
    out.mkdir()
    root.root(root.Inputs(Product("k", tmp_path / "tree"), "dev", created), out, quiet)
    return out / "root.img"


def test_the_root_image_has_the_same_bytes_every_time(tmp_path: Path, booted: Product) -> None:
    first = squashed(tmp_path, "1")
    for path in sorted((tmp_path / "tree/root").rglob("*")):
        os.utime(path, follow_symlinks=False)  # touched now: later than the image's time
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(squashed(tmp_path, "2").read_bytes()).digest()
    assert first.read_bytes() != squashed(tmp_path, "3", CREATED + 1).read_bytes()
    listed = subprocess.run(["unsquashfs", "-l", first], capture_output=True, text=True, check=True).stdout
    assert "squashfs-root/boot/vmlinuz-6.1\n" in listed
    shown = subprocess.run(["unsquashfs", "-s", first], capture_output=True, text=True, check=True).stdout
    assert "Compression zstd" in shown
    assert "Block size 131072" in shown


def erofs(tmp_path: Path, name: str, created: int = CREATED, profile: Profile = "release") -> Path:
    out = tmp_path / name
    out.mkdir()
    root.root(root.Inputs(Product("k", tmp_path / "tree"), profile, created, "erofs"), out, quiet)
    return out / "root.img"


def test_erofs_has_the_same_bytes_every_time_too(tmp_path: Path, booted: Product) -> None:
    first = erofs(tmp_path, "1")
    for path in sorted((tmp_path / "tree/root").rglob("*")):
        os.utime(path, follow_symlinks=False)
    assert first.read_bytes() == erofs(tmp_path, "2").read_bytes()
    assert first.read_bytes() != erofs(tmp_path, "3", CREATED + 1).read_bytes()
    assert erofs(tmp_path, "4", profile="dev").read_bytes()[1024:1028] == bytes.fromhex("e2e1f5e0"), "erofs's magic"
    shown = subprocess.run(
        ["dump.erofs", "--path=/boot/vmlinuz-6.1", first], capture_output=True, text=True, check=True
    ).stdout
    assert "Size: 6 " in shown


def test_no_tree_no_root_image(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="mksquashfs"):
        squashed(tmp_path, "1")


def test_an_initrd_without_its_tools_says_which_package_is_missing(tmp_path: Path, booted: Product) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/version").write_text("6.1\n")
    modules = booted.path / "root/usr/lib/modules/6.1"
    (modules / "modules.builtin").write_text(
        "".join(f"kernel/{name}.ko\n" for name in ("squashfs", "loop", "overlay", "af_packet"))
    )
    out = tmp_path / "out"
    out.mkdir()
    wanted = gather.Inputs(booted, Product("k", tmp_path / "kernel"), (), (("a.pub", b"x"),))
    with pytest.raises(RecipeError, match="put the package busybox-static into the recipe"):
        gather.gather(wanted, out, quiet)


def test_a_mirror_that_is_signed_by_nobody_we_trust_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "mirror/dists/x"
    folder.mkdir(parents=True)
    (folder / "InRelease").write_text(
        "Suite: x\nDate: Fri, 20 Nov 2020 01:29:49 UTC\nComponents: main\nArchitectures: amd64\n"
    )
    out = tmp_path / "out"
    out.mkdir()
    keyring = (SHIPPED / "keys/debian-12-archive.asc").read_bytes()
    before = mounts()
    with served(tmp_path / "mirror") as url:
        mirror = Mirror(url, ("x",), ("main",), keyring, ".asc", ("0" * 64,), CREATED)
        with pytest.raises(CommandError) as caught:
            bootstrap.bootstrap(bootstrap.Inputs("x", "amd64", (mirror,), ("systemd",), CREATED), out, quiet)
    assert "is not signed" in caught.value.output
    assert "unshare --mount --pid" in caught.value.command
    assert mounts() == before


@pytest.mark.parametrize(
    ("name", "fingerprints"),
    [
        ("ubuntu-archive-2018.asc", ["F6ECB3762474EDA9D21B7022871920D1991BC93C"]),
        (
            "debian-12-archive.asc",
            [
                "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8",
                "05AB90340C0C5E797F44A8C8254CF3B5AEC0A8F0",
                "4D64FEC119C2029067D6E791F8D2585B8783D481",
            ],
        ),
    ],
)
def test_shipped_keyrings_hold_the_archives_keys_and_no_others(name: str, fingerprints: list[str]) -> None:
    """By OpenPGP's own rule (RFC 9580, 5.5.4): SHA-1 of 0x99, two bytes of length, the version 4 key packet."""
    assert primary_fingerprints((SHIPPED / "keys" / name).read_text()) == fingerprints


def primary_fingerprints(armoured: str) -> list[str]:
    import base64

    body = armoured.partition("\n\n")[2].partition("\n=")[0]
    data, found = base64.b64decode(body), []
    while data:
        kind, length, head = _packet(data)
        if kind == 6:
            packet = data[head : head + length]
            found.append(hashlib.sha1(b"\x99" + len(packet).to_bytes(2, "big") + packet).hexdigest().upper())
        data = data[head + length :]
    return found


def _packet(data: bytes) -> tuple[int, int, int]:
    """Tag, body length and header length of the first packet (old format, as gpg exports keys)."""
    assert data[0] & 0xC0 == 0x80, "old packet format"
    size = 1 << (data[0] & 3)
    return (data[0] >> 2) & 15, int.from_bytes(data[1 : 1 + size], "big"), 1 + size
