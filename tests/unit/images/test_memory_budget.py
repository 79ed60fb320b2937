"""How a machine's memory is divided: by one rule of the shell, at boot and in the build's gate."""

import json
import os
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.build.gates.budget import MIB, RULE, Image, divided, memory_of_classes
from images.build.node_files import MEMORY

PARTS = ("image", "system", "overlay", "store", "kubelet", "eviction", "left")
NODE = Image("mine", 150 * MIB, 20 * MIB, join=True)
SCRIPT = MEMORY / "usr/lib/netboot/memory.sh"


def split(memory: int, state: Literal["memory", "disk", "none"], *, root: int = 150, containers: int = 20) -> list[int]:
    argv = ["sh", "-c", '. "$0" && memory_budget "$@"', str(RULE), str(memory), str(root), str(containers), state]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found = {name.lower(): int(value) for name, _, value in (line.partition("=") for line in said.splitlines())}
    return [*(found[name] for name in PARTS), found["reserved"]]


@pytest.mark.parametrize(
    ("gib", "state", "parts"),
    [  # image, system, overlay, store, kubelet, eviction, left; reserved
        (2, "memory", [166, 288, 184, 388, 92, 100, 830, 1118]),
        (16, "memory", [166, 512, 1919, 3859, 959, 327, 8642, 7415]),
        (2048, "memory", [166, 4352, 16384, 131092, 32768, 4096, 1908294, 184762]),
        (2048, "disk", [166, 4352, 16384, 0, 0, 4096, 2072154, 20902]),
        (2, "none", [166, 288, 787, 0, 0, 0, 807, 1241]),
    ],
)
def test_machines_of_three_sizes(gib: int, state: Literal["memory", "disk", "none"], parts: list[int]) -> None:
    assert split(gib * 1024, state) == parts


@settings(deadline=None, max_examples=150)
@given(st.integers(512, 2**24), st.integers(1, 400), st.integers(0, 4096), st.sampled_from(["memory", "disk", "none"]))
def test_no_memory_is_promised_twice(memory: int, root: int, containers: int, state: str) -> None:
    *parts, reserved = split(memory, state, root=root, containers=containers)  # type: ignore[arg-type]
    eviction, left = parts[5:]
    assert sum(parts) == memory
    assert min(parts[:6]) >= 0
    allocatable = memory - reserved - eviction
    assert 0 <= reserved <= memory
    assert allocatable == max(left, memory // 8), "the kubelet starts on the smallest machine"
    if state == "memory":
        assert parts[3] >= containers + 64, "what the image brings fits into containerd's state"


def test_a_larger_machine_has_more_for_pods() -> None:
    left = [split(memory, "memory")[6] for memory in range(1024, 65536, 1500)]
    assert left == sorted(left)


def test_the_gate_names_each_class_that_is_too_small() -> None:
    assert divided(NODE, 2048)["left"] == 830
    classes = {"tiny": 1024, "small": 2048, "hgx": 2 * MIB}
    (finding,) = memory_of_classes(NODE, classes)
    assert (finding.gate, finding.cause, finding.remedy) == (
        "memory",
        (
            "mine leaves 167 of 993 MiB for work, and a quarter is 248: "
            "image 166, system 271, overlay 128, store 129, kubelet 32, eviction 100 (class tiny)"
        ),
        "say which classes are to boot it (`--class NAME`), declare more memory, or leave something out",
    )
    large = Image("mine", 150 * MIB, 60 * 1024 * MIB, join=True)
    assert [one.cause.rpartition("(")[2] for one in memory_of_classes(large, classes)] == [
        "class small)",
        "class tiny)",
    ]


def machine(folder: Path, kind: str, cmdline: str = "quiet") -> subprocess.CompletedProcess[str]:
    """The root's unit on a machine of 16 GiB, in a folder, where `stat` and `mount` only write down what was asked."""
    for name in ("bin", "run", "etc/kubernetes/kubelet.d"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for tool, script in (("stat", f"echo {kind}"), ("mount", f'echo "mount $*" >>{folder}/calls')):
        (folder / "bin" / tool).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / tool).chmod(0o755)
    (folder / "run/memory.sh").write_text(RULE.read_text())
    (folder / "run/memory").write_text("16384 150 20\n")
    (folder / "cmdline").write_text(f"{cmdline}\n")
    env = {"NETBOOT_RUN": f"{folder}/run", "NETBOOT_ROOT": str(folder), "NETBOOT_CMDLINE": f"{folder}/cmdline"}
    path = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    return subprocess.run(["sh", str(SCRIPT)], env=env | path, capture_output=True, text=True, check=False)


def drop_in(folder: Path) -> dict[str, object]:
    found = json.loads((folder / "etc/kubernetes/kubelet.d/10-netboot-memory.conf").read_text())
    assert (found.pop("apiVersion"), found.pop("kind")) == ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
    return dict(found)


EVICTION = {
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "10%",
    "imagefs.inodesFree": "5%",
}


def test_a_machine_without_a_disk_sizes_its_state_and_reserves_it(tmp_path: Path) -> None:
    done = machine(tmp_path, "tmpfs")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "netboot-memory: 16384 MiB: root 166, system 512, overlay 1919 (logs of 2 MiB a file), containerd 3859, "
        "kubelet 959, eviction 327, Pods 8642; state is on memory\n"
    )
    assert (tmp_path / "calls").read_text().replace(str(tmp_path), "") == (
        "mount -o remount,size=3859m /var/lib/containerd\nmount -o remount,size=959m /var/lib/kubelet\n"
    )
    assert drop_in(tmp_path) == {
        "systemReserved": {"memory": "7415Mi"},
        "evictionHard": {"memory.available": "327Mi", **EVICTION},
        "containerLogMaxSize": "2Mi",
    }


