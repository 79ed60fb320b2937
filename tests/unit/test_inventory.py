"""The inventory folder: everything or every fault."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given

from images.values.strict import FaultsError
from netboot.machines.health import Health, expected_of
from netboot.machines.inventory import load_inventory
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile, Rack

GOOD = """
channels:
- name: stable
profiles:
- {name: default, channel: stable, kernel_arguments: [console=ttyS0]}
machines:
- name: gpu-001
  match: {macs: [52:54:00:12:34:56]}
  profile: default
"""


def faults(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(FaultsError) as caught:
        load_inventory(folder)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_all_files_together_are_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("machines:\n- {name: gpu-002, match: {serial: CZ1}, profile: default}\n")
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "none.yaml").write_text("machines: []")
    (tmp_path / ".hidden.yaml").write_text("not: ours")
    (tmp_path / "notes.txt").write_text("{{{")
    assert load_inventory(tmp_path) == Inventory(
        machines=(
            Machine(name="gpu-001", match=Match(macs=("52:54:00:12:34:56",)), profile="default"),
            Machine(name="gpu-002", match=Match(serial="CZ1"), profile="default"),
        ),
        profiles=(Profile(name="default", channel="stable", kernel_arguments=("console=ttyS0",)),),
        channels=(Channel(name="stable"),),
    )


def test_a_machine_names_a_rack_that_is_declared(tmp_path: Path) -> None:
    machine = "machines:\n- {name: gpu-002, match: {serial: CZ1}, profile: default, rack: r12}\n"
    plain = "must be http://: machines fetch in plain HTTP and believe signatures, not connections"
    racks = "racks: [{name: r1, origins: ['https://r1']}]\nclasses: [{name: hgx, origins: ['https://c']}]\n"
    assert faults(tmp_path, a=GOOD, b=machine, c=racks) == [
        "b.yaml:2: machines[0].rack: no rack is named 'r12'; did you mean 'r1'?",
        f"c.yaml:1: racks[0].origins[0]: {plain}",
        f"c.yaml:2: classes[0].origins[0]: {plain}",
    ]
    (tmp_path / "c.yaml").write_text("racks: [{name: r12, origins: ['http://192.0.2.7:8080/']}]\n")
    assert load_inventory(tmp_path).racks == (Rack(name="r12", origins=("http://192.0.2.7:8080",)),)


def test_a_folder_without_files_is_no_empty_inventory(tmp_path: Path) -> None:
    (tmp_path / ".hidden.yaml").write_text("machines: []")
    assert faults(tmp_path) == [
        f"{tmp_path}: has no *.yaml file: is a volume not mounted? A site without machines declares `machines: []`"
    ]
    (tmp_path / "site.yaml").write_text("machines: []")
    assert load_inventory(tmp_path) == Inventory()


@pytest.mark.parametrize("text", ["", "\n", "# machines:\n# - name: gpu-001\n", "---\n", "{}\n"])
def test_a_file_that_holds_nothing_is_a_fault_and_the_only_one(tmp_path: Path, text: str) -> None:
    machines = "machines:\n- {name: gpu-001, match: {serial: CZ1}, profile: default}\n"
    lines = faults(tmp_path, machines=machines, profiles=text)
    assert len(lines) == 1
    assert lines[0].startswith("profiles.yaml: holds nothing")


def test_an_empty_file_says_what_to_do(tmp_path: Path) -> None:
    assert faults(tmp_path, a="") == ["a.yaml: holds nothing: remove the file, or declare `machines: []`"]


def test_five_mistakes_are_five_faults(tmp_path: Path) -> None:
    text = """
channels:
- name: stable
profiles:
- {name: default, channel: stabel}
machines:
- name: gpu-001
  match: {macs: [52:54:00:12:34:56], serial: Default string}
  profile: default
- name: gpu-002
  match: {macs: [52-54-00-12-34-56]}
  profile: defualt
  enable: false
