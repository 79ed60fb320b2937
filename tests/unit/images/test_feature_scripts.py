"""What features do at boot, with sysfs in a folder and tools on PATH that write down how they were called."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

FEATURES = Path(__file__).parents[3] / "images/recipes/features"
TOOLS = ("blkdiscard", "dcb", "ip", "lvchange", "lvcreate", "mdadm", "mkfs.ext4", "mount", "udevadm", "vgcreate", "vgs")


@dataclass(frozen=True)
class Host:
    """A machine in a folder: `sys`, `dev`, the kernel's command line, and the calls of tools in `calls`."""

    folder: Path

    def tool(self, name: str, script: str = "") -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\n[ {name} = udevadm ] || echo "{name} $*" >>{self.folder}/calls\n{script}\n')
        path.chmod(0o755)

    def sysfs(self, path: str, content: str = "") -> Path:
        file = self.folder / "sys" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def run(self, feature: str, script: str, cmdline: str = "", conf: str = "") -> tuple[int, str, list[str]]:
        """Exit status, what it said, and the tools' calls."""
        for name, text in (("cmdline", f"ro {cmdline} quiet\n"), ("conf", conf)):
            (self.folder / name).write_text(text)
        place = {"SYS": "sys", "DEV": "dev", "RUN": "run", "CONF": "conf", "CMDLINE": "cmdline", "MOUNTS": "mounts"}
        env = {f"NETBOOT_{name}": f"{self.folder}/{path}" for name, path in place.items()}
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        argv = ["sh", str(FEATURES / feature / "usr/lib/netboot" / script)]
        done = subprocess.run(argv, env=env | {"PATH": path}, capture_output=True, text=True, check=False)
        calls = (self.folder / "calls").read_text() if (self.folder / "calls").exists() else ""
        said = (done.stdout + done.stderr).replace(f"{self.folder}/", "")
        return done.returncode, said, calls.replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(tmp_path)
    for name in ("bin", "dev", "sys", "sys/block", "sys/class/net"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "mounts").write_text("")
    for tool in TOOLS:
        found.tool(tool)
    found.tool("wipefs", f'case "$*" in --noheadings*) cat "{tmp_path}/signatures" 2>/dev/null || : ;; esac')
    found.tool("blkid", "exit 2")
    found.tool("mdadm", 'case "$1" in --assemble) exit 1 ;; esac')
    found.tool("vgs", "exit 5")
    return found


