"""One bad thing at a time, laid over a machine that is in order: found by the check that should, and no other."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from images.node.health.active import TESTS
from images.node.health.checks import CHECKS
from images.node.health.kept import FOLDER
from images.node.health.machine import Output
from tests.unit.health.faults import FAULTS as PASSIVE
from tests.unit.health.faults import Fault
from tests.unit.health.faults_of_classes import FAULTS as OF_CLASSES
from tests.unit.health.faults_under_load import FAULTS as UNDER_LOAD
from tests.unit.health.recorded import HARDWARE, WHOLE, Told, expected, loaded, look, plant, put, recorded, told, words

NAME = "hgx-h100"
NONE = Fault("", "", "")
FAULTS = {**PASSIVE, **OF_CLASSES, **UNDER_LOAD}


class Good:
    """The machine in order, after its first run; what is laid over it is taken away again."""

    def __init__(self, root: Path) -> None:
        self.root = plant(root, NAME)
        self.files, self.tools = recorded(NAME)
        self.found = self.look({}, NONE)
        self.kept = shutil.copytree(root / FOLDER, root / "kept")

    def look(
        self, tools: dict[str, Output], fault: Fault, tolerated: dict[str, float] | None = None
    ) -> dict[str, tuple[str, str]]:
        hardware = replace(HARDWARE, thresholds=tolerated or {})
        known = expected(**WHOLE | fault.expects, hardware=hardware, not_understood=fault.not_understood)
        machine = Told(self.root, known, fault.offset, told(NAME, tools))
        return words(look(machine) | loaded(machine))

    def with_fault(self, fault: Fault, *, tolerated: bool = True) -> dict[str, tuple[str, str]]:
        changes = dict(fault.files)
        if fault.log:
            changes["dev/kmsg"] = "\n".join([self.files["dev/kmsg"], *fault.log])
        try:
            for path, content in changes.items():
                put(self.root / path, content)
            said = {beginning: self._edited(beginning, fault) for beginning in fault.tools}
            return self.look(said, fault, fault.tolerated if tolerated else None)
        finally:
            for path in changes:
                put(self.root / path, self.files.get(path))
            shutil.rmtree(self.root / FOLDER)
            shutil.copytree(self.kept, self.root / FOLDER)

    def _edited(self, beginning: str, fault: Fault) -> Output:
        (before,) = [output for line, output in self.tools.items() if line.startswith(beginning)]
        after = fault.tools[beginning](before.text)
        assert after != before.text
        return Output(before.status, after)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Good]:
    yield Good(tmp_path_factory.mktemp("good"))


def test_the_machine_in_order_has_no_finding_in_any_run(good: Good) -> None:
    assert {name for name, (status, _) in good.found.items() if status != "pass"} == set()
    assert good.look({}, NONE) == good.found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_check_that_should(good: Good, name: str) -> None:
    fault = FAULTS[name]
    found = good.with_fault(fault)
    assert {name: said for name, said in found.items() if said[0] not in ("pass", "absent")} == {
        fault.check: (fault.status, fault.summary)
    }
    assert tuple(name for name, said in found.items() if said[0] == "absent") == fault.absent


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.tolerated])
def test_what_a_class_does_not_tolerate_is_in_order_elsewhere(good: Good, name: str) -> None:
    assert {said[0] for said in good.with_fault(FAULTS[name], tolerated=False).values()} == {"pass"}


def test_there_are_many_and_every_check_has_its_own() -> None:
    assert len(FAULTS) >= 60
    names = {check.name for check in (*CHECKS, *TESTS)}
    assert {fault.check for fault in FAULTS.values()} == names