"""
    assert faults(tmp_path, site=text) == [
        "site.yaml:5: profiles[0].channel: no channel is named 'stabel'; did you mean 'stable'?",
        "site.yaml:8: machines[0].match.serial: a placeholder, which many machines share",
        (
            "site.yaml:11: machines[1].match.macs[0]: "
            "MAC 52:54:00:12:34:56 is of two machines, 'gpu-002' and 'gpu-001' in site.yaml:8"
        ),
        "site.yaml:12: machines[1].profile: no profile is named 'defualt'; did you mean 'default'?",
        "site.yaml:13: machines[1].enable: unknown key; did you mean 'enabled'?",
    ]


def test_faults_of_several_files_come_together(tmp_path: Path) -> None:
    again = GOOD.replace("52:54:00:12:34:56", "52:54:00:12:34:57")
    assert faults(tmp_path, a=GOOD, b=again, c="machines: [") == [
        "b.yaml:3: channels[0].name: channel 'stable' is declared twice, first in a.yaml:3",
        "b.yaml:5: profiles[0].name: profile 'default' is declared twice, first in a.yaml:5",
        "b.yaml:7: machines[0].name: machine 'gpu-001' is declared twice, first in a.yaml:7",
        "c.yaml:1: not valid YAML: did not find expected node content",
    ]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("UUID 86a9f546-d31b-4ba2-9bbb-303b61bcf8d1", *["uuid: 86A9F546-D31B-4BA2-9BBB-303B61BCF8D1"] * 2),
        ("serial CZ1", "serial: CZ1", "serial: ' CZ1 '"),
        ("MAC 52:54:00:ab:cd:ef", "macs: [525400ABCDEF]", "macs: [5254.00ab.cdef]"),
    ],
)
def test_two_machines_may_not_share_an_identifier(tmp_path: Path, kind: str, one: str, other: str) -> None:
    a = f"{GOOD}- {{name: one, profile: default, match: {{{one}}}}}\n"
    b = f"machines:\n- {{name: other, profile: default, match: {{{other}}}}}\n"
    (fault,) = faults(tmp_path, a=a, b=b)
    assert fault.startswith("b.yaml:2: machines[0].match.")
    assert fault.endswith(f": {kind} is of two machines, 'other' and 'one' in a.yaml:10")


def test_two_machines_may_not_have_one_unit_of_a_rack(tmp_path: Path) -> None:
    machine = "- {{name: {0}, profile: default, match: {{serial: S-{0}}}, rack: {1}, position: {2}}}\n"
    racks = "racks: [{name: r1}, {name: r2}]\n"
    fine = machine.format("one", "r1", 7) + machine.format("two", "r2", 7) + machine.format("three", "r1", 8)
    (tmp_path / "a.yaml").write_text(GOOD + fine + racks)
    found = {each.name: each.position for each in load_inventory(tmp_path).machines}
    assert found == {"gpu-001": None, "one": 7, "two": 7, "three": 8}
    wrong = machine.format("four", "r1", 7) + machine.format("five", "null", 3) + machine.format("six", "r1", "'9'")
    large = machine.format("seven", "r1", f"0x{'f' * 9000}") + machine.format("eight", "r1", f"0x{'f' * 9000}")
    said = faults(tmp_path, a=GOOD + fine + racks, b="machines:\n" + large)
    assert said == [f"b.yaml:{line}: machines[{line - 2}].position: must be 100 at most" for line in (2, 3)]
    assert faults(tmp_path, a=GOOD + fine + racks, b="machines:\n" + wrong) == [
        "b.yaml:2: machines[0].position: unit 7 of rack r1 is of two machines, 'four' and 'one' in a.yaml:10",
        "b.yaml:3: machines[1].position: is a unit of no rack: say `rack`, too, or leave it out",
        "b.yaml:4: machines[2].position: must be a whole number",
    ]


def test_one_machine_with_the_same_mac_twice(tmp_path: Path) -> None:
    text = GOOD.replace("[52:54:00:12:34:56]", "[52:54:00:12:34:56, 52-54-00-12-34-56]")
    assert faults(tmp_path, a=text) == ["a.yaml:8: machines[0].match.macs[1]: MAC 52:54:00:12:34:56 is here twice"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            GOOD.replace("{macs: [52:54:00:12:34:56]}", "{}"),
            (
                "a.yaml:8: machines[0].match: "
                "needs at least one of macs, uuid and serial: nothing could be recognised by this"
            ),
        ),
        (
            GOOD.replace("[52:54:00:12:34:56]", "[525400123456]"),
            "a.yaml:8: machines[0].match.macs[0]: a number, where text is wanted: write it in quotes",
        ),
        (
            GOOD.replace("console=ttyS0", "netboot.origins=http://203.0.113.9"),
            (
                "a.yaml:5: profiles[0].kernel_arguments[0]: "
                "'netboot.origins' is set by the service for every boot; leave it out"
            ),
        ),
        (
            GOOD.replace("console=ttyS0", "ip=bond0:dhcp"),
            ("a.yaml:5: profiles[0].kernel_arguments: ip=bond0:dhcp is for bond0, which neither bond= nor vlan= makes"),
        ),
        (
            f"{GOOD}classes:\n- {{name: c, kernel_arguments: [ip=vlan5:dhcp]}}\n",
            ("a.yaml:11: classes[0].kernel_arguments: ip=vlan5:dhcp is for vlan5, which neither bond= nor vlan= makes"),
        ),
        (
            GOOD.replace("console=ttyS0", "ip=auto6") + "  class: c\nclasses:\n"
            "- {name: c, kernel_arguments: ['vlan=vlan5:BOOTIF', 'ip=vlan5:dhcp']}\n",
            (
                "a.yaml:10: machines[0].class: of its class 'c' under its profile 'default': "
                "ip= must be vlan5:dhcp or vlan5:auto6, for what bond= and vlan= make"
            ),
        ),
        (
            "profiles:\n- {name: default, channel: stable}\n",
            "a.yaml:2: profiles[0].channel: no channel is named 'stable'; no channel is declared at all",
        ),
        (
            GOOD.replace("profile: default", "profile: zzz"),
            "a.yaml:9: machines[0].profile: no profile is named 'zzz'; declared profiles: default",
        ),
    ],
)
def test_a_fault_says_what_to_do(tmp_path: Path, text: str, fault: str) -> None:
    assert faults(tmp_path, a=text) == [fault]


def test_what_an_unreadable_file_declares_is_not_called_undeclared(tmp_path: Path) -> None:
    machines = "machines:\n- {name: gpu-001, match: {serial: CZ1}, profile: default}\n"
    assert faults(tmp_path, a="profiles: [", b=machines) == [
        "a.yaml:1: not valid YAML: did not find expected node content"
    ]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FaultsError) as caught:
        load_inventory(tmp_path / "nowhere")
    assert str(caught.value) == f"{tmp_path}/nowhere: is not there: the inventory is a folder of *.yaml files"


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(GOOD)
    with pytest.raises(FaultsError) as caught:
        load_inventory(tmp_path / "file")
    assert str(caught.value) == f"{tmp_path}/file: is not a folder: the inventory is a folder of *.yaml files"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    assert faults(tmp_path) == ["a.yaml: is not UTF-8 text"]


def test_what_a_class_should_have_is_checked_like_everything(tmp_path: Path) -> None:
    health = "health: {gpus: 8, gpu_model: H100, nic_firmware: {MT_0000000838: 28.39.2048}, memory_gib: 2048}"
    named = "{ports: [mlx5_0/1], thresholds: {gpu_celsius: 90}}"
    good = GOOD.replace("[console=ttyS0]}", f"[console=ttyS0], {health}}}")
    (tmp_path / "a.yaml").write_text(good)
    assert load_inventory(tmp_path).profiles[0].health.nic_firmware == {"MT_0000000838": "28.39.2048"}
    (tmp_path / "a.yaml").write_text(f"{good}  health: {named}\n")
    (machine,) = load_inventory(tmp_path).machines
    assert (machine.health.ports, machine.health.thresholds) == (("mlx5_0/1",), {"gpu_celsius": 90})
    assert faults(tmp_path, a=good.replace("gpus: 8", "gpu: 8").replace("2048}", "-1}")) == [
        "a.yaml:5: profiles[0].health.gpu: unknown key; did you mean 'gpus'?",
        "a.yaml:5: profiles[0].health.memory_gib: must be 0 at least",
    ]


@given(profile=..., machine=...)
def test_a_machine_s_own_expectations_win_key_by_key_also_after_a_snapshot(
    profile: dict[Literal["gpus", "cpus", "nvme"], int], machine: dict[Literal["gpus", "cpus", "nvme"], int]
) -> None:
    """A snapshot is written with every key, also of what nobody said."""
    ours, theirs = ({name: abs(value) % 99 for name, value in one.items()} for one in (profile, machine))
    models = [Health.model_validate_json(Health.model_validate(one).model_dump_json()) for one in (ours, theirs)]
    assert expected_of(*models) == Health.model_validate({**ours, **theirs})