def test_what_is_on_a_disk_is_not_reserved(tmp_path: Path) -> None:
    done = machine(tmp_path, "ext2/ext3")
    assert done.stdout.endswith("containerd 0, kubelet 0, eviction 327, Pods 13460; state is on disk\n")
    assert drop_in(tmp_path)["systemReserved"] == {"memory": "2597Mi"}
    assert not (tmp_path / "calls").exists()


def test_a_profile_says_how_much_containerd_has(tmp_path: Path) -> None:
    done = machine(tmp_path, "tmpfs", "netboot.store_mib=9000")
    assert "containerd 9000, kubelet 959, eviction 327, Pods 3501; state" in done.stdout
    assert done.stdout.splitlines()[1:] == [
        (
            "netboot-memory: less than a quarter is left for Pods: "
            "this image wants a larger machine, or a disk (netboot.disks)"
        )
    ]
    assert drop_in(tmp_path)["systemReserved"] == {"memory": "12556Mi"}


@pytest.mark.parametrize("asked", ["9G", "0", "08", "-1", "12345678"])
def test_what_is_no_size_is_left_out(tmp_path: Path, asked: str) -> None:
    """A tmpfs of size 0 is one without a limit."""
    done = machine(tmp_path, "tmpfs", f"netboot.store_mib={asked}")
    assert done.stdout.splitlines()[0] == f"netboot-memory: netboot.store_mib={asked} is no number of MiB; left out"
    assert "containerd 3859," in done.stdout


def test_where_a_size_cannot_be_set_the_unit_fails_and_the_kubelet_reserves_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    machine(tmp_path, "tmpfs")
    (tmp_path / "bin/mount").write_text("#!/bin/sh\nexit 32\n")
    env = {"NETBOOT_RUN": f"{tmp_path}/run", "NETBOOT_ROOT": str(tmp_path), "NETBOOT_CMDLINE": f"{tmp_path}/cmdline"}
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["sh", str(SCRIPT)], env=env | path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        1,
        "netboot-memory: containerd's and the kubelet's state keep the sizes that they were mounted with",
    )
    assert drop_in(tmp_path)["systemReserved"] == {"memory": "7415Mi"}
