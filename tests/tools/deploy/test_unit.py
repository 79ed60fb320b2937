"""The systemd unit that is shipped, as systemd itself reads it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from netboot.status import BOOT_ID_VARIABLE
from netboot.stores.shared_keys import boot

UNIT = Path(__file__).parents[3] / "deploy" / "netboot.service"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a command that is there."""
    path = tmp_path / UNIT.name
    path.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", UNIT.read_text()))
    return path


def analyzed(*arguments: str) -> str:
    ran = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=60)
    return ran.stdout + ran.stderr


def faults(unit: Path) -> list[str]:
    said = analyzed("verify", str(unit)).splitlines()
    return [line for line in said if UNIT.name in line and "Documentation" not in line]


def test_systemd_understands_every_line(unit: Path) -> None:
    assert faults(unit) == []


def test_systemd_understands_the_lines_that_an_operator_may_take_in(unit: Path) -> None:
    whole, count = re.subn(r"(?m)^# (?=[A-Z]\w+=)", "", unit.read_text())
    assert count == 6
    assert [line for line in whole.splitlines() if "=" in line.partition("#")[0] and " #" in line] == []
    unit.write_text(whole)
    assert faults(unit) == []


def test_a_supervisor_that_hangs_is_killed_with_all_that_it_started() -> None:
    """A process that is stopped heeds no other signal; what it started must not live on beside its successor's."""
    lines = set(UNIT.read_text().splitlines())
    assert {"Type=notify", "NotifyAccess=main", "WatchdogSec=30", "WatchdogSignal=SIGKILL"} <= lines
    assert {"KillMode=mixed", "Restart=always", "StartLimitIntervalSec=0"} <= lines


def test_what_the_unit_leaves_open_is_little(unit: Path) -> None:
    """Of 10, by systemd's own reckoning; it was 3.2 without the filter of system calls."""
    level = re.search(
        r"Overall exposure level for netboot\.service: ([\d.]+)", analyzed("security", "--offline=true", str(unit))
    )
    assert level is not None and float(level[1]) <= 1.8


def test_the_unit_lets_processes_confine_themselves() -> None:
    """Its filter is in force before theirs."""
    filters = re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.MULTILINE)
    allowed = {name for line in filters for name in line.split()}
    assert {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"} <= allowed


def test_the_unit_says_which_start_of_the_kernel_it_is_as_netboot_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel's own file is hidden: by systemd's words for the same."""
    lines = set(UNIT.read_text().splitlines())
    assert {"ProcSubset=pid", f"Environment={BOOT_ID_VARIABLE}=%b"} <= lines
    by_the_kernel, written = boot(), tmp_path / "written"
    (tmp_path / "expand.conf").write_text(f"f {written} - - - - %b\n")
    subprocess.run(["systemd-tmpfiles", "--create", str(tmp_path / "expand.conf")], check=True, timeout=60)
    monkeypatch.setattr("netboot.stores.shared_keys.BOOT_ID", tmp_path / "none")
    monkeypatch.setenv(BOOT_ID_VARIABLE, written.read_text())
    assert boot() == by_the_kernel
