"""Labels that say what the image brings."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from images.node.agent.brought import brought

SHIPPED = Path(__file__).parents[3] / "images/recipes/features/gpu/usr/lib/netboot/labels/nvidia.json"


def device(root: Path, slot: str, vendor: str, kind: str) -> None:
    folder = root / "sys/bus/pci/devices" / slot
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")


def put(root: Path, name: str, said: Any) -> None:
    folder = root / "usr/lib/netboot/labels"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(said if isinstance(said, str) else json.dumps(said))


def test_the_driver_of_the_image_is_told_where_there_is_a_gpu_for_it(tmp_path: Path) -> None:
    """The file as the feature `gpu` ships it."""
    (tmp_path / "usr/lib/netboot/labels").mkdir(parents=True)
    shutil.copy(SHIPPED, tmp_path / "usr/lib/netboot/labels")
    assert brought(tmp_path) == {}
    device(tmp_path, "0000:00:02.0", "0x1234", "0x030000")
    device(tmp_path, "0000:00:03.0", "0x10de", "0x068000")
    assert brought(tmp_path) == {}, "another maker's display, and an NVSwitch"
    device(tmp_path, "0000:1a:00.0", "0x10de", "0x030200")
    assert brought(tmp_path) == {
        "nvidia.com/gpu.deploy.driver": "pre-installed",
        "nvsentinel.dgxc.nvidia.com/driver.installed": "true",
    }


def test_labels_of_every_machine_and_the_last_of_two(tmp_path: Path) -> None:
    put(tmp_path, "a.json", {"labels": {"a": "1", "b": "1"}})
    put(tmp_path, "b.json", {"labels": {"b": "2"}})
    put(tmp_path, "c.txt", {"labels": {"c": "3"}})
    assert brought(tmp_path) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "{",
        "[" * 100_000,
        "[]",
        {},
        {"labels": []},
        {"labels": {"a": 1}},
        {"labels": {"a": "x y"}},
        {"labels": {"a b": "x"}},
        {"labels": {"netboot.dev/gate": "x"}},
        {"labels": {"node-role.kubernetes.io/worker": "x"}},
        {"labels": {"topology.kubernetes.io/zone": "x"}},
        {"labels": {"a.k8s.io/x": "x"}},
        {"labels": {"a": "1"}, "device": {}},
        {"labels": {"a": "1"}, "device": "gpu"},
        {"labels": {"a": "1"}, "device": {"vendor": "0x10de"}},
    ],
)
def test_what_is_no_label_of_an_image_keeps_no_node_from_registering(tmp_path: Path, said: Any) -> None:
    device(tmp_path, "0000:1a:00.0", "0x10de", "0x030200")
    put(tmp_path, "0.json", said)
    put(tmp_path, "1.json", {"labels": {"good": "1"}})
    assert brought(tmp_path) == {"good": "1"}
