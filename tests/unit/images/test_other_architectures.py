"""Recipes and kernels of arm64, as data; tests/tools builds them."""

import gzip
from pathlib import Path

import pytest

from images.build.step import Product
from images.build.steps import kernel
from images.errors import RecipeError
from images.recipe import inherit
from images.recipe.recipe import Recipe
from images.values.strict import FaultsError

KEYS = inherit.SHIPPED / "keys"
IMAGE = b"MZ\x00\x91" + bytes(52) + b"ARM\x64" + bytes(100)
"""The beginning of a kernel for arm64."""


def loaded(name: str) -> Recipe:
    return inherit.load(inherit.find(name))


def test_an_arm64_server_is_a_node_with_the_kernel_and_the_cards_of_arm64() -> None:
    recipe = loaded("debian-12-arm64")
    assert (recipe.architecture, recipe.kernel.package, recipe.budget_mib) == ("arm64", "linux-image-arm64", 160)
    assert recipe.kernel.arguments == ("panic=10",)
    assert recipe.features == ("pod-network", "storage-clients", "time", "server-arm64")
    assert {"virtio_net", "ena", "mlx5_core", "hns3"} <= set(recipe.modules.initrd)
    tools = {"nvme-cli", "smartmontools", "ipmitool", "numactl"}
    assert set(recipe.packages) == set(loaded("debian-12-node").packages) | tools
    x86 = {"iTCO_wdt", "hpwdt", "coretemp", "k10temp", "msr", "amd64_edac", "i2c_piix4"}
    assert not x86 & set(recipe.modules.root or ())


def test_a_dpu_takes_its_packages_from_ubuntus_ports_by_the_archives_key() -> None:
    recipe = loaded("ubuntu-24.04-dpu")
    assert (recipe.architecture, recipe.suite, recipe.budget_mib) == ("arm64", "noble", 150)
    assert [(source.name, source.url, source.signed_by) for source in recipe.sources] == [
        ("ubuntu", "http://ports.ubuntu.com/ubuntu-ports", KEYS / "ubuntu-archive-2018.asc"),
        ("kubernetes", "https://pkgs.k8s.io/core:/stable:/v1.34/deb", KEYS / "kubernetes-2022.asc"),
    ]


def test_a_dpu_has_its_own_devices_and_its_consoles() -> None:
    recipe = loaded("ubuntu-24.04-dpu")
    consoles = ("console=tty0", "console=ttyAMA1", "console=hvc0", "console=ttyAMA0")
    assert recipe.kernel.arguments == ("panic=10", *consoles)
    assert {"mlxbf_gige", "mlxbf_tmfifo", "pinctrl_mlxbf3", "gpio_mlxbf3", "mlx5_core"} <= set(recipe.modules.initrd)
    devices = {
        "mlxbf_bootctl",
        "i2c_mlxbf",
        "sdhci_of_dwcmshc",
        "bluefield_edac",
        "mlx5_ib",
        "mlx5_vdpa",
        "openvswitch",
    }
    assert {*devices, "openvswitch", "br_netfilter", "vxlan"} <= set(recipe.modules.root or ())
    assert set(recipe.requires.root) <= set(recipe.modules.root or ())
    assert {"rdma-core", "ibverbs-providers", "containerd"} <= set(recipe.packages)


def test_no_other_recipe_is_a_dpu(tmp_path: Path) -> None:
    for base, said in (
        ("ubuntu-24.04-node", ["feature 'dpu' has nothing for architecture 'amd64', only for arm64"]),
        ("debian-12-arm64", ["feature 'dpu' has nothing for distribution 'debian', only for ubuntu"]),
    ):
        mine = tmp_path / f"{base}.yaml"
        mine.write_text(f"base: {base}\nfeatures: [dpu]\n")
        with pytest.raises(FaultsError) as caught:
            inherit.load(mine)
        assert [fault.message for fault in caught.value.faults] == said


@pytest.mark.parametrize("architecture", ["riscv64", "aarch64", "x86_64"])
def test_an_architecture_that_no_image_is_made_for(architecture: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"base: debian-12-minimal\narchitecture: {architecture}\n")
    with pytest.raises(FaultsError) as caught:
        inherit.load(mine)
    assert str(caught.value) == f"{mine}:2: architecture: must be 'amd64' or 'arm64'"


def unpacked(tmp_path: Path, data: bytes) -> bytes:
    (tmp_path / "in/root/boot").mkdir(parents=True)
    (tmp_path / "in/root/boot/vmlinuz-6.8").write_bytes(data)
    (tmp_path / "out").mkdir()
    kernel.kernel(kernel.Inputs(Product("k", tmp_path / "in"), None), tmp_path / "out", lambda line: None)
    return (tmp_path / "out/vmlinuz").read_bytes()


@pytest.mark.parametrize("packed", [IMAGE, gzip.compress(IMAGE)], ids=["as it is", "gzip"])
def test_firmware_gets_a_kernel_that_it_can_start_however_the_distribution_packed_it(
    packed: bytes, tmp_path: Path
) -> None:
    assert unpacked(tmp_path, packed) == IMAGE


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (gzip.compress(IMAGE)[:-9], "Compressed file ended before the end-of-stream marker was reached"),
        (gzip.compress(IMAGE)[:-8] + bytes(8), "CRC check failed 0x0 != "),
    ],
    ids=["cut short", "another checksum"],
)
def test_a_kernel_that_is_damaged(damaged: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        unpacked(tmp_path, damaged)
    assert str(caught.value).startswith(f"the kernel /boot/vmlinuz-6.8 is damaged: {why}")


def test_the_documented_heir_for_a_mirror_with_the_bluefield_flavour(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/recipes.md").read_text()
    (tmp_path / "bluefield.yaml").write_text(page.partition("```yaml\n# bluefield.yaml\n")[2].partition("```")[0])
    for name in ("ubuntu.asc", "doca.asc"):
        (tmp_path / name).write_bytes((KEYS / "ubuntu-archive-2018.asc").read_bytes())
    recipe = inherit.load(tmp_path / "bluefield.yaml")
    assert (recipe.architecture, recipe.kernel.package) == ("arm64", "linux-image-bluefield-64k")
    assert [source.name for source in recipe.sources] == ["ubuntu", "kubernetes", "doca"]
    assert "linux-modules-extra-{kernel}" not in recipe.packages
