"""The class of a machine against the API: `machine show`, `explain`, `config diff`."""

import json
from pathlib import Path

import pytest

from tests.commands import Run
from tests.sites import INVENTORY
from tests.sockets.api import Api

SITE = INVENTORY.replace("machines:", "classes:\n- {name: big, memory_gib: 64}\nmachines:").replace(
    "serial: S2}", "serial: S2}, class: big"
)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=SITE)


def test_the_class_of_a_machine_is_shown(run: Run) -> None:
    assert "class           big (amd64, 64 GiB)\n" in run("machine", "show", "gpu-002").out
    assert "  class          big (amd64, 64 GiB)\n" in run("explain", "gpu-002").out
    shown = json.loads(run("machine", "show", "gpu-002", "--output", "json").out)
    assert (shown["class"], shown["hardware"]["memory_bytes"]) == ("big", 64 * 2**30)


def test_of_a_machine_without_a_class_nothing_is_said(run: Run) -> None:
    assert "class" not in run("machine", "show", "gpu-001").out
    assert not {"class", "hardware"} & set(json.loads(run("machine", "show", "gpu-001", "--output", "json").out))


def test_an_edit_of_a_class_is_shown(api: Api, run: Run) -> None:
    (file,) = api.config.inventory.glob("*.yaml")
    file.write_text(SITE.replace("memory_gib: 64", "memory_gib: 32"))
    lines = run("config", "diff").out.splitlines()
    assert lines[1].split() == ["~", "class", "big", "memory_gib:", "64.0", "→", "32.0"]
    assert lines[-2] == "classes: 0 added, 1 changed, 0 removed"
