"""Kernel modules: whose kernel, which are missing, which are not signed, which machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from images.build.gates.checks import architecture, kernel, required, signatures, tools
from images.build.gates.gate import all_gates, findings, report
from images.build.gates.kmod import SIGNED, describe
from images.recipe.recipe import Requires
from tests.unit.images import elf_samples
from tests.unit.images.gate_facts import CONTENT, KERNEL, facts, known, module, modules, recipe_facts, said


def test_an_image_that_passes_and_its_report(tmp_path: Path) -> None:
    assert findings(facts(tmp_path), all_gates()) == []
    told = {line["gate"]: line["looked_at"] for line in report(facts(tmp_path), all_gates())}
    assert list(told) == [
        *("architecture", "identity", "kernel", "nouveau", "nvidia", "owners", "pairs"),
        *("required", "secrets", "signatures", "skew", "sources"),
        "tools",
    ]
    assert told["kernel"] == f"{KERNEL}: 1 modules in the root, 1 in the initrd"


def test_modules_of_another_kernel(tmp_path: Path) -> None:
    own = f"/usr/lib/modules/{KERNEL}/kernel"
    wrong = modules(
        module("a", vermagic="6.1.0-10-amd64"), module("b", vermagic=""), module("c", fault="not an ELF file")
    )
    remedy = "compile or install it for the image's own kernel (kernel.package), or take it out with 'remove'"
    assert said(kernel.GATE, facts(tmp_path, modules=wrong, strange_kernels=("5.10.0-1-amd64",))) == [
        f"kernel: {own}/a.ko was made for kernel 6.1.0-10-amd64, and the image's kernel is {KERNEL}\n  {remedy}",
        f"kernel: {own}/b.ko does not say for which kernel it is, and the image's kernel is {KERNEL}\n  {remedy}",
        f"kernel: {own}/c.ko is no kernel module: not an ELF file\n  {remedy}",
        (
            f"kernel: /usr/lib/modules/5.10.0-1-amd64 is there, and the image's kernel is {KERNEL}\n"
            "  take out the package that brings it, or the folder with 'remove'"
        ),
    ]


def test_what_a_module_says_of_itself() -> None:
    data = elf_samples.module_of(
        b"name=mlx5-ib\0vermagic=6.1.0-9-amd64 SMP mod_unload \0version=5.0\0depends=mlx5_core,ib_core\0"
        b"softdep=gcm\0softdep=aes pre: crc32c post: nvidia-uvm\0firmware=mellanox/a.bin\0firmware=mellanox/b.bin\0"
    )
    found = describe("/m/mlx5-ib.ko.zst", data + b"signature" + SIGNED)
    assert found == module(
        "mlx5_ib",
        path="/m/mlx5-ib.ko.zst",
        version="5.0",
        depends=("mlx5_core", "ib_core"),
        softdeps=("crc32c", "nvidia-uvm"),
        firmware=("mellanox/a.bin", "mellanox/b.bin"),
    )
    assert not describe("/m/mlx5-ib.ko", data).signed
    assert describe("/m/x.ko", b"text").fault == "not an ELF file of 64 bits, little endian"
    assert describe("/m/x.ko.xz", "Input format not supported").fault == "Input format not supported"


def test_required_modules_and_what_they_need(tmp_path: Path) -> None:
    there = modules(
        module("mlx5_ib", depends=("mlx5_core", "ib_uverbs"), softdeps=("crypto-x", "nls", "built-in-too")),
        module("ib_uverbs", depends=("mlx5_ib",)),
        module("idle", depends=("nowhere",)),
    )
    tables = known(
        tmp_path,
        builtin="kernel/built-in-too.ko\nkernel/ib_umad.ko\n",
        aliases="alias crypto-x x_fast\nalias crypto-x x_slow\n",
        dep="kernel/x_fast.ko:\nkernel/x_slow.ko:\nkernel/virtio_net.ko:\n",
    )
    needs = recipe_facts(requires=Requires(root=("mlx5-ib", "ib_umad", "rdma_ucm")))
    root = "required: the root lacks the kernel module"
    tail = "to modules.root, and see that nothing under 'remove' takes it out"
    assert said(required.GATE, facts(tmp_path, recipe=needs, modules=there, known=tables)) == [
        (
            f"{root} rdma_ucm, which the recipe requires\n  add the package that brings it "
            "(on Ubuntu often linux-modules-extra-...), and the name to modules.root"
        ),
        f"{root} mlx5_core, which mlx5_ib depends on\n  add mlx5_core {tail}",
        f"{root} x_fast, which mlx5_ib has as its softdep\n  add x_fast {tail}",
    ]
    there |= modules(module("mlx5_core"), module("rdma_ucm"), module("x_slow"))
    assert said(required.GATE, facts(tmp_path, recipe=needs, modules=there, known=tables)) == []


def test_required_in_the_initrd(tmp_path: Path) -> None:
    early = modules(module("ena", depends=("net_core",), firmware=("net/a.bin", "net/other.bin")))
    needs = recipe_facts(initrd=("ena", "vmxnet3"), requires=Requires(firmware=("net/a*.bin", "gpu/*")))
    found = facts(tmp_path, recipe=needs, early=early, firmware=("net/a.bin", "net/other.bin", "gpu/deep/x.bin"))
    tail = "to modules.initrd, and see that nothing under 'remove' takes it out"
    assert said(required.GATE, found) == [
        f"required: the initrd lacks the kernel module vmxnet3, which the recipe requires\n  add vmxnet3 {tail}",
        f"required: the initrd lacks the kernel module net_core, which ena depends on\n  add net_core {tail}",
        (
            "required: the initrd lacks the firmware net/a.bin, "
            "which the recipe requires and one of its modules loads\n"
            "  see that the package that brings it is not under 'remove'"
        ),
        (
            "required: the root has no firmware /usr/lib/firmware/gpu/*, which the recipe requires\n"
            "  add the package that brings it, or correct requires.firmware"
        ),
    ]


def test_required_packages(tmp_path: Path) -> None:
    needs = recipe_facts(requires=Requires(packages=("systemd=252.1-1", "systemd=253", "rdma-core=44")))
    assert said(required.GATE, facts(tmp_path, recipe=needs)) == [
        (
            "required: the package systemd is installed as 252.1-1, and the recipe requires 253\n"
            "  add systemd=253 to 'packages', or correct requires.packages"
        ),
        (
            "required: the package rdma-core, "
            "which the recipe requires, is not installed\n  add rdma-core=44 to 'packages'"
        ),
    ]


def test_unsigned_modules_where_secure_boot_is_asked_for(tmp_path: Path) -> None:
    found = [module(f"m{number}", signed=False) for number in range(7)]
    early = modules(module("e", signed=False, path="initrd:/lib/netboot/modules/e.ko"), found[0])
    assert said(signatures.GATE, facts(tmp_path, modules=modules(*found), early=early)) == []
    own = f"/usr/lib/modules/{KERNEL}/kernel"
    asked = facts(tmp_path, modules=modules(*found), early=early, recipe=recipe_facts(secure_boot=True))
    assert said(signatures.GATE, asked) == [
        (
            "signatures: 8 kernel modules are not signed, and the recipe asks for Secure Boot: "
            f"{own}/m0.ko, {own}/m1.ko, {own}/m2.ko, {own}/m3.ko, {own}/m4.ko and 3 more\n"
            "  take signed modules of the distribution, sign them with a key that the machines' firmware knows, "
            "or take secure_boot out of the recipe"
        )
    ]
    assert said(signatures.GATE, facts(tmp_path, recipe=recipe_facts(secure_boot=True))) == []


@pytest.mark.parametrize(("own", "other", "number"), [("amd64", "arm64", 183), ("arm64", "amd64", 62)])
def test_files_of_another_architecture(tmp_path: Path, own: str, other: str, number: int) -> None:
    mine = 245 - number
    content = CONTENT.__class__(1, 1, {}, (), {}, (), {"/usr/bin/a": mine, "/usr/bin/b": number, "/usr/lib/bpf.o": 247})
    foreign = {"m": module("m", machine=number)}
    found = facts(tmp_path, content=content, modules=foreign, early={}, recipe=recipe_facts(architecture=own))
    assert said(architecture.GATE, found) == [
        (
            f"architecture: the image is for {own}, and 2 files are for {other}: /usr/bin/b, "
            f"/usr/lib/modules/{KERNEL}/kernel/m.ko\n  take them built for {own}, or leave them out"
        )
    ]


def test_a_program_whose_module_is_not_there(tmp_path: Path) -> None:
    """By the file's name in a folder of programs; what is built in is there, what a library is called means nothing."""
    programs = ("/usr/sbin/mount.nfs", "/usr/sbin/lvm", "/usr/bin/wg", "/usr/lib/x/rbd", "/usr/sbin/iscsid")
    found = facts(
        tmp_path,
        content=replace(CONTENT, machines=dict.fromkeys(programs, 62)),
        known=known(tmp_path, builtin="kernel/drivers/md/dm-mod.ko\n"),
        modules=modules(module("nfs"), module("wireguard", depends=("udp_tunnel",)), module("iscsi_tcp")),
    )
    assert said(tools.GATE, found) == [
        (
            "tools: the root lacks the kernel module udp_tunnel, which /usr/bin/wg asks for\n"
            "  add udp_tunnel to modules.root, or the program to 'remove'"
        ),
        (
            "tools: the root lacks the kernel module nfsv4, which /usr/sbin/mount.nfs asks for\n"
            "  add nfsv4 to modules.root, or the program to 'remove'"
        ),
    ]
    assert tools.GATE.scope(found) == "4 programs that ask for kernel modules"
