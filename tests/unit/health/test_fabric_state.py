"""GPUs that stay on their way into the fabric: for a run that cannot be told, from then on it is a fault."""

from pathlib import Path

from images.node.health.checks.gpu_fabric import CHECK
from images.node.health.kept import lasting
from images.node.health.machine import Output
from images.node.health.result import Result
from tests.unit.health.faults import NO_SWITCHES, in_progress
from tests.unit.health.recorded import Told, expected, look, plant, put, recorded

TOOLS = recorded("hgx-h100")[1]
WAITING = in_progress(*range(8))(TOOLS["nvidia-smi -q"].text)
ALL = ", ".join(f"GPU {at}: In Progress" for at in range(8))
JOURNAL = "see `journalctl -u nvidia-fabricmanager.service`; restart it while no program uses a GPU"
ELSEWHERE = "no NVSwitch is on this machine's bus: see that the fabric's own machines run, or count the switches"


def run(root: Path, seconds: float, said: str) -> Result:
    put(root / "proc/uptime", f"{seconds} 1.0")
    machine = Told(root, expected(gpus=8), None, TOOLS | {"nvidia-smi -q": Output(0, said)})
    return look(machine, [CHECK])["gpu-fabric"]


def test_without_a_switch_on_the_bus_gpus_are_asked_for_their_places(tmp_path: Path) -> None:
    """HGX B200, whose switches are behind ConnectX cards; or an H100 whose switches all fell off the bus."""
    plant(tmp_path, "hgx-h100", NO_SWITCHES)
    well = run(tmp_path, 60, TOOLS["nvidia-smi -q"].text)
    assert (well.status, well.summary) == ("pass", "8 GPUs in the fabric, no NVSwitch on the PCI bus")
    assert well.facts == {"nvswitches": 0, "fabric": ["Completed Success"] * 8}
    first, second = run(tmp_path, 400, WAITING), run(tmp_path, 720, WAITING)
    assert (first.status, first.remedy) == ("unknown", "wait: it is being set up; the next run tells")
    assert (second.status, second.remedy) == ("fail", f"{JOURNAL}; {ELSEWHERE}")
    assert {first.summary, second.summary} == {f"GPUs that are not in the fabric: {ALL}"}
    assert run(tmp_path, 1020, TOOLS["nvidia-smi -q"].text).status == "pass"
    assert run(tmp_path, 1320, WAITING).status == "unknown", "it begins again"


def test_with_switches_the_same_holds_and_the_fabric_manager_is_to_be_looked_at(tmp_path: Path) -> None:
    plant(tmp_path, "hgx-h100")
    assert run(tmp_path, 400, WAITING).status == "unknown"
    assert (run(tmp_path, 720, WAITING).status, run(tmp_path, 1020, WAITING).remedy) == ("fail", JOURNAL)


def test_gpus_that_tell_of_no_fabric_have_none(tmp_path: Path) -> None:
    """N/A where there is none; drivers before 530 do not have the rows."""
    plant(tmp_path, "hgx-h100", NO_SWITCHES)
    said = TOOLS["nvidia-smi -q"].text
    for text in (said.replace("Completed", "N/A").replace("Success", "N/A"), said.replace("Fabric", "Elsewhere")):
        found = run(tmp_path, 60, text)
        assert (found.status, found.summary) == ("absent", "no NVSwitch is on the PCI bus, and none is expected")


def test_gpus_that_cannot_be_asked_are_not_taken_for_gpus_without_a_fabric(tmp_path: Path) -> None:
    plant(tmp_path, "hgx-h100", NO_SWITCHES)
    found = look(Told(tmp_path, expected(gpus=8), None, {}), [CHECK])["gpu-fabric"]
    assert (found.status, found.summary) == ("unknown", "this image has no nvidia-smi")


def test_how_long_something_has_been_so_is_counted_without_a_break(tmp_path: Path) -> None:
    machine = Told(tmp_path)

    def since(seconds: float, *, holds: bool = True) -> float:
        put(tmp_path / "proc/uptime", f"{seconds} 1.0")
        return lasting(machine, "any", holds=holds)

    assert [since(100), since(400), since(401, holds=False), since(700), since(1000)] == [0, 300, 0, 0, 300]
    for torn in ("{", '{"since": "x"}', '{"since": 9999999}'):
        put(tmp_path / "run/netboot/health/any.json", torn)
        assert (since(1300), since(1400)) == (0, 100)
