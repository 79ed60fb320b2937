"""`make demo STATE=kubernetes`: three replicas, whose state is objects; the first is killed while the machine works."""

import re
import sys
from pathlib import Path

import pytest

from lab.processes import finish, start
from lab.work import ROOT
from tests.boot.data_centre import BuiltImage
from tests.boot.node_data_centre import READY_SECONDS

pytestmark = pytest.mark.boot
PATCHED = (
    "    as netboot says, the operator runs: kubectl patch -n netboot enrolments.netboot.dev/node-1 --type=merge -p "
)
LED = "".join(f"    (?:{{0}}) leads {kind}\n" for kind in ("approver", "nodes", "rollouts", "shipper"))


def test_of_three_replicas_one_is_killed_and_the_others_bring_the_machine_to_another_image(
    built_node: BuiltImage, folder: Path
) -> None:
    """After the shared image, so that the build comes from its cache."""
    assert built_node.digest
    argv = [sys.executable, "-m", "lab.demo", "--state", "kubernetes"]
    running = start("demo", argv, folder / "demo.log", cwd=ROOT)
    try:
        assert running.process.wait(4 * READY_SECONDS) == 0, running.output.text[-4000:]
    finally:
        finish(running)
    page = running.output.text
    assert "    Channel, Profile, Machine, Enrolment are objects now\n" in page
    three = LED.format("alpha|beta|gamma")
    assert re.search(rf"==> starting three replicas, alpha, beta, gamma: netboot serve\n{three}", page)
    window, approval = re.findall(rf"(?m)^{re.escape(PATCHED)}(.+): enrolment\.netboot\.dev/node-1 patched$", page)
    assert '"window": {"kind": "enrol"' in window
    assert '"spec": {"ek_sha256": "' in approval
    two = LED.format("beta|gamma")
    assert re.search(rf"==> alpha is killed \(kill -9\), and DHCP names beta in its place\n{two}", page)
    heads = re.findall(r"node-1 (?:was|rebooted) .*; \d+ seconds later it is a Ready node(?: again)? ", page)
    assert [head.split(";")[0] for head in heads] == [
        "node-1 was a heap of firmware",
        "node-1 rebooted itself for its rollout",
    ]
    assert page.count("    the Pod says: hello from inside") == 2
    _, objects = page.split("==> the operator runs: kubectl get machines,rollouts,enrolments -n netboot\n")
    assert re.search(r"machine\.netboot\.dev/node-1 +InService +True +InService +[0-9a-f]{12} +default ", objects)
    image = "debian-12-node-demo-second"
    assert re.search(rf"rollout\.netboot\.dev/stable +{image} +rollout 1 +1 +complete +{image} +1 +1 ", objects)
    assert re.search(r"enrolment\.netboot\.dev/node-1 +([0-9a-f]{64}) +\1 ", objects)
