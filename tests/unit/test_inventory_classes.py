"""Classes of machines in the inventory, and what a machine is told of its own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.node.health.hardware import read_hardware
from images.node.health.thresholds import THRESHOLDS
from images.values.strict import Document, FaultsError
from netboot.cli import hardware
from netboot.machines.classes import Class, Vetoes
from netboot.machines.declared import Declared
from netboot.machines.difference import differences, digest_of
from netboot.machines.inventory import load_inventory
from netboot.machines.judged import unknown_names
from netboot.machines.remedies import Remedies
from netboot.machines.values import Inventory

GOOD = """
channels: [{name: stable}]
profiles: [{name: default, channel: stable}]
classes:
- name: hgx-h100
  memory_gib: 2048
  gpus: {count: 8, model: H100}
  nics:
  - {name: compute, model: ConnectX-7, count: 8, speed_gbps: 400}
  - {model: BlueField-3, count: 2, speed_gbps: 2.5}
  disks: [{count: 4, size_gb: 3840}, {count: 2, model: SSDPF2KX}]
  firmware: {MT_0000000838: "28.39.2048", bmc: "24.1"}
- {name: dpu, architecture: arm64}
machines:
- {name: gpu-001, match: {serial: CZ1}, profile: default, class: hgx-h100}
- {name: dpu-001, match: {serial: CZ2}, profile: default, class: dpu}
- {name: old-001, match: {serial: CZ3}, profile: default}
"""
DOCUMENT = {
    "name": "hgx-h100",
    "architecture": "amd64",
    "memory_bytes": 2048 * 2**30,
    "gpus": {"count": 8, "model": "H100"},
    "nics": [
        {"name": "compute", "model": "ConnectX-7", "count": 8, "speed_mbps": 400_000},
        {"model": "BlueField-3", "count": 2, "speed_mbps": 2_500},
    ],
    "disks": [{"count": 4, "size_bytes": 3840 * 10**9}, {"count": 2, "model": "SSDPF2KX"}],
    "firmware": {"MT_0000000838": "28.39.2048", "bmc": "24.1"},
}


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    names = st.sampled_from(["nvme_used_percent", "gpu_celsius", "nvlink_crc"]) | st.text(max_size=9)
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)


def loaded(folder: Path, text: str = GOOD) -> Inventory:
    (folder / "site.yaml").write_text(text)
    return load_inventory(folder)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        loaded(folder, text)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_a_machine_has_the_hardware_of_its_class(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert [(machine.class_name, machine.architecture) for machine in found.machines] == [
        ("hgx-h100", "amd64"),
        ("dpu", "arm64"),
        (None, "amd64"),
    ]
    assert found.classes[0].document() == DOCUMENT
    assert found.classes[0].memory_mib == 2048 * 1024
    assert found.classes[1].document() == {"name": "dpu", "architecture": "arm64"}
    assert Inventory.model_validate_json(found.model_dump_json()) == found


def test_mistakes_are_said_with_their_place_and_remedy(tmp_path: Path) -> None:
    text = GOOD.replace("class: hgx-h100", "class: hgx-h10").replace("class: dpu", "class: dpu, architecture: amd64")
    text = text.replace("memory_gib: 2048", "memory: 2048").replace('bmc: "24.1"', "bmc: U46")
    text = text.replace("model: ConnectX-7, count: 8", "model: ConnectX-7, count: 0")
    assert faults(tmp_path, text) == [
        "site.yaml:6: classes[0].memory: unknown key; did you mean 'memory_gib'?",
        "site.yaml:9: classes[0].nics[0].count: must be 1 at least",
        ('site.yaml:12: classes[0].firmware.bmc: must be numbers with dots between them, like "28.39.2048", in quotes'),
        "site.yaml:15: machines[0].class: no class is named 'hgx-h10'; did you mean 'hgx-h100'?",
        (
            "site.yaml:16: machines[1].architecture: amd64, and its class 'dpu' is arm64: "
            "leave it out, or name another class"
        ),
    ]


def test_without_any_class_it_says_so_and_a_name_is_one_class_s(tmp_path: Path) -> None:
    plain = GOOD[: GOOD.index("classes:")] + GOOD[GOOD.index("machines:") :]
    assert faults(tmp_path, plain)[0] == (
        "site.yaml:5: machines[0].class: no class is named 'hgx-h100'; no class is declared at all"
    )
    twice = GOOD.replace("machines:", "- {name: dpu}\nmachines:")
    assert faults(tmp_path, twice) == [
        "site.yaml:14: classes[2].name: class 'dpu' is declared twice, first in site.yaml:13"
    ]
    far = GOOD.replace("class: dpu", "class: zzz")
    assert faults(tmp_path, far) == [
        "site.yaml:16: machines[1].class: no class is named 'zzz'; declared classes: dpu, hgx-h100"
    ]


def test_an_inventory_without_classes_is_written_as_before_there_were_any(tmp_path: Path) -> None:
    plain = GOOD[: GOOD.index("classes:")] + "machines:\n- {name: old-001, match: {serial: CZ3}, profile: default}\n"
    before = loaded(tmp_path, plain)
    assert "class" not in before.model_dump_json()
    assert list(before.model_dump(mode="json", by_alias=True)) == ["machines", "profiles", "channels"]
    assert digest_of(before) == "c4c9f2f0cf77cab949bba51442f83389f5ed122cf895036633b60868dc3aa072"


def test_an_edit_of_a_class_and_of_a_machines_class_is_shown(tmp_path: Path) -> None:
    before = loaded(tmp_path)
    after = loaded(
        tmp_path, GOOD.replace("profile: default, class: hgx-h100", "profile: default").replace("2048\n", "1024\n")
    )
    compared = differences(before, after)
    assert compared["machines"].changed == {"gpu-001": {"class": ("hgx-h100", None)}}
    assert compared["classes"].changed == {"hgx-h100": {"memory_gib": (2048.0, 1024.0)}}
    assert compared["profiles"].changed == compared["channels"].changed == {}


def test_the_line_for_people() -> None:
    line = (
        "hgx-h100 (amd64, 2048 GiB, 8 × GPU H100, 8 × compute NIC ConnectX-7 at 400 Gbit/s, "
        "2 × NIC BlueField-3 at 2.5 Gbit/s, 4 × disk of 3840 GB, 2 × disk SSDPF2KX, "
        "firmware MT_0000000838 from 28.39.2048 on, firmware bmc from 24.1 on)"
    )
    assert list(hardware.facts({"hardware": DOCUMENT})) == [("class", line)]
    assert list(hardware.facts({})) == []


@given(st.floats(0.001, 100_000), st.floats(0.001, 100_000))
def test_units_are_whole_numbers_of_the_smaller_unit(memory: float, speed: float) -> None:
    nic = {"model": "x", "count": 1, "speed_gbps": speed}
    document = Class.model_validate({"name": "a", "memory_gib": memory, "nics": [nic]}).document()
    assert abs(document["memory_bytes"] - memory * 2**30) < 1
    assert abs(document["nics"][0]["speed_mbps"] - speed * 1000) <= 0.5
    assert type(document["nics"][0]["speed_mbps"]) is type(document["memory_bytes"]) is int


def test_tests_under_load_are_told_to_the_machine_and_their_mistakes_said(tmp_path: Path) -> None:
    active = "  active: {skip: [nccl], floors: {memory_gbs: 300, disk_read_mbs: 6000}}\n"
    text = GOOD.replace("  memory_gib: 2048\n", f"  memory_gib: 2048\n{active}")
    told = loaded(tmp_path, text).classes[0].document()
    assert told["active"] == {"skip": ["nccl"], "floors": {"memory_gbs": 300, "disk_read_mbs": 6000}}
    assert faults(tmp_path, text.replace("[nccl]", "[NCCL]").replace(": 300", ": 0")) == [
        "site.yaml:7: classes[0].active.floors.memory_gbs: must be more than 0",
        "site.yaml:7: classes[0].active.skip[0]: no test is named 'NCCL'; did you mean 'nccl'?",
    ]


OWN = "  thresholds: {nvme_used_percent: 80, pcie_correctable: 20}\n  skip_checks: [bmc-log, cables]\n"
JUDGED = GOOD.replace("  memory_gib: 2048\n", f"  memory_gib: 2048\n{OWN}")


def test_thresholds_and_skipped_checks_are_told_to_the_machine(tmp_path: Path) -> None:
    declared = loaded(tmp_path, JUDGED)
    assert declared.classes[0].document() == {
        **DOCUMENT,
        "thresholds": {"nvme_used_percent": 80, "pcie_correctable": 20},
        "skip_checks": ["bmc-log", "cables"],
    }
    assert Inventory.model_validate_json(declared.model_dump_json()) == declared
    told, strange = read_hardware(declared.classes[0].document())
    assert (told.thresholds["nvme_used_percent"], told.skip_checks, strange) == (80, ("bmc-log", "cables"), [])
    assert "thresholds" not in (loaded(tmp_path).model_dump_json().partition("classes")[2])


def test_names_that_no_check_knows_and_values_of_another_unit_are_said_with_their_line(tmp_path: Path) -> None:
    text = JUDGED.replace("nvme_used_percent: 80", "nvme_percent_used: 80, gpu_celsius: 185, nvlink_crc: 0.5")
    text = text.replace(
        "[bmc-log, cables]",
        "[bmc_log, expectations]\n  active: {skip: [ncl], floors: {memory_gb: 3}}\n"
        "  gate: {required: [gpu-cuont, active-nccl, own-x]}",
    )
    text = text.replace("pcie_correctable: 20", "zzz: 1, memory_corrected: -1")
    text = text.replace("{serial: CZ3}", "{serial: CZ3}, health: {thresholds: {nvme_used_percent: 256}}")
    text = text.replace("{name: default,", "{name: default, health: {thresholds: {nvlink_replay: 1}},")
    known = ", ".join(THRESHOLDS)
    assert faults(tmp_path, text) == [
        (
            "site.yaml:3: profiles[0].health.thresholds.nvlink_replay: no threshold is named 'nvlink_replay'; "
            "did you mean 'nvlink_replays'?"
        ),
        "site.yaml:7: classes[0].thresholds.gpu_celsius: is in °C: must be from 0 to 150",
        "site.yaml:7: classes[0].thresholds.memory_corrected: must be 0 at least",
        "site.yaml:7: classes[0].thresholds.nvlink_crc: counts NVLink CRC errors: must be a whole number",
        (
            "site.yaml:7: classes[0].thresholds.nvme_percent_used: no threshold is named 'nvme_percent_used'; "
            "did you mean 'nvme_used_percent'?"
        ),
        f"site.yaml:7: classes[0].thresholds.zzz: no threshold is named 'zzz'; there are {known}",
        "site.yaml:8: classes[0].skip_checks[0]: no check is named 'bmc_log'; did you mean 'bmc-log'?",
        (
            "site.yaml:8: classes[0].skip_checks[1]: expectations says what a machine did not understand: "
            "it cannot be skipped"
        ),
        "site.yaml:9: classes[0].active.floors.memory_gb: no floor is named 'memory_gb'; did you mean 'memory_gbs'?",
        "site.yaml:9: classes[0].active.skip[0]: no test is named 'ncl'; did you mean 'nccl'?",
        "site.yaml:10: classes[0].gate.required[0]: no check is named 'gpu-cuont'; did you mean 'gpu-count'?",
        "site.yaml:21: machines[2].health.thresholds.nvme_used_percent: is in %: must be from 0 to 255",
    ]


def test_whose_pods_may_put_a_drain_off_is_read_and_written_where_it_is_said(tmp_path: Path) -> None:
    text = GOOD.replace("  memory_gib: 2048", "  vetoes: {namespaces: [training], max_wait: 4h}\n  memory_gib: 2048")
    declared = loaded(tmp_path, text)
    assert declared.classes[0].vetoes == Vetoes(namespaces=("training",), max_wait=14_400)
    assert Inventory.model_validate_json(declared.model_dump_json()) == declared
    assert "vetoes" not in loaded(tmp_path).model_dump_json()
    wrong = text.replace("[training], max_wait: 4h", "[Training, kube-system], max_wait: 25h")
    assert faults(tmp_path, wrong) == [
        "site.yaml:6: classes[0].vetoes.max_wait: must be 86400 at most",
        "site.yaml:6: classes[0].vetoes.namespaces[0]: must be the name of a namespace",
    ]
    for said, why in (("for ever", "must be a duration like 90s, 15m or 2h"), ("0s", "must be 1 at least")):
        [fault] = faults(tmp_path, text.replace("max_wait: 4h", f"max_wait: {said}"))
        assert fault.startswith(f"site.yaml:6: classes[0].vetoes.max_wait: {why}")
    [fault] = faults(tmp_path, text.replace(", max_wait: 4h", ""))
    assert fault == "site.yaml:6: classes[0].vetoes.max_wait: this key is required"


def test_a_class_says_what_is_done_about_its_machines(tmp_path: Path) -> None:
    said = "{act: true, wait: 45m, actions: [reboot, reboot, quarantine], per_rack: 2, fleet: 3}"
    declared = loaded(tmp_path, GOOD.replace("  memory_gib: 2048\n", f"  memory_gib: 2048\n  remedies: {said}\n"))
    known = declared.classes[0].remedies
    assert known == Remedies(act=True, wait=2700, actions=("reboot", "reboot", "quarantine"), per_rack=2, fleet="3")
    assert [Remedies(fleet=share).most(437) for share in ("2%", "3", "100%")] == [8, 3, 437]
    assert Remedies().most(7) == 1
    assert Inventory.model_validate_json(declared.model_dump_json()) == declared
    assert declared.classes[1].remedies == Remedies()
    assert '"remedies"' not in declared.classes[1].model_dump_json()
    wrong = "{act: yes please, wait: 9m, actions: [quarantine, reboot], per_rack: 0, fleet: 0%}"
    assert faults(tmp_path, GOOD.replace("  memory_gib: 2048\n", f"  memory_gib: 2048\n  remedies: {wrong}\n")) == [
        "site.yaml:7: classes[0].remedies.act: must be true or false",
        ("site.yaml:7: classes[0].remedies.actions: quarantine is the last: a machine in quarantine is left alone"),
        "site.yaml:7: classes[0].remedies.fleet: must be a number of machines, like 3, or a share of them, like 5%",
        "site.yaml:7: classes[0].remedies.per_rack: must be 1 at least",
        (
            "site.yaml:7: classes[0].remedies.wait: 10m at least: before that it cannot be told whether many fail "
            "together"
        ),
    ]


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9), nested, max_leaves=9)
)
def test_what_is_of_another_form_raises_nothing(said: object) -> None:
    document = Document("site.yaml", {}, {})
    names = ("thresholds", "skip_checks", "active", "health")
    values = dict.fromkeys(names, said) | {"name": "a"}
    for kind in ("class", "profile", "machine"):
        list(unknown_names([Declared(kind, "a", document, ("classes", 0), values)]))
        inner = {"active": {"skip": said, "floors": said}, "health": {"thresholds": said}}
        list(unknown_names([Declared(kind, "a", document, ("classes", 0), inner)]))
