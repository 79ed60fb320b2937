"""`make demo DISCOVER=1`: a machine that nobody has declared says what it is made of, is declared by that, reboots by
itself, and is a Ready node of its own image."""

import json
import re
from pathlib import Path

import pytest

from lab.demo.steps import NODE_CPUS
from lab.errors import DeadlineError
from lab.processes import finish, start
from lab.work import ROOT
from tests.boot.data_centre import BuiltImage
from tests.boot.node_data_centre import READY_SECONDS

pytestmark = pytest.mark.boot

WITH = "PY=setpriv --pdeathsig=KILL -- .venv/bin/python"
"""So that it ends with `make`, and that with us, whatever ends us: see `lab.processes`."""


def test_an_unknown_machine_introduces_itself_is_declared_and_becomes_a_node(
    built_node: BuiltImage, folder: Path
) -> None:
    """The command of the pages, as it stands there. After the shared image, so that the build comes from its cache."""
    assert built_node.digest
    running = start("demo", ["make", "--no-print-directory", "demo", "DISCOVER=1", WITH], folder / "demo.log", cwd=ROOT)
    try:
        status = running.process.wait(2 * READY_SECONDS)
        running.output.join()
        page = running.output.text
        if status != 0 and "on a busy machine everything takes longer" in page:
            raise DeadlineError(running.output.tail())  # the demo's own deadline
        assert status == 0, running.output.tail()
    finally:
        finish(running)
    left = re.search(r"(?m)^    all that it said: (\S+)/node-1\.discovered\.json$", page)
    assert left is not None
    machine = ROOT / left[1]
    before, _, after = (
        (machine / "node-1.console.log").read_text().partition("netboot-discovery: this machine is declared")
    )
    assert "netboot-discovery: it waits until it is declared" in before
    for started in ("Starting netboot-join", "Starting containerd", "netboot-join: attested"):
        assert (started in before, started in after) == (False, True), started
    assert " login: " not in before, "of the node it may come after the end of the demo, which waits for Ready alone"
    _declared(page, json.loads((machine / "node-1.discovered.json").read_text()))
    assert re.search(r"Ready +observed +\d+\.\d s +\d+\.\d s .*the cluster may use it", page)
    assert re.search(r"Pod +says from inside: hello from inside Pod hello-\S+ on node-1: Linux 6\.1\.", page)
    assert "machine approve" not in page
    assert "rollout" not in page
    assert "\n  make demo KEEP=1 DISCOVER=1\n" in page


def _declared(page: str, seen: dict[str, object]) -> None:
    """It said what QEMU was told to give it, and by that alone it is declared."""
    said, mac = seen["hardware"], seen["mac"]
    assert isinstance(said, dict)
    assert said["cpu"]["count"] == NODE_CPUS
    assert said["firmware"]["serial"] == "LAB-1"
    assert [(card["mac"], card["driver"], card["link"]) for card in said["cards"]] == [(mac, "virtio_net", True)]
    uuid, ek = said["firmware"]["uuid"], said["tpm"]["ek_sha256"]
    assert re.search(
        rf"==> the operator runs: netboot machine declare {mac} --name node-1 --profile default "
        rf"--seen {seen['seen']} --print\n"
        r"(?:    .*\n)*"
        rf"    machines:\n"
        rf"    - name: node-1\n"
        rf"      match:\n"
        rf"        macs:\n"
        rf"        - '?{mac}'?\n"
        rf"        uuid: {uuid}\n"
        rf"        serial: LAB-1\n"
        rf"        ek_sha256: {ek}\n"
        r"      profile: default\n"
        r"    and puts that into the inventory, with the node's address \S+\n"
        r"    node-1 reboots by itself\n"
        r"    done in .*\n",
        page,
    )
    assert f"endorsement key {ek[:16]}…, declared with the machine" in page
