"""What the test of a node does inside of it, through the lab's Pod, which may do there what root may."""

import re

from lab.kube.kubectl import POD, UNCHECKED, hear_hello, start_hello
from tests.boot.node_data_centre import NodeDataCentre
from tests.processes import wait_for

POD_SECONDS, HEALTH_SECONDS = 240.0, 240.0
EVICTED_SECONDS = 180.0
BREAK_GLASS = ("--as=admin", "--as-group=system:masters", "--as-group=netboot:break-glass")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
REPORTS = ("netboot-health.timer", "netboot-health.service")
OFTEN = "/run/systemd/system/netboot-health.timer.d"
REFUSED = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
"""By a kubelet, of a Pod that is bound to its Node."""
COLLECTOR = '"username":"system:serviceaccount:kube-system:pod-garbage-collector"'
"""It acts where a machine is so slow that its Pods have no Node for 40 s, and deletes them before that is back."""
TIMER = "[Timer]\nOnActiveSec=\nOnActiveSec=1\nOnUnitInactiveSec=5\nRandomizedDelaySec=0\nAccuracySec=1\n"


def let_in(here: NodeDataCentre) -> None:
    """Somebody breaks the glass (docs/gate.md), and opens the gate by hand."""
    here.kubectl(*BREAK_GLASS, "annotate", "node", here.hardware.name, "netboot.dev/gate=manual")
    here.kubectl(*BREAK_GLASS, "taint", "nodes", here.hardware.name, f"{UNCHECKED}-")


def hear_hello_once_open(here: NodeDataCentre) -> str:
    """What the lab's Pod prints, asked for again, as who owns a Pod does, where it was refused or evicted by who had
    not heard yet that the gate is open (flaw 516)."""

    def started() -> bool:
        pod = here.kubectl.get("pod", POD)
        if pod is not None and pod["status"].get("reason") == "TaintToleration":
            here.kubectl("delete", "pod", POD)
            pod = None
        if pod is None:
            start_hello(here.kubectl, of_host=True)
            return False
        return pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]

    wait_for(started, POD_SECONDS, 0.5)
    return hear_hello(here.kubectl, POD_SECONDS)


def inside(here: NodeDataCentre, *argv: str) -> str:
    """What a command prints that root runs on the node."""
    return here.kubectl("exec", POD, "--", "/bin/busybox", "nsenter", "-t", "1", "-m", "--", *argv)


def reports_come_often(here: NodeDataCentre) -> None:
    """Its timer waits for seconds from now on, no longer for minutes."""
    write = f"mkdir -p {OFTEN} && printf '{TIMER}' >{OFTEN}/often.conf"
    inside(here, "sh", "-c", f"{write} && systemctl daemon-reload && systemctl restart {REPORTS[0]}")


def it_is_said_that_its_reports_have_ended_until_they_come_again(here: NodeDataCentre) -> None:
    """What reports is stopped, all else of the node goes on: one sentence, the same in API, command line and Event."""
    another_report_comes(here)
    another_report_comes(here)
    inside(here, "systemctl", "stop", *REPORTS)
    here.declare_anew("  deadlines: {ReportStale: 20s}\n")
    becomes(here, "ReportStale")
    _, said = healthy(here)
    words = "its checks said fail at MOMENT, and no report came in 20s (profile default) since"
    assert MOMENT.sub("MOMENT", said) == words
    assert said in here.site.netboot("machine", "show", here.hardware.name)
    about = f"reason=ReportStale,involvedObject.kind=Node,involvedObject.name={here.hardware.name}"
    wait_for(lambda: events(here, about) == [said], HEALTH_SECONDS, 0.5)
    inside(here, "systemctl", "start", "--no-block", *REPORTS)
    becomes(here, "ChecksFailed")


def another_report_comes(here: NodeDataCentre) -> None:
    """Than the one that is known now."""
    path = f"/v1/machines/{here.hardware.name}/health"
    before = here.service.api(path)["checked"]["at"]
    here.service.wait_until(
        "another report comes", lambda: here.service.api(path)["checked"]["at"] != before, HEALTH_SECONDS
    )


def becomes(here: NodeDataCentre, reason: str) -> None:
    """Wait until its condition `Healthy` has this reason."""
    here.service.wait_until(f"Healthy is {reason}", lambda: healthy(here)[0] == reason, HEALTH_SECONDS)


def healthy(here: NodeDataCentre) -> tuple[str, str]:
    """Reason and sentence of its condition `Healthy`."""
    conditions = here.service.api(f"/v1/machines/{here.hardware.name}")["conditions"]
    (found,) = [one for one in conditions if one["type"] == "Healthy"]
    return found["reason"], found["message"]


def events(here: NodeDataCentre, about: str) -> list[str]:
    """What the Events say that these fields select."""
    found = here.kubectl.get("events", "--field-selector", about)
    return [one["message"] for one in found["items"]] if found is not None else []


def uid_of_pod(here: NodeDataCentre) -> str:
    """Of the lab's Pod that there is now."""
    return str(here.kubectl.get("pod", POD)["metadata"]["uid"])


def no_pod_of_the_boot_before_started(here: NodeDataCentre, old: str) -> None:
    """The Pod that was bound to its Node when the power was cut is refused and evicted, for the Node is shut; one that
    waits for the gate runs once that is open. containerd, which says what it begins, was told to begin this one."""
    wait_for(lambda: here.kubectl.get("pod", POD) is None, EVICTED_SECONDS, 0.5)
    start_hello(here.kubectl, of_host=True)
    let_in(here)
    hear_hello_once_open(here)
    said = inside(here, "journalctl", "--unit=containerd", "--output=cat")
    begun = re.findall(rf"RunPodSandbox for &PodSandboxMetadata{{Name:{POD},Uid:([^,]+),", said)
    assert uid_of_pod(here) in begun
    assert old not in said
    refused = events(here, f"reason=TaintToleration,involvedObject.uid={old}")
    assert refused == [REFUSED] or COLLECTOR in (here.cluster.folder / "audit.log").read_text()
