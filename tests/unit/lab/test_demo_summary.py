"""The demo's last page."""

from typing import Any

from rich.console import Console

from lab.demo.summary import Facts, Shown, Step, bar_of, kernel_to_ready, page, steps, trace_table
from netboot.clock import rfc3339

EVENTS: list[dict[str, Any]] = [
    {"phase": "InitrdStarted", "source": "reported", "at": rfc3339(1_000_010_000), "detail": "kernel [6.1]"},
    {"phase": "ScriptServed", "source": "served", "at": rfc3339(1_000_005_000), "detail": ""},
    {"phase": "Failed", "source": "reported", "at": rfc3339(1_000_015_000), "detail": "no origin answers"},
    {"phase": "Booted", "source": "reported", "at": rfc3339(1_000_020_000), "detail": ""},
]


def printed(what: Any) -> str:
    console = Console(width=110, record=True, color_system=None, file=None, quiet=False)
    with console.capture() as captured:
        console.print(what, highlight=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def test_steps_are_in_the_order_of_time_and_count_from_power_on() -> None:
    assert steps(EVENTS, 1_000_000.0) == [
        Step("ScriptServed", "served", 5.0),
        Step("InitrdStarted", "reported", 10.0, "kernel [6.1]"),
        Step("Failed", "reported", 15.0, "no origin answers"),
        Step("Booted", "reported", 20.0),
    ]


def test_the_trace_is_a_picture() -> None:
    assert (
        printed(trace_table(steps(EVENTS, 1_000_000.0), width=8))
        == """\
phase          says          at   took            what
ScriptServed   served     5.0 s  5.0 s  ━━        firmware, DHCP, iPXE; it asked for its script
InitrdStarted  reported  10.0 s  5.0 s    ━━      the kernel started, our initrd runs · kernel [6.1]
Failed         reported  15.0 s  5.0 s      ━━    no origin answers
Booted         reported  20.0 s  5.0 s        ━━  multi-user.target"""
    )


def test_a_bar_is_never_empty_and_never_longer_than_its_line() -> None:
    assert bar_of(0, 0, 10, 4) == "━"
    assert bar_of(9.99, 10, 10, 4) == "   ━"
    assert bar_of(0, 10, 10, 4) == "━━━━"
    assert bar_of(10, 10, 10, 4) == "   ━"


def test_from_kernel_to_ready_is_by_the_service_s_clock_from_when_the_kernel_says_it_began() -> None:
    """The initrd reported 2.5 s after its kernel began."""
    ready = {"phase": "Ready", "source": "observed", "at": rfc3339(1_000_060_000), "detail": ""}
    assert kernel_to_ready([{**EVENTS[0], "uptime_ms": 2_500}, *EVENTS[1:], ready]) == 52.5
    assert kernel_to_ready([{**EVENTS[0], "uptime_ms": 2_500}]) is None
    assert kernel_to_ready([EVENTS[0], ready]) is None


def test_commands_are_whole_lines_outside_the_frame() -> None:
    artifacts = {name: {"size": 1 << 20} for name in ("kernel", "initrd", "root")}
    manifest = {
        "name": "debian-12-minimal",
        "distribution": "debian",
        "suite": "bookworm",
        "kernel_version": "6.1.0-cloud",
        "ram_mib": 353,
        "artifacts": artifacts,
    }
    image = {"image": "a" * 64, "size": 3 << 20, "signer": "1234", "verified": True, "manifest": manifest}
    facts = Facts(image, "node-1", 1024, "SeaBIOS", "a namespace", "KVM", "console.log", 33.0, "built in 1 s")
    command = "netboot boot show --config " + "x" * 40
    shown = printed(page(steps(EVENTS, 1_000_000.0), facts, [("why", command)], 110))
    assert "cluster" not in shown
    assert f"\nLook further:\n  # why\n  {command}" in shown
    assert "node-1 was a heap of firmware; 20 seconds later it runs debian-12-minimal" in shown
    assert "signed by key 1234; root image: nothing, on the machine itself" in shown
    assert "3.0 MiB (kernel 1.0, initrd 1.0, root 1.0); needs 353 MiB of memory" in shown


def test_a_ready_node_is_called_one_and_has_its_rows() -> None:
    artifacts = {name: {"size": 1 << 20} for name in ("kernel", "initrd", "root")}
    manifest = {"name": "n", "distribution": "debian", "suite": "bookworm", "kernel_version": "6", "ram_mib": 353}
    image = {"image": "a" * 64, "size": 3 << 20, "signer": "1234", "verified": True}
    more = [("cluster", "Kubernetes at https://192.0.2.1:6443"), ("Pod", "says from inside: hello")]
    facts = Facts(
        {**image, "manifest": {**manifest, "artifacts": artifacts}}, "node-1", 2048, "SeaBIOS", "a namespace", "KVM",
        "console.log", 33.0, "built in 1 s", more,
    )  # fmt: skip
    ready = {"phase": "Ready", "source": "observed", "at": rfc3339(1_000_060_000), "detail": ""}
    again = Shown("node-1 again", steps(EVENTS[:1], 1_000_004.0), [("image", "another")])
    shown = printed(page(steps([*EVENTS, ready], 1_000_000.0), facts, [], 110, [again]))
    assert "node-1 was a heap of firmware; 60 seconds later it is a Ready node" in shown
    assert "cluster   Kubernetes at https://192.0.2.1:6443" in shown
    assert "Pod       says from inside: hello" in shown
    assert shown.index("Pod       says") < shown.index("node-1 again") < shown.index("6.0 s  6.0 s")
    assert shown.index("6.0 s  6.0 s") < shown.index("image  another")
