"""CDI descriptions as containerd reads them: of the form that nvidia-ctk writes, where netboot-cdi.service puts them.

`DESCRIPTION` has the form that nvidia-ctk 1.18 writes of two GPUs (its cmd/nvidia-ctk/cdi/generate), with fewer mounts.
`cdi/h100.yaml` is what nvidia-ctk 1.17.8 wrote of a real H100 on 2026-11-23 (driver 580.159.04), its UUID a number.
"""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from images.recipe import features
from lab.toolchain import find_go
from lab.work import CACHE, ROOT
from tests.tools.images.containerd import of_toolkit

pytestmark = pytest.mark.tools

UNIT = features.SHIPPED / "nvidia-toolkit/usr/lib/systemd/system/netboot-cdi.service"
DESCRIPTION = """\
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
    - name: GPU-4d1e4d4e-0001-4000-8000-000000000001
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
    - name: "1"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia1
    - name: all
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
            - path: /dev/nvidia1
containerEdits:
    env:
        - NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu
        - NVIDIA_VISIBLE_DEVICES=void
    deviceNodes:
        - path: /dev/nvidia-uvm
        - path: /dev/nvidiactl
    hooks:
        - hookName: createContainer
          path: /usr/bin/nvidia-cdi-hook
          args:
            - nvidia-cdi-hook
            - create-symlinks
            - --link
            - libcuda.so.1::/usr/lib/x86_64-linux-gnu/libcuda.so
          env:
            - NVIDIA_CTK_DEBUG=false
        - hookName: createContainer
          path: /usr/bin/nvidia-cdi-hook
          args:
            - nvidia-cdi-hook
            - update-ldcache
            - --folder
            - /usr/lib/x86_64-linux-gnu
          env:
            - NVIDIA_CTK_DEBUG=false
    mounts:
        - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05
          containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05
          options:
            - ro
            - nosuid
            - nodev
            - rbind
            - rprivate
"""
DEVICES = ["0", "1", "GPU-4d1e4d4e-0001-4000-8000-000000000001", "all"]
LISTED = DESCRIPTION.partition("devices:")[2].partition("containerEdits:\n    env")[0]
UNKNOWN = (
    'failed to parse CDI Spec "@": failed to unmarshal CDI Spec: error unmarshaling JSON: while decoding JSON: '
    'json: unknown field "{}"'
)
Reader = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """What containerd makes of a folder, and of a container that asks for devices: lab/cdi."""
    program = tmp_path_factory.mktemp("go") / "cdi"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    argv = [str(find_go(CACHE)), "build", "-mod=readonly", "-trimpath", "-o", str(program)]
    subprocess.run(argv, cwd=ROOT / "lab/cdi", env=environment, check=True)

    def reading(folder: Path, *devices: str) -> dict[str, Any]:
        done = subprocess.run([program, folder, *devices], capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        found["refused"] = {Path(path).name: words for path, words in found["refused"].items()}
        return found

    return reading


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    """The file that the unit makes, in a folder of this test's."""
    (output,) = re.findall(r"^ExecStart=.* --output=(\S+)$", UNIT.read_text(), re.MULTILINE)
    plugins = tomllib.loads(of_toolkit("ubuntu"))["plugins"]["io.containerd.grpc.v1.cri"]
    assert (plugins["enable_cdi"], str(Path(output).parent) in plugins["cdi_spec_dirs"]) == (True, True)
    runtime = features.SHIPPED / "nvidia-toolkit-debian/etc/nvidia-container-runtime/config.toml"
    told = tomllib.loads(runtime.read_text())["nvidia-container-runtime"]["modes"]["cdi"]
    assert str(Path(output).parent) in told["spec-dirs"]
    return tmp_path / Path(output).name


def on_hosts_with(device: str, text: str) -> str:
    """The description where each node of a device is, on the host, another that is there."""
    return re.sub(r"(?m)^( +)- path: (/dev/\S+)$", rf"\1- path: \2\n\1  hostPath: {device}", text)


def test_a_container_gets_the_gpu_that_it_asks_for(read: Reader, placed: Path) -> None:
    placed.write_text(on_hosts_with("/dev/null", DESCRIPTION))
    found = read(placed.parent, "nvidia.com/gpu=1")
    assert (found["refused"], found["not_given"]) == ({}, "")
    assert found["devices"] == [f"nvidia.com/gpu={name}" for name in DEVICES]
    container = found["container"]
    assert [device["path"] for device in container["linux"]["devices"]] == [
        "/dev/nvidia-uvm",
        "/dev/nvidiactl",
        "/dev/nvidia1",
    ]
    assert container["process"]["env"] == [
        "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu",
        "NVIDIA_VISIBLE_DEVICES=void",
    ]
    assert [hook["args"][1] for hook in container["hooks"]["createContainer"]] == ["create-symlinks", "update-ldcache"]
    (mount,) = container["mounts"]
    assert mount["destination"] == "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"
    assert mount["options"] == ["ro", "nosuid", "nodev", "rbind", "rprivate"]


def test_a_gpu_that_is_gone_since_it_was_described_and_one_that_never_was_are_not_given(
    read: Reader, placed: Path
) -> None:
    placed.write_text(on_hosts_with("/dev/no-such-gpu", DESCRIPTION))
    found = read(placed.parent, "nvidia.com/gpu=0")
    assert (found["refused"], found["container"]) == ({}, None)
    assert found["not_given"] == (
        'failed to inject devices: failed to stat CDI host device "/dev/no-such-gpu": no such file or directory'
    )
    assert read(placed.parent, "nvidia.com/gpu=2")["not_given"] == "unresolvable CDI devices nvidia.com/gpu=2"


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("cdiVersion: 0.5.0", "cdiVersion: 0.3.0", "invalid CDI Spec: the spec version must be at least v0.5.0"),
        ("cdiVersion: 0.5.0", "cdiVersion: 9.9.9", 'invalid CDI Spec: invalid version "9.9.9"'),
        ("kind: nvidia.com/gpu", "kind: nvidia.com", "invalid CDI Spec: invalid vendor. empty name"),
        ('name: "1"', 'name: "0"', 'invalid CDI Spec: invalid spec, multiple device "0"'),
        (
            'name: "1"',
            'name: "a b"',
            'invalid CDI Spec: failed add device "a b": invalid character \' \' in device name "a b"',
        ),
        ("hookName: createContainer", "hookName: prestarted", 'invalid CDI Spec: invalid hook name "prestarted"'),
        ("hookName: createContainer", "hookName: createContainer\n          when: now", UNKNOWN.format("when")),
        ("- path: /dev/nvidia1", "- node: /dev/nvidia1", UNKNOWN.format("node")),
        ("          containerPath:", "          mountPath:", UNKNOWN.format("mountPath")),
        (
            "- NVIDIA_VISIBLE_DEVICES=void",
            "- NVIDIA_VISIBLE_DEVICES",
            'invalid CDI Spec: invalid container edits: invalid environment variable "NVIDIA_VISIBLE_DEVICES"',
        ),
        (
            "    mounts:\n",
            "    mounts:\n\t",
            (
                'failed to parse CDI Spec "@": failed to unmarshal CDI Spec: error converting YAML to JSON: '
                "yaml: line 56: found character that cannot start any token"
            ),
        ),
        (DESCRIPTION, "", 'failed to parse CDI Spec "@", no Spec data'),
        (LISTED, " []\n", "invalid CDI Spec: invalid spec, no devices"),
    ],
)
def test_what_is_no_description_is_refused_with_its_file(
    read: Reader, placed: Path, was: str, becomes: str, words: str
) -> None:
    text = on_hosts_with("/dev/null", DESCRIPTION.replace(was, becomes))
    placed.write_text(text)
    found = read(placed.parent, "nvidia.com/gpu=0")
    assert (list(found["refused"]), found["devices"], found["container"]) == (["nvidia.yaml"], [], None)
    assert found["refused"]["nvidia.yaml"] == ["failed to load CDI Spec " + words.replace("@", str(placed))]
    assert found["not_given"] == "unresolvable CDI devices nvidia.com/gpu=0"


