"""Whether machines of a class can boot an image: the one rule, and what of an image it is judged by."""

from pathlib import Path

import pytest

from images.store.store import Store
from netboot.cli.fit import candidate
from netboot.machines.classes import Active
from netboot.machines.fit import Candidate, Misfit, boots, misfits
from netboot.machines.inventory import load_inventory
from netboot.machines.values import Inventory
from tests.sites import add_image, make_site

SITE = """
channels: [{name: stable}, {name: other}]
profiles: [{name: compute, channel: stable}, {name: spare, channel: other}]
classes:
- name: hgx
  memory_gib: 2048
  gpus: {count: 8, model: H100}
  nics: [{model: ConnectX-7, count: 8, speed_gbps: 400}, {model: "14e4:1750", count: 2, speed_gbps: 100},
         {model: Nobody knows it, count: 1, speed_gbps: 1}]
  disks: [{count: 4}, {count: 2, size_gb: 960}]
- {name: dpu, architecture: arm64, memory_gib: 16}
- {name: small, memory_gib: 2}
- {name: unused, architecture: arm64, memory_gib: 1}
machines:
- {name: gpu-001, match: {serial: S1}, profile: compute, class: hgx}
- {name: gpu-002, match: {serial: S2}, profile: compute, class: hgx}
- {name: dpu-001, match: {serial: S3}, profile: compute, class: dpu}
- {name: small-001, match: {serial: S4}, profile: compute, class: small}
- {name: old-001, match: {serial: S5}, profile: compute}
- {name: arm-001, match: {serial: S6}, profile: compute, architecture: arm64}
- {name: unused-001, match: {serial: S7}, profile: spare, class: unused}
"""
ALL = frozenset({"mlx5_core", "bnxt_en", "nvme", "nvidia"})


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    (tmp_path / "site.yaml").write_text(SITE)
    return load_inventory(tmp_path)


def test_an_image_is_judged_by_each_class_of_its_channel_and_no_other(inventory: Inventory) -> None:
    image = Candidate("node", "amd64", lambda mib: "leaves nothing of 2048 MiB" if mib < 4096 else "", ALL)
    remedy = "give their profile a channel of their own architecture"
    assert misfits(inventory, "stable", image) == [
        Misfit("refuse", "stable", 1, None, "arm-001", "arm64, and node is for amd64", remedy),
        Misfit("refuse", "stable", 1, "dpu", "dpu-001", "arm64, and node is for amd64", remedy),
        Misfit(
            "refuse",
            "stable",
            1,
            "small",
            "small-001",
            "leaves nothing of 2048 MiB",
            "choose a smaller image, or correct `memory_gib` of the class",
        ),
    ]
    assert misfits(inventory, "none", image) == []


def test_drivers_that_a_class_wants_and_the_image_has_not(inventory: Inventory) -> None:
    def said(drivers: frozenset[str] | None) -> list[str]:
        found = misfits(inventory, "stable", Candidate("node", "amd64", None, drivers))
        return [str(one) for one in found if one.class_name == "hgx"]

    assert said(ALL) == []
    who = "channel stable, 2 machines of class hgx: "
    assert said(frozenset({"virtio_net"})) == [
        who + "node has no driver for 8 × ConnectX-7 (mlx5_core); "
        "add `mlx5_core` to `modules` of its recipe, as the feature `server` does",
        who + "node has no driver for 2 × 14e4:1750 (bnxt_en); "
        "add `bnxt_en` to `modules` of its recipe, as the feature `server` does",
        who + "node has no driver for any of 6 disks; add it, as the feature `server` does",
        who + "node has no driver for 8 GPUs; take an image with the feature `gpu`",
    ]
    assert said(frozenset({"mlx5_core", "ahci", "amdgpu", "bnxt_en"})) == []
    assert said(None) == [who + "which drivers node has cannot be told: it has no list of its files; build it again"]
    assert misfits(inventory, "other", Candidate("node", "arm64", None, None)) == []


