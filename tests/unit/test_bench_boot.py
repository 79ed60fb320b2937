"""The bench's part `boot`: what it reads of traces and consoles, what the floor is made of, how it judges."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import boot, floor
from bench.__main__ import _options
from bench.boot import Boots
from bench.boot_times import of_floor, of_trace
from bench.report_boot import boot_verdicts, medians, print_boot
from bench.serving import AbsentError, BenchError
from images.formats import cpio
from ipxe.render import prepare
from ipxe.values import Boot
from netboot.clock import rfc3339

OURS = {"ScriptServed": -3.0, "InitrdStarted": 2.0, "Switched": 12.0, "Joining": 20.0, "Ready": 45.0}
FLOOR = {"InitrdStarted": 2.0, "Switched": 10.0, "Booted": 20.0, "Ready": 30.0}
JOIN = floor.Join("https://192.0.2.1:6443", b"-----BEGIN CERTIFICATE-----\n", "abcdef.0123456789abcdef")


def test_the_issues_targets() -> None:
    slower = OURS | {"Switched": 13.0, "Joining": 24.0, "Ready": 60.0}
    judged = boot_verdicts(Boots("tcg", 100.0, [OURS, slower, OURS], [FLOOR, FLOOR, FLOOR]))
    assert [(one.what, one.value, one.target, one.reached) for one in judged] == [
        ("kernel → Switched, verified ÷ floor's", 1.2, 1.2, True),
        ("Switched → Joining ÷ floor's kernel → multi-user", 0.4, 0.5, True),
        ("kernel → Ready ÷ floor's", 1.5, 1.9, True),
    ]
    (missed,) = (one for one in boot_verdicts(Boots("tcg", 1.0, [slower], [FLOOR])) if one.what.startswith("Switched"))
    assert (missed.value, missed.reached) == (0.55, False)


def test_a_trace_begins_when_the_kernel_did_however_late_its_first_report_came() -> None:
    """The report of InitrdStarted waits for the network: the one that was heard soonest tells the time."""
    reached: list[dict[str, Any]] = [
        {"phase": "ScriptServed", "source": "served", "at": rfc3339(96_000)},
        {"phase": "InitrdStarted", "source": "reported", "at": rfc3339(105_500), "uptime_ms": 2000},
        {"phase": "Switched", "source": "reported", "at": rfc3339(112_010), "uptime_ms": 12_000},
        {"phase": "Booted", "source": "reported", "at": rfc3339(125_000), "uptime_ms": 20_000},
        {"phase": "Ready", "source": "observed", "at": rfc3339(140_010), "uptime_ms": None},
    ]
    assert of_trace(reached) == {
        "ScriptServed": -4.01,
        "InitrdStarted": 2.0,
        "Switched": 12.0,
        "Booted": 20.0,
        "Ready": 40.0,
    }
    with pytest.raises(BenchError, match="the trace has no report of the machine"):
        of_trace(reached[:1])


def test_the_floors_phases_are_those_of_its_console_and_of_kubectl() -> None:
    """Both logs count from when they began: 10 s after the clock's zero the console, 5 s after it kubectl's. A phase on
    a line that the login began earlier tells when it was, and nothing of when the kernel started."""
    console = (
        "[    0.200] iPXE 1.0.0\n[    3.500] floor: InitrdStarted 2.00\n[    9.100] floor: ImageFetched 7.90\n"
        "[   14.000] floor: Switched 12.50\n[   15.200] floor login: floor: Booted 18.75\n"
    )
    nodes = "[   26.000] other   True\n[   31.200] floor   <none>\n[   33.200] floor   False\n"
    nodes += "[   36.200] floor   True\n[   40.000] floor   True\n"
    assert of_floor(console, 10.0, nodes, 5.0) == {
        "InitrdStarted": 2.0,
        "ImageFetched": 7.9,
        "Switched": 12.5,
        "Booted": 18.75,
        "NodeRegistered": 25.0,
        "Ready": 30.0,
    }
    with pytest.raises(BenchError, match="the floor's console says no phase"):
        of_floor("[    0.200] iPXE 1.0.0\n", 10.0, nodes, 5.0)


def test_the_floors_kernel_has_the_arguments_of_ours_but_those_of_netboot() -> None:
    values = Boot(
        url="http://192.0.2.1:8080",
        machine="node-1",
        image="a" * 64,
        kernel="b" * 64,
        initrd="c" * 64,
        origins=(("http://192.0.2.9",),),
        kernel_from="http://192.0.2.1:8080",
        arguments=("panic=30", "console=ttyS0,115200n8"),
        seconds=5,
        nonce=True,
    )
    script = prepare(values).fill("0" * 8).decode()
    given = floor.arguments(script)
    assert given == ["panic=30", "console=ttyS0,115200n8"]
    fallback = values.model_copy(update={"kernel_from": "http://192.0.2.9", "nonce": False})
    assert floor.arguments(prepare(fallback).fill("0" * 8).decode()) == given
    assert floor.ipxe("http://192.0.2.2:8000/v1", given) == (
        "#!ipxe\n"
        "kernel http://192.0.2.2:8000/v1/kernel panic=30 console=ttyS0,115200n8 systemd.hostname=floor net.ifnames=0 "
        "initrd=initrd\n"
        "initrd --name initrd http://192.0.2.2:8000/v1/initrd\n"
        "boot\n"
    )
    with pytest.raises(BenchError, match="the service's script boots nothing: #!ipxe"):
        floor.arguments("#!ipxe\necho node-1 is not known\n")


def test_the_bare_initrd_has_the_images_own_tools_and_nothing_that_verifies(tmp_path: Path) -> None:
    modules = tmp_path / "lib/netboot/modules"
    modules.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/busybox").write_bytes(b"busybox")
    for name in ("virtio_net.ko", "bonding.ko", "8021q.ko", "overlay.ko"):
        (modules / name).write_bytes(name.encode())
    (modules.parent / "modules.order").write_text("virtio_net.ko\nbonding.ko\n8021q.ko\noverlay.ko\n")
    made = {one.path: one.data for one in floor.entries(tmp_path, "URL=u\nFORMAT=squashfs\n", JOIN)}
    assert made["bin/busybox"] == b"busybox"
    assert made["modules.order"] == b"virtio_net.ko\noverlay.ko\n"
    assert {name for name in made if name.startswith("modules/")} == {"modules/virtio_net.ko", "modules/overlay.ko"}
    assert made["settings"] == b"URL=u\nFORMAT=squashfs\n"
    assert made["init"].startswith(b"#!/bin/sh\n")
    assert {"dhcp.sh", "floor/floor/say.sh", "floor/systemd/system/floor-join.service"} <= set(made)
    kubeconfig = json.loads(made["floor/floor/bootstrap.kubeconfig"])
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://192.0.2.1:6443"
    assert kubeconfig["users"] == [{"name": "token", "user": {"token": "abcdef.0123456789abcdef"}}]
    assert not any(word in b"".join(made.values()) for word in (b"sha256sum", b"signify", b"python"))
    assert cpio.archive(floor.entries(tmp_path, "", JOIN)).startswith(b"070701")


@pytest.mark.parametrize(
    ("argv", "rounds", "boots"), [((), 7, 3), (("--rounds", "5"), 5, 5), (("--rounds", "5", "--quick"), 1, 1)]
)
def test_boots_have_three_rounds_unless_it_is_said(
    argv: tuple[str, ...], rounds: int, boots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--only", "boot", *argv])
    options = _options()
    assert (options.rounds, options.boots, options.only) == (rounds, boots, ["boot"])


def test_no_rounds_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--rounds", "0"])
    with pytest.raises(SystemExit):
        _options()
    assert "--rounds and --seconds must be at least 1" in capsys.readouterr().err


def test_which_arm_is_first_alternates() -> None:
    assert list(boot.turns(3)) == [(0, "floor"), (0, "ours"), (1, "ours"), (1, "floor"), (2, "floor"), (2, "ours")]


def test_phases_stand_beside_the_floors() -> None:
    out = io.StringIO()
    print_boot(Console(file=out, width=110), Boots("tcg", 101.3, [OURS], [FLOOR]))
    lines = [line.split() for line in out.getvalue().splitlines() if line]
    title = "a boot of 101 MiB in software emulation, 1 round: seconds from the kernel's start"
    assert lines[0] == title.split()
    assert lines[2:] == [
        ["ScriptServed", "-3.00"],
        ["InitrdStarted", "2.00", "2.00", "2.00", "2.00", "1.00"],
        ["Switched", "12.00", "10.00", "10.00", "8.00", "1.20"],
        ["Joining", "20.00", "8.00"],
        ["Ready", "45.00", "25.00", "30.00", "10.00", "1.50"],
    ]


def test_a_phase_that_a_round_lacks_has_no_median() -> None:
    assert medians([OURS, {"Ready": 47.0}, {"Ready": 90.0, "Switched": 1.0}]) == {"Ready": 47.0}


def test_without_root_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(AbsentError, match=r"run the bench with sudo, or leave the part boot out \(--only\)"):
        boot.measure(tmp_path, 1, Console(file=io.StringIO()))


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("swtpm", "nginx") else f"/usr/bin/{name}")
    with pytest.raises(AbsentError, match=r"boot: not installed: nginx-light, swtpm; \./setup\.sh installs"):
        boot.measure(tmp_path, 1, Console(file=io.StringIO()))


def test_without_kubernetes_it_is_absent_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "require", lambda: None)
    monkeypatch.setattr("bench.boot_world.CACHE", tmp_path / "cache")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("NETBOOT_KUBE_ARCHIVE", str(tmp_path / "none.xz"))
    with pytest.raises(AbsentError, match=r"boot: NETBOOT_KUBE_ARCHIVE=.*none\.xz: No such file or directory"):
        boot.measure(tmp_path, 1, Console(file=io.StringIO()))