def test_a_second_description_of_the_same_gpus_beside_it_takes_both_away(read: Reader, placed: Path) -> None:
    """Why nothing else may write descriptions of this kind into the folder: docs/gpu.md."""
    placed.write_text(on_hosts_with("/dev/null", DESCRIPTION))
    placed.with_name("copy.yaml").write_text(on_hosts_with("/dev/null", DESCRIPTION))
    found = read(placed.parent, "nvidia.com/gpu=0")
    assert (sorted(found["refused"]), found["devices"]) == (["copy.yaml", "nvidia.yaml"], [])
    assert found["not_given"] == "unresolvable CDI devices nvidia.com/gpu=0"
    placed.with_name("copy.yaml").rename(placed.with_name("copy.yml"))
    assert read(placed.parent)["devices"] == [f"nvidia.com/gpu={name}" for name in DEVICES]


def test_the_description_of_a_real_gpu_is_read(read: Reader, placed: Path) -> None:
    placed.write_text(on_hosts_with("/dev/null", (Path(__file__).parent / "cdi/h100.yaml").read_text()))
    found = read(placed.parent, "nvidia.com/gpu=all")
    assert (found["refused"], found["not_given"]) == ({}, "")
    names = ("0", "GPU-00000000-0000-0000-0000-000000000001", "all")
    assert found["devices"] == [f"nvidia.com/gpu={name}" for name in names]
    devices = [device["path"] for device in found["container"]["linux"]["devices"]]
    assert devices == ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl", "/dev/nvidia0"]
    hooks = [hook["args"][1] for hook in found["container"]["hooks"]["createContainer"]]
    assert hooks == ["create-symlinks", "create-symlinks", "enable-cuda-compat", "update-ldcache"]
