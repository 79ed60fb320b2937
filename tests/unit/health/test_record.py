"""A recording has what the checks go by, and nothing that names a machine."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from images.node.health import record
from images.node.health.machine import Offset
from images.node.health.scrub import Scrubber
from netboot.cli.commands import cli
from tests.unit.health import recorded as recordings
from tests.unit.health.recorded import FIXTURES, WHOLE, Told, expected, look, plant, put, recorded, words

NAMED = """\
GPU UUID                              : GPU-8f0500a5-abae-41df-22f9-42f861728600
Serial Number                         : 1653723016068
GPU 0000:91:00.0: GPU serial number is 1653723052734.
4,1,1,-;NVRM: Xid (PCI:0000:10:00): 31, pid=4711, name=train.py, Ch 00000008
        Process ID                        : 4711
            Name                          : /home/ada/venv/bin/python
"serial_number" : "S64GNE0T801234",
link/ether a0:88:c2:46:81:fe and 52-54-00-12-34-56
node_guid a288:c203:0046:81fe, gid fe80:0000:0000:0000:a288:c2ff:fe46:81fe and 0xa288c203004681fe
gid 0000:0000:0000:0000:0000:ffff:0a14:1e28 of 10.20.30.40, 2a02:6b8::feed
gpu-017 is gpu-017.rack4.example.net
"""
CLEAN = """\
GPU UUID                              : GPU-00000000-0000-0000-0000-000000000001
Serial Number                         : 0
GPU 0000:91:00.0: GPU serial number is 0.
4,1,1,-;NVRM: Xid (PCI:0000:10:00): 31, pid=4711, name=<program>, Ch 00000008
        Process ID                        : 4711
            Name                          : <program>
"serial_number" : "0",
link/ether 02:00:00:00:00:02 and 02:00:00:00:00:03
node_guid 0000:0000:0000:0004, gid fe80:0000:0000:0000:0000:0000:0000:0006 and 0x0000000000000005
gid 0000:0000:0000:0000:0000:ffff:c000:0207 of 192.0.2.7, 2001:db8::8
host is host
"""
KEPT = """\
0000:10:00.0 00000000:10:00.0 PCI:0000:3b:00 535.161.08 96.00.89.00.01 28.39.2048 0x030200 MT_0000000838
Serial Number : N/A, at 09:48:31 of 10/21/2026, 127.0.0.1 and ::1 and 0000:0000:0000:0000:0000:0000:0000:0000
TOTAL_ERR_COR 0, 16.0 GT/s PCIe, Product Name : NVIDIA H100 80GB HBM3
"""


def test_names_become_numbers_of_the_same_form() -> None:
    assert Scrubber(["gpu-017.rack4.example.net", "gpu-017"]).clean(NAMED) == CLEAN


def test_the_same_name_has_the_same_number_and_what_is_clean_stays() -> None:
    scrubber = Scrubber()
    once = scrubber.clean("aa:bb:cc:dd:ee:ff 00:11:22:33:44:55 AA:BB:CC:DD:EE:FF")
    assert once == "02:00:00:00:00:01 02:00:00:00:00:02 02:00:00:00:00:01"
    assert scrubber.clean(once) == once
    assert Scrubber().clean(CLEAN) == CLEAN


def test_what_checks_go_by_is_left_as_it_is() -> None:
    assert Scrubber().clean(KEPT) == KEPT


@given(st.text(alphabet="0123456789abcdef:.-x \nGPU", max_size=200))
def test_whatever_is_scrubbed_is_scrubbed_once(text: str) -> None:
    once = Scrubber().clean(text)
    assert Scrubber().clean(once) == once


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.txt")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_fixture_names_a_machine(path: Path) -> None:
    assert Scrubber().clean(path.read_text()) == path.read_text()


@pytest.mark.parametrize("folder", sorted(FIXTURES.glob("*/")), ids=lambda path: path.name)
def test_every_fixture_says_where_it_is_from(folder: Path) -> None:
    told = json.loads((folder / "provenance.json").read_text())
    assert list(told) == ["schema", "machine", "recorded", "by", "kernel", "driver", "tools", "parts"]
    assert told["schema"] == record.SCHEMA
    assert told["parts"]
    for part in told["parts"]:
        assert list(part) == ["what", "how", "source"]
        assert part["how"] in ("recorded", "published", "made")
        assert part["source"]
    assert (told["recorded"] is None) == all(part["how"] != "recorded" for part in told["parts"])


def test_a_recording_is_judged_as_its_machine_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "here", "hgx-h100", {"proc/815/comm": "secret-program"})
    for line, output in recorded("hgx-h100")[1].items():
        _program(tmp_path / "bin", line, output.text)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert record.main(["record", str(tmp_path / "made/again"), str(tmp_path / "here")]) == 0
    assert not (tmp_path / "here/run").exists()
    monkeypatch.setattr(recordings, "FIXTURES", tmp_path / "made")
    text = (tmp_path / "made/again/machine.txt").read_text()
    assert "secret-program" not in text
    assert json.loads((tmp_path / "made/again/provenance.json").read_text())["driver"] == "535.161.08"
    machine = Told(plant(tmp_path / "there", "again"), expected(**WHOLE), Offset(120, 40), recorded("again")[1])
    before = Told(plant(tmp_path / "before", "hgx-h100"), expected(**WHOLE), Offset(120, 40), recorded("hgx-h100")[1])
    assert words(look(machine)) == words(look(before))


def _program(folder: Path, line: str, text: str) -> None:
    """A tool that answers to one command line more."""
    name, _, arguments = line.partition(" ")
    said = folder / f"said-{abs(hash(line))}"
    folder.mkdir(exist_ok=True)
    said.write_text(text)
    tool = folder / name
    before = tool.read_text() if tool.exists() else "#!/bin/sh\n"
    tool.write_text(f'{before}[ "$*" = "{arguments}" ] && exec cat {said}\n')
    tool.chmod(0o755)


def test_the_kernel_s_arguments_are_not_recorded(tmp_path: Path) -> None:
    said = "6,1,0,-;Command line: token=1 mlx5_core.x=1\n5,2,0,-;Kernel command line: token=1 mlx5_core.x=1\n"
    driver = "6,3,0,-;nvidia: loading out-of-tree module taints kernel."
    put(tmp_path / "dev/kmsg", said + driver)
    assert record.Recording(tmp_path).kernel_log() == driver


def test_a_folder_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["node", "record", str(tmp_path)])
    assert (done.exit_code, done.output) == (1, f"{tmp_path} is there already: name a new folder\n")


def test_what_a_tool_says_too_much_of_is_not_recorded_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path / "here", "vm", {"sys/bus/pci/devices/0000:00:03.0/class": "x" * 300_000})
    monkeypatch.setenv("PATH", str(tmp_path))
    plant(tmp_path / "here", "vm", {f"sys/bus/pci/devices/0000:00:03.0/{name}": "0x1" for name in ("vendor", "device")})
    assert record.main(["record", str(tmp_path / "made"), str(tmp_path / "here")]) == 0
    assert "not recorded: gpu-count: the check said more than 262144 bytes\n" in capsys.readouterr().err
