"""A machine gets another name: what its file says then, and whose history is whose."""

from pathlib import Path

import pytest

from images.values.strict import FaultsError
from netboot.config import load_config
from netboot.lifecycle.bootid import NO_IMAGE, machine_of_boot, mint
from netboot.lifecycle.errors import InventoryReadOnlyError
from netboot.machines.declared import Declared, documents_of, items_of
from netboot.machines.former import present_names, staying
from netboot.machines.inventory import load_inventory
from netboot.machines.match import Index
from netboot.machines.renaming import NotEditableError, renamed
from netboot.machines.values import Machine, Match
from netboot.stores.inventory_files import InventoryFiles

HEAD = "channels: [{name: stable}]\nprofiles: [{name: gpu-001, channel: stable}]\nmachines:\n"
BLOCK = """\
# rack 7
- name: gpu-001   # the loud one
  match: {macs: [52:54:00:00:00:01]}
  profile: gpu-001
"""
FORMER = "  former_names: [gpu-001]\n"
FLOW = '- {name: "gpu-001", match: {serial: CZ1}, profile: gpu-001}  # flow\n'
AGAIN = """\
- match: {serial: CZ1}
  former_names: [old-001, gpu-009]  # long ago
  name: gpu-001
  profile: gpu-001
"""


def item(folder: Path, text: str) -> Declared:
    (folder / "site.yaml").write_text(HEAD + text)
    (document,), _ = documents_of(folder)
    return next(each for each in items_of(document) if each.kind == "machine")


@pytest.mark.parametrize(
    ("text", "name", "then"),
    [
        (BLOCK, "r7-1", BLOCK.replace("- name: gpu-001", "- name: r7-1").replace("one\n", f"one\n{FORMER}", 1)),
        (FLOW, "r7-1", FLOW.replace('"gpu-001"', "r7-1, former_names: [gpu-001]")),
        (AGAIN, "r7-1", AGAIN.replace("name: gpu-001\n", "name: r7-1\n").replace("[old", "[gpu-001, old")),
        (
            AGAIN,
            "gpu-009",
            AGAIN.replace(" name: gpu-001", " name: gpu-009").replace("old-001, gpu-009", "gpu-001, old-001"),
        ),
        (
            BLOCK.replace("\n", "\r\n"),
            "r7-1",
            BLOCK.replace("- name: gpu-001", "- name: r7-1").replace("one\n", f"one\n{FORMER}").replace("\n", "\r\n"),
        ),
    ],
)
def test_the_file_s_comments_and_order_stay(tmp_path: Path, text: str, name: str, then: str) -> None:
    assert renamed(HEAD + text, item(tmp_path, text), name) == HEAD + then
    (tmp_path / "site.yaml").write_text(HEAD + then)
    (machine,) = load_inventory(tmp_path).machines
    assert (machine.name, machine.former_names[0], machine.profile) == (name, "gpu-001", "gpu-001")


@pytest.mark.parametrize(
    "text",
    [
        "- name: &one gpu-001\n  match: {serial: CZ1}\n  profile: gpu-001\n",
        "- {match: {serial: CZ1}, name: gpu-001, former_names: [\n  old-001], profile: gpu-001}\n",
    ],
)
def test_what_no_program_can_edit_is_left_to_a_person(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotEditableError, match=r"site\.yaml:\d+ cannot be edited by a program: write `name: r7-1` and"):
        renamed(HEAD + text, item(tmp_path, text), "r7-1")


def test_a_former_name_is_nobody_else_s(tmp_path: Path) -> None:
    machines = [
        "{name: a, former_names: [a, b, c], match: {serial: CZ1}, profile: gpu-001}",
        "{name: b, former_names: [c, d, d], match: {serial: CZ2}, profile: gpu-001}",
    ]
    (tmp_path / "site.yaml").write_text(HEAD + "".join(f"- {each}\n" for each in machines))
    with pytest.raises(FaultsError) as error:
        load_inventory(tmp_path)
    place = tmp_path / "site.yaml"
    assert list(map(str, error.value.faults)) == [
        f"{place}:4: machines[0].former_names[0]: 'a' is its name now: leave it out here",
        f"{place}:4: machines[0].former_names[1]: 'b' is the name of another machine, in {place}:5: leave it out here",
        f"{place}:5: machines[1].former_names[0]: former name 'c' is of two machines, 'b' and 'a' in {place}:4",
        f"{place}:5: machines[1].former_names[2]: former name 'd' is here twice",
    ]


def test_a_link_is_not_replaced_by_a_file_that_everybody_may_write(tmp_path: Path) -> None:
    (tmp_path / "netboot.yaml").write_text("site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n")
    (tmp_path / "inventory").mkdir()
    link = tmp_path / "inventory/site.yaml"
    link.symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(InventoryReadOnlyError, match="is a symbolic link: edit the file where it leads"):
        InventoryFiles(load_config(tmp_path / "netboot.yaml")).write({"site.yaml": HEAD})
    assert link.is_symlink()


def test_a_boot_of_before_is_the_machine_s() -> None:
    machine = Machine(name="r7-1", former_names=("gpu-001",), match=Match(macs=("52:54:00:00:00:01",)), profile="p")
    index, key = Index([machine]), b"k" * 32
    boot, other = (mint(key, name, NO_IMAGE, 1_700_000_000_000, 1) for name in ("gpu-001", "gpu-002"))
    assert machine_of_boot(index, key, boot, "gpu-001", None) is machine
    assert machine_of_boot(index, key, boot, None, "52:54:00:00:00:01") is machine
    assert machine_of_boot(index, key, other, "gpu-001", "52:54:00:00:00:01") is None
    assert index.named("gpu-001") is None


def test_no_former_name_is_written_where_there_is_none(tmp_path: Path) -> None:
    item(tmp_path, BLOCK)
    inventory = load_inventory(tmp_path)
    assert "former_names" not in inventory.machines[0].model_dump()
    assert (present_names(inventory), staying(inventory, frozenset())) == ({}, frozenset({"gpu-001"}))


def test_who_is_said_to_be_another_has_left_unless_that_one_is_new_and_was_nobody_else(tmp_path: Path) -> None:
    item(tmp_path, BLOCK.replace("gpu-001  ", "r7-1  ") + "  former_names: [a, b, c]\n")
    inventory = load_inventory(tmp_path)
    assert staying(inventory, {"a", "b", "c"}) == {"r7-1", "a"}
    assert staying(inventory, {"c"}, {"b"}) == {"r7-1", "b"}
    assert staying(inventory, {"r7-1", "a", "b"}) == {"r7-1"}