def test_what_is_asked_of_an_image_in_vain_is_said(inventory: Inventory) -> None:
    compute, spare = inventory.profiles

    def said(parts: set[str] | None, *arguments: str, told: tuple[str, ...] = ()) -> list[str]:
        asking = compute.model_copy(update={"kernel_arguments": arguments})
        asked = inventory.model_copy(update={"profiles": (asking, spare)})
        image = Candidate("node", "amd64", None, ALL, frozenset(parts) if parts is not None else None)
        return [str(one) for one in misfits(asked, "stable", image, told) if one.outcome == "warn"]

    hgx, none, small = (
        f"channel stable, {who}: " for who in ("2 machines of class hgx", OLD, "1 machine of class small")
    )
    feature = "build it with that feature (docs/features.md)"
    journal = f"the site's bundle speaks to the feature `journal-upload`, which node has not; {feature}"
    assert said(set(), told=("journal-upload",)) == [none + journal, hgx + journal, small + journal]
    assert said({"journal-upload"}, told=("journal-upload",)) == []
    for argument, name in (("netboot.ssh=ops", "ssh"), ("netboot.netconsole=192.0.2.9", "netconsole")):
        key = argument.partition("=")[0]
        words = f"profile compute says {key}, to the feature `{name}`, which node has not; {feature}"
        assert said(set(), argument) == [f"{who}{words}, or take the argument out" for who in (none, hgx, small)]
        assert said({name}, argument) == said(None, argument) == []
    asks = "profile compute asks for tests under load whose tool node has not: "
    remedy = (
        "; add the tools to its recipe, or name the tests in `active: {skip: […]}` of the class: what is asked for and "
        "not measured keeps a Node from work"
    )
    every = "disk (fio), dcgm (dcgmi), gpu-copy (nvbandwidth), nccl (all_reduce_perf), nic (ib_write_bw)"
    assert said(set(), "netboot.active=all") == [
        f"{none}{asks}disk (fio), nic (ib_write_bw){remedy}",
        f"{hgx}{asks}{every}{remedy}",
    ]
    assert said({"fio"}, "netboot.active=memory,disk,nccl") == [f"{hgx}{asks}nccl (all_reduce_perf){remedy}"]
    skipping = inventory.classes[0].model_copy(update={"active": Active(skip=("nccl",))})
    inventory = inventory.model_copy(update={"classes": (skipping, *inventory.classes[1:])})
    assert said({"fio"}, "netboot.active=memory,disk,nccl") == []


def listed(*paths: str) -> bytes:
    entries = [f'{{"kind":"file","mode":"0644","path":"{path}","size":1}}\n' for path in paths]
    return "".join(entries).encode()


MODULES = "/usr/lib/modules/6.1.0-1/kernel/drivers"
FILES = (
    "/usr/lib/netboot/node",
    f"{MODULES}/net/ice/ice.ko.xz",
    f"{MODULES}/net/mlx5/core/mlx5-core.ko.zst",
    "/usr/lib/systemd/catalog/systemd.ko.catalog",
    "/usr/share/locale/messages.korean",
    "/usr/lib/systemd/system/netboot-ssh.service",
    "/usr/bin/fio",
    "/usr/share/fio/nvbandwidth",
)
OLD = "1 machine of no class (old-001)"


def test_what_an_image_is_judged_by_is_read_from_its_documents(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    kconfig = b"#\nCONFIG_IGB=m\nCONFIG_BLK_DEV_NVME=y\nCONFIG_I40E=y\n# CONFIG_BNXT is not set\n"
    add_image(config, documents={"files": listed(*sorted(FILES)), "config": kconfig})
    store = Store(config.store)
    found = candidate(store, store.images()[0].manifest)
    assert (found.name, found.architecture) == ("tiny", "amd64")
    assert found.drivers == frozenset({"ice", "mlx5_core", "nvme", "i40e"})
    assert found.parts == frozenset({"ssh", "fio"})
    assert found.too_little is not None
    assert found.too_little(2048) == ""
    words = "tiny leaves 110 of 744 MiB for work, and a quarter is 186: "
    assert found.too_little(768) == words + "image 17, system 267, overlay 128, store 90, kubelet 32, eviction 100"


def test_an_image_without_documents_has_no_drivers_that_are_known(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    add_image(config)
    store = Store(config.store)
    found = candidate(store, store.images()[0].manifest)
    assert found.drivers is None
    assert found.too_little is not None
    assert found.too_little(512).endswith(": image 17, system 263, overlay 108")


@pytest.mark.parametrize(
    ("drivers", "said"),
    [
        (
            {"virtio_net", "ena", "virtio_blk", "nvme", "ext4"},
            "virtual machines (virtio_net, ena) alone: no server's network card has a driver; disks: nvme, virtio_blk",
        ),
        (
            {"mlx5_core", "ice", "virtio_net", "nvme", "ahci"},
            "servers (ice, mlx5_core) and virtual machines (virtio_net); disks: nvme, ahci",
        ),
        ({"igb"}, "servers (igb); disks: none"),
        (set(), "nothing whose network card is known by name; disks: none"),
    ],
)
def test_on_which_hardware_an_image_boots_is_said(drivers: set[str], said: str) -> None:
    assert boots(frozenset(drivers)) == said