def card(host: Host, name: str, driver: str = "mlx5_core", total: int = 8, *, virtual: bool = False) -> Path:
    """A network card in sysfs; returns its folder `device`."""
    device = host.folder / f"sys/class/net/{name}/device"
    device.mkdir(parents=True)
    (device / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    for file, content in (("sriov_totalvfs", f"{total}\n"), ("sriov_numvfs", "0\n")):
        (device / file).write_text(content)
    if virtual:
        (device / "physfn").mkdir()
    return device


def rdma(host: Host, cmdline: str = "", conf: str = "") -> tuple[int, str, list[str]]:
    return host.run("rdma", "rdma.sh", cmdline, conf)


def test_nothing_is_set_where_nothing_is_asked_for(host: Host) -> None:
    card(host, "ib0")
    shipped = (FEATURES / "rdma/etc/netboot/rdma.conf").read_text()
    assert rdma(host, conf=shipped) == (0, "", [])


def test_virtual_functions_of_each_card_of_a_driver_and_never_of_a_virtual_function(host: Host) -> None:
    first, second = card(host, "eth1"), card(host, "eth2")
    other, virtual = card(host, "eth0", "igb"), card(host, "eth1v0", virtual=True)
    status, said, _ = rdma(host, conf="sriov mlx5_core 4 # a comment\n")
    assert (status, said) == (
        0,
        "netboot-rdma: eth1 has 4 virtual functions\nnetboot-rdma: eth2 has 4 virtual functions\n",
    )
    assert [(path / "sriov_numvfs").read_text() for path in (first, second, other, virtual)] == ["4\n"] * 2 + [
        "0\n"
    ] * 2


def test_the_profiles_argument_wins_over_the_files_number_and_over_nothing_else(host: Host) -> None:
    device = card(host, "eth1")
    status, said, calls = rdma(host, "netboot.sriov=eth1:2", "sriov mlx5_core 4\nmtu eth1 9000\n")
    assert (status, calls) == (0, ["ip link set dev eth1 mtu 9000"])
    assert said == "netboot-rdma: eth1 has MTU 9000\nnetboot-rdma: eth1 has 2 virtual functions\n"
    assert (device / "sriov_numvfs").read_text() == "2\n"


def test_pause_frames_dscp_and_type_of_service(host: Host) -> None:
    device = card(host, "eth1")
    (device / "infiniband/mlx5_0").mkdir(parents=True)
    tos = host.sysfs("kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "0")
    status, said, calls = rdma(host, conf="pfc eth1 3,4\ndscp eth1 26:3,48:6\ntos mlx5_core 106\n")
    assert (status, tos.read_text()) == (0, "106\n")
    assert calls == [
        "dcb pfc set dev eth1 prio-pfc all:off 3:on 4:on",
        "dcb app replace dev eth1 dscp-prio 26:3 48:6",
    ]
    assert said == (
        "netboot-rdma: eth1 pauses priorities 3,4\n"
        "netboot-rdma: eth1 trusts DSCP 26:3,48:6\n"
        "netboot-rdma: mlx5_0 has type of service 106\n"
    )


def test_each_setting_that_cannot_be_made_is_named_and_the_others_are_made(host: Host) -> None:
    card(host, "eth1", total=2)
    host.tool("dcb", "exit 1")
    conf = (
        "sriov eth1 4\nsriov eth9 1\nsriov eth1 x\npfc eth1 3\ntos eth1 106\nspeed eth1 fast\nmtu eth1\nmtu eth1 1500\n"
    )
    status, said, calls = rdma(host, conf=conf)
    assert (status, calls[-1]) == (1, "ip link set dev eth1 mtu 1500")
    assert sorted(said.splitlines()) == [
        "netboot-rdma: eth1 has MTU 1500",
        "netboot-rdma: mtu eth1: a value is missing",
        "netboot-rdma: pfc eth1: 3 is refused",
        "netboot-rdma: speed eth1 fast: unknown; sriov, mtu, pfc, dscp and tos are known",
        "netboot-rdma: sriov eth1: 'x' is not a number",
        (
            "netboot-rdma: sriov eth1: 4 virtual functions are asked for, and its firmware allows 2 "
            "(mlxconfig NUM_OF_VFS, SRIOV_EN; BIOS)"
        ),
        "netboot-rdma: sriov eth9: there is no such driver or interface here",
        "netboot-rdma: tos eth1: it has no RDMA device; is its RDMA module loaded?",
    ]


def test_an_argument_without_a_number(host: Host) -> None:
    card(host, "eth1")
    assert rdma(host, "netboot.sriov=8") == (1, "netboot-rdma: sriov 8: a value is missing\n", [])


MEMORY = [
    "mount -t tmpfs -o mode=0711,size=50% tmpfs run/containerd",
    "mount -t tmpfs -o mode=0750,size=25% tmpfs run/kubelet",
]
WRITING = ("wipefs --all", "blkdiscard", "mdadm --create", "vgcreate", "lvcreate", "mkfs")


def disk(host: Host, name: str) -> None:
    host.sysfs(f"block/{name}/removable", "0\n")
    (host.folder / f"dev/{name}").write_text("")


def disks(host: Host, cmdline: str = "", conf: str = "") -> tuple[int, str, list[str]]:
    return host.run("local-nvme", "disks.sh", cmdline, conf)


def writes(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith(WRITING)]


@pytest.mark.parametrize("conf", ["", "ignore\n", (FEATURES / "local-nvme/etc/netboot/disks").read_text()])
def test_no_disk_is_even_looked_at_where_nobody_says_so(host: Host, conf: str) -> None:
    disk(host, "nvme0n1")
    assert disks(host, conf=conf) == (0, "", MEMORY)


@pytest.mark.parametrize("word", ["Raid0", "raid5", "wipe,raid0", "RAID0:nvme0n1", "ignored", "wipe=yes"])
def test_a_word_that_is_no_policy_touches_no_disk(host: Host, word: str) -> None:
    disk(host, "nvme0n1")
    status, said, calls = disks(host, f"netboot.disks={word}")
    assert (status, calls) == (1, MEMORY)
    assert said == (
        f"netboot-disks: '{word.partition(':')[0]}' is no policy; ignore, auto, wipe, raid0, lvm and ceph are. "
        "No disk was touched\n"
    )


def test_ceph_gets_its_disks_as_they_are(host: Host) -> None:
    disk(host, "nvme0n1")
    disk(host, "nvme1n1")
    assert disks(host, "netboot.disks=ceph") == (0, "netboot-disks: left for Ceph: nvme0n1 nvme1n1 \n", MEMORY)


@pytest.mark.parametrize("policy", ["raid0", "lvm"])
def test_a_disk_that_cannot_be_read_is_not_empty(host: Host, policy: str) -> None:
    disk(host, "nvme0n1")
    host.tool("wipefs", "exit 1")
    status, said, calls = disks(host, f"netboot.disks={policy}")
    assert (status, said) == (1, f"netboot-disks: {policy}: nvme0n1 cannot be read\n")
    assert (writes(calls), calls[-2:]) == ([], MEMORY)


def array_of(host: Host, *members: str) -> None:
    """`mdadm --examine` knows these disks as members of our array."""
    names = "|".join(f"*/{name}" for name in members) or "none"
    host.tool(
        "mdadm", f'case "$1 $3" in "--examine "{names}) echo MD_NAME=any:netboot-disk ;; "--assemble "*) exit 1 ;; esac'
    )


def test_auto_takes_the_empty_disks_and_leaves_the_others_alone(host: Host) -> None:
    for name in ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"):
        disk(host, name)
    host.tool("wipefs", 'case "$*" in *nvme1n1) echo gpt ;; *nvme3n1) exit 1 ;; esac')
    (host.folder / "mounts").write_text(f"{host.folder}/dev/nvme2n1 /data ext4 rw 0 0\n")
    status, said, calls = disks(host, conf="auto\n")
    assert (status, said) == (
        0,
        "netboot-disks: containerd's and the kubelet's state are on dev/md/netboot-disk (raid0)\n",
    )
    assert [call for call in calls if call.startswith("mdadm --create")] == [
        (
            "mdadm --create dev/md/netboot-disk --run --force --level=0 --name=netboot-disk --homehost=any "
            "--raid-devices=1 dev/nvme0n1"
        )
    ]
    assert [call for call in calls if "nvme1n1" in call and not call.startswith(("wipefs", "mdadm --examine"))] == []


def test_auto_finds_the_array_of_an_earlier_boot_and_adds_no_disk_to_it(host: Host) -> None:
    for name in ("nvme0n1", "nvme1n1", "nvme2n1"):
        disk(host, name)
    array_of(host, "nvme0n1", "nvme2n1")
    host.tool("wipefs", 'case "$*" in *nvme1n1) ;; *) echo linux_raid_member ;; esac')
    status, said, calls = disks(host, conf="auto\n")
    assert (status, said.splitlines()[-1]) == (
        1,
        (
            "netboot-disks: raid0: nvme0n1 is not empty (linux_raid_member); "
            "boot once with netboot.disks=wipe to lose what is on it"
        ),
    ), "an array that does not come together is never made anew"
    assert (writes(calls), calls[-2:]) == ([], MEMORY)
    assert "mdadm --assemble dev/md/netboot-disk --name=netboot-disk dev/nvme0n1 dev/nvme2n1" in calls


@pytest.mark.parametrize("names", [(), ("nvme0n1", "nvme1n1")])
def test_auto_without_an_empty_disk_is_memory_and_no_failure(host: Host, names: tuple[str, ...]) -> None:
    for name in names:
        disk(host, name)
    (host.folder / "signatures").write_text("gpt\n")
    status, said, calls = disks(host, conf="auto\n")
    words = "netboot-disks: auto: there is no empty NVMe disk; containerd's and the kubelet's state are in memory\n"
    assert (status, said, writes(calls), calls[-2:]) == (0, words, [], MEMORY)


def test_wiping_is_of_the_named_disks_and_their_partitions_only(host: Host) -> None:
    disk(host, "nvme0n1")
    disk(host, "nvme1n1")
    disk(host, "nvme1n10")
    host.sysfs("block/nvme1n1/nvme1n1p1/partition", "1\n")
    (host.folder / "dev/nvme1n1p1").write_text("")
    (host.folder / "mounts").write_text(f"{host.folder}/dev/nvme1n10 /data ext4 rw 0 0\n")
    status, said, calls = disks(host, "netboot.disks=wipe:nvme1n1")
    assert (status, said) == (0, "netboot-disks: nvme1n1 is wiped\n")
    assert calls == [
        *MEMORY,
        "wipefs --all --force --quiet dev/nvme1n1p1",
        "wipefs --all --force --quiet dev/nvme1n1",
        "blkdiscard --force dev/nvme1n1",
    ]


def test_raid0_is_made_of_empty_disks_and_carries_both_states(host: Host) -> None:
    disk(host, "nvme0n1")
    disk(host, "nvme1n1")
    status, said, calls = disks(host, "netboot.disks=raid0")
    assert (status, said) == (
        0,
        "netboot-disks: containerd's and the kubelet's state are on dev/md/netboot-disk (raid0)\n",
    )
    assert writes(calls) == [
        (
            "mdadm --create dev/md/netboot-disk --run --force --level=0 --name=netboot-disk --homehost=any "
            "--raid-devices=2 dev/nvme0n1 dev/nvme1n1"
        ),
        "mkfs.ext4 -q -F -m 0 -E nodiscard -L netboot-disk dev/md/netboot-disk",
    ]
    assert calls[-1] == "mount -t ext4 -o noatime dev/md/netboot-disk run/disk"
    assert (host.folder / "run/containerd").readlink() == Path("disk/containerd")


def test_raid0_of_an_earlier_boot_is_used_again_and_the_kubelet_begins_anew(host: Host) -> None:
    disk(host, "nvme0n1")
    host.tool("mdadm")
    host.tool("blkid", "echo netboot-disk")
    for old in ("kubelet/pki/key", "containerd/image"):
        file = host.folder / "run/disk" / old
        file.parent.mkdir(parents=True)
        file.write_text("of the last boot")
    status, _, calls = disks(host, conf="raid0")
    assert (status, writes(calls)) == (0, [])
    assert (host.folder / "run/disk/containerd/image").exists()
    assert list((host.folder / "run/disk/kubelet").iterdir()) == []


def test_lvm_is_one_volume_striped_over_all_disks(host: Host) -> None:
    disk(host, "nvme0n1")
    disk(host, "nvme1n1")
    status, said, calls = disks(host, "netboot.disks=lvm:nvme1n1,nvme0n1")
    assert (status, said) == (
        0,
        "netboot-disks: containerd's and the kubelet's state are on dev/netboot-disk/state (lvm)\n",
    )
    assert writes(calls) == [
        "vgcreate --yes netboot-disk dev/nvme1n1 dev/nvme0n1",
        "lvcreate --yes --activate n --extents 100%FREE --stripes 2 --name state netboot-disk",
        "mkfs.ext4 -q -F -m 0 -E nodiscard -L netboot-disk dev/netboot-disk/state",
    ]


@pytest.mark.parametrize("policy", ["raid0", "lvm"])
def test_what_others_left_on_a_disk_is_not_overwritten(host: Host, policy: str) -> None:
    disk(host, "nvme0n1")
    (host.folder / "signatures").write_text("gpt\next4\n")
    status, said, calls = disks(host, f"netboot.disks={policy}")
    assert (status, writes(calls), calls[-2:]) == (1, [], MEMORY)
    assert said == (
        f"netboot-disks: {policy}: nvme0n1 is not empty (gpt ext4); "
        "boot once with netboot.disks=wipe to lose what is on it\n"
    )


@pytest.mark.parametrize("policy", ["raid0", "lvm", "wipe"])
@pytest.mark.parametrize("used", ["mounted", "partition", "held"])
def test_a_disk_in_use_is_left_alone(host: Host, policy: str, used: str) -> None:
    disk(host, "nvme0n1")
    if used == "held":
        host.sysfs("block/nvme0n1/nvme0n1p1/holders/dm-0")
    else:
        host.sysfs("block/nvme0n1/nvme0n1p2/partition", "2\n")
        name = "nvme0n1" if used == "mounted" else "nvme0n1p2"
        (host.folder / "mounts").write_text(f"{host.folder}/dev/{name} /data ext4 rw 0 0\n")
    status, said, calls = disks(host, f"netboot.disks={policy}:nvme0n1")
    assert (status, writes(calls)) == (1, [])
    assert said == f"netboot-disks: {policy}: nvme0n1 is in use\n"
    assert [call for call in calls if call in MEMORY] == MEMORY


@pytest.mark.parametrize("policy", ["raid0", "lvm", "wipe"])
def test_disks_that_are_not_there(host: Host, policy: str) -> None:
    assert disks(host, f"netboot.disks={policy}") == (
        1,
        f"netboot-disks: {policy}: there is no NVMe disk here\n",
        MEMORY,
    )
    (host.folder / "calls").unlink()
    disk(host, "nvme0n1")
    status, said, calls = disks(host, f"netboot.disks={policy}:nvme0n1,nvme7n1")
    assert (status, said, calls) == (1, f"netboot-disks: {policy}: there is no disk nvme7n1 here\n", MEMORY)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("mdadm", "raid0: mdadm could not make the array"),
        ("mkfs.ext4", "raid0: no file system could be made on dev/md/netboot-disk"),
    ],
)
def test_where_a_tool_fails_the_machine_boots_with_memory_and_says_so(host: Host, tool: str, said: str) -> None:
    disk(host, "nvme0n1")
    host.tool(tool, "exit 1")
    status, words, calls = disks(host, "netboot.disks=raid0")
    assert (status, words, calls[-2:]) == (1, f"netboot-disks: {said}\n", MEMORY)
