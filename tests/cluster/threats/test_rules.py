"""Rules of the lifecycle that are about many machines or about what we cannot see, before a real control plane:
docs/lifecycle-rules.md names them. Rollouts here are `--on-next-boot`; one that drains is in `test_renewals.py`."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from images.store.store import Store
from netboot.status.controllers import LifecycleStatus
from netboot.stores.status import StatusFolder
from tests.cluster.threats.live_site import LiveSite
from tests.cluster.threats.test_gate import CLOSED, Node, said
from tests.cluster.threats.test_outages import apiserver_down
from tests.cluster.threats.test_renewals import alone, nodes_of
from tests.kubelets import condition
from tests.processes import wait_for
from tests.sites import KUBELET, add_image

pytestmark = pytest.mark.cluster


def reason(site: LiveSite, name: str, kind: str) -> str:
    conditions = site.service.api(f"/v1/machines/{name}")["conditions"] or ()
    return next((str(one["reason"]) for one in conditions if one["type"] == kind), "")


def up(node: Node) -> None:
    """Its Node is Ready, and its checks are in order."""
    body = said("True", node.credential)
    body["status"]["conditions"].append(condition("Ready"))
    assert node.patch(node.session, body).status_code == 200


def serves(*nodes: Node) -> None:
    """They are in service, in the boots that they are in."""
    for node in nodes:
        up(node)
    for node in nodes:
        wait_for(partial(is_in_service, node), 180)


def is_in_service(node: Node) -> bool:
    current = node.site.service.api(f"/v1/machines/{node.name}")["current"]
    return bool(
        current and current["boot"] == node.boot_id and reason(node.site, node.name, "InService") == "InService"
    )


def channel_of(site: LiveSite) -> str:
    """Where the channel points to."""
    return str(site.service.api("/v1/channels/ring")["image"])


def image(site: LiveSite, name: str) -> str:
    """What it would boot now."""
    return str(site.service.api(f"/v1/machines/{name}/explain")["decision"]["image"]["digest"])


class Ring:
    """Three machines in two racks that are alone in their channel, in service; no other machine counts."""

    def __init__(self, site: LiveSite) -> None:
        alone(site)
        self.site, self.nodes = site, {}
        for node in [Node(site, kind="ring") for _ in range(3)]:
            self.nodes[node.name] = node
        wait_for(self.is_alone, 180)

    def is_alone(self) -> bool:
        others = [one for name, one in nodes_of(self.site).items() if name not in self.nodes]
        return all(any(t["key"] == "netboot.dev/held" for t in one["spec"].get("taints", ())) for one in others)

    def start(self, name: str) -> tuple[int, str]:
        """A rollout of another image; its number, and that image."""
        for one in self.site.service.api("/v1/rollouts")["rollouts"]:  # a test that failed may have left one
            if one["channel"] == "ring" and one["state"] in ("running", "paused"):
                self.undone(one["number"])
        new = add_image(self.site.service.config, name=name, salt=name, documents=KUBELET)
        answer = self.ask(name)
        assert answer.status_code == 200, answer.text
        return answer.json()["number"], new

    def ask(self, name: str) -> Any:
        strategy = {"canary": 2, "max_unavailable": 2, "bake": "0s"}
        return self.site.service.order("/v1/rollouts", channel="ring", image=name, strategy=strategy, on_next_boot=True)

    def rollout(self, number: int) -> Any:
        return self.site.service.api(f"/v1/rollouts/{number}")

    def member(self, number: int, name: str) -> Any:
        return next((one for one in self.rollout(number)["members"] if one["machine"] == name), None)

    def is_at(self, number: int, name: str, state: str, tries: int) -> bool:
        one = self.member(number, name)
        return (one["state"], one["tries"]) == (state, tries)

    def canaries(self, number: int) -> list[str]:
        """Once there are two, and the boot server knows it."""
        wait_for(lambda: len(self.rollout(number)["to_reboot"]) == 2, 180)
        self.site.boot_server_knows()
        return list(self.rollout(number)["to_reboot"])

    def undone(self, number: int) -> None:
        assert self.site.service.order(f"/v1/rollouts/{number}/undo").status_code == 200
        wait_for(lambda: self.rollout(number)["state"] == "undone", 180)


@contextmanager
def beating(site: LiveSite, *nodes: Node) -> Iterator[None]:
    """All say now and then that they are Ready: a Node that does not for some fifty seconds is not."""
    session, ends = site._session(), threading.Event()
    session.cert = (str(site.cluster.folder / "admin.crt"), str(site.cluster.folder / "admin.key"))

    def beat() -> None:
        while not ends.wait(10.0):
            with suppress(OSError):  # where the API server is gone nobody can say it
                for node in nodes:
                    node.patch(session, {"status": {"conditions": [condition("Ready")]}})

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(60)


@pytest.fixture(scope="module")
def ring(site: LiveSite) -> Iterator[Ring]:
    ring = Ring(site)
    with beating(site, *ring.nodes.values()):
        serves(*ring.nodes.values())
        yield ring


def test_a_mistake_that_reaches_every_node_closes_one_and_says_so(site: LiveSite, ring: Ring) -> None:
    """L6: closing has a budget, and beyond it nothing closes."""
    nodes = list(ring.nodes.values())
    withheld = 'netboot_gate_withheld_nodes{cluster="default"} 2.0'
    open_ = "stays open, for as many as may be are closed: it is False"
    before = site.service.log.count(open_)  # of other tests
    for node in nodes:
        assert node.say("False").status_code == 200
    # Closing is tried again where somebody else wrote to the Node meanwhile.
    wait_for(lambda: any(CLOSED in node.taints() for node in nodes), 180)
    wait_for(lambda: withheld in site.service.text("/metrics"), 180)
    assert sorted(node.taints() for node in nodes) == [[], [], [CLOSED]]
    assert site.service.log.count(open_) == before + 2
    serves(*nodes)
    wait_for(lambda: withheld.replace("2.0", "0.0") in site.service.text("/metrics"), 180)


def test_canaries_are_of_two_racks_one_that_fails_is_replaced_and_two_prove_the_image(
    site: LiveSite, ring: Ring
) -> None:
    """L13. One fails that comes back with another image, twice: with scripts from before."""
    old = image(site, next(iter(ring.nodes)))
    before = {name: [site.power_on(node.chassis) for _ in range(2)] for name, node in ring.nodes.items()}
    number, new = ring.start("ring-13")
    canaries = ring.canaries(number)
    assert {ring.member(number, name)["rack"] for name in canaries} == {"r2", "r3"}
    (only,) = [name for name in canaries if ring.member(number, name)["rack"] == "r2"]
    (fails,) = set(canaries) - {only}
    (other,) = ring.nodes.keys() - set(canaries)
    assert (ring.member(number, other)["state"], image(site, other)) == ("waiting", old)
    for machine, tried in zip(before[fails], (("assigned", 1), ("failed", 1)), strict=True):
        ring.nodes[fails].boot(machine=machine)
        serves(ring.nodes[fails])
        wait_for(partial(ring.is_at, number, fails, *tried), 180)
    wait_for(lambda: ring.member(number, other)["state"] == "assigned", 180)
    assert ring.member(number, other)["canary"] is True
    ring.nodes[only].boot()
    serves(ring.nodes[only])
    wait_for(lambda: ring.member(number, only)["state"] == "done", 180)
    assert (ring.rollout(number)["state"], ring.rollout(number)["rolling"]) == ("running", False)
    wait_for(lambda: image(site, other) == new, 180)
    site.boot_server_knows()
    ring.nodes[other].boot()
    serves(ring.nodes[other])
    wait_for(lambda: ring.rollout(number)["state"] == "complete", 180)
    assert ring.rollout(number)["why"] == "2 done, 1 failed"
    assert image(site, fails) == old


def test_members_are_those_of_the_start_and_a_pinned_channel_pauses_it(site: LiveSite, ring: Ring) -> None:
    """L14: who is taken to another channel leaves, who comes boots what is proven, and one goes on at a time."""
    had = {name: image(site, name) for name in ring.nodes}
    proven = channel_of(site)
    number, new = ring.start("ring-14")
    leaver, stays = ring.canaries(number)
    assert {name: ring.member(number, name)["previous"] for name in ring.nodes} == had
    wait_for(lambda: image(site, leaver) == new, 180)
    refused = ring.ask("ring-14")
    assert refused.status_code == 409
    assert "is running: one at a time; let it end, or undo it" in refused.text
    with site.inventory() as (declared, put):
        machines = {one["name"]: one for one in declared["machines"]}
        machines[leaver]["profile"], machines["next-75"]["profile"] = "compute", "ring"
        put()
        wait_for(lambda: ring.member(number, leaver)["state"] == "left", 180)
        assert ring.member(number, leaver)["why"] == "it uses channel stable now"
        assert ring.member(number, "next-75") is None
        assert (image(site, "next-75"), image(site, stays)) == (proven, new)
        (channel,) = [one for one in declared["channels"] if one["name"] == "ring"]
        channel["image"] = had[stays]
        put()
        wait_for(lambda: ring.rollout(number)["state"] == "paused", 180)
        assert "pinned" in ring.rollout(number)["why"]
        refused = ring.ask("ring-14")
        assert (refused.status_code, "channel ring is pinned to " in refused.text) == (409, True)
    wait_for(lambda: "is paused: one at a time" in ring.ask("ring-14").text, 180)
    ring.undone(number)


def test_a_class_may_say_report_and_its_open_node_is_not_tainted(site: LiveSite) -> None:
    """L19."""
    node, ordinary = Node(site, kind="says"), Node(site)
    for one in (node, ordinary):
        assert one.say().status_code == 200
        one.becomes()
    assert node.say("False").status_code == 200
    assert ordinary.say("False").status_code == 200
    ordinary.becomes(CLOSED)
    assert node.taints() == [], "the gate has had its time"
    (healthy,) = [one for one in node.get()["status"]["conditions"] if one["type"] == "netboot.dev/Healthy"]
    assert healthy["status"] == "False", "what failed is said"
    assert ordinary.say().status_code == 200
    ordinary.becomes()  # a Node that stays closed would use up the budget of later tests


def test_what_is_wanted_outlives_the_loss_of_all_that_was_observed(site: LiveSite, ring: Ring) -> None:
    """L8: after the others of the ring, for what was known of boots is gone then."""
    node, wanted = Node(site), {("netboot.dev/drain", "Drained"), ("netboot.dev/held", "Held")}
    with beating(site, node):  # a drain goes on only on a Node that is Ready
        serves(node)
        for act in ("drain", "hold"):
            done = site.service.order(f"/v1/machines/{node.name}/{act}", reason="DIMM 4")
            assert done.status_code == 200, done.text
        wait_for(lambda: wanted <= {taint[:2] for taint in node.taints()}, 180)
    before = channel_of(site)
    number, new = ring.start("ring-8")
    canary = ring.canaries(number)[0]
    wait_for(lambda: image(site, canary) == new, 180)
    members = ring.rollout(number)["members"]
    data = site.service.config.data
    for name in ("state", "conditions", "history"):
        for file in data.glob(f"{name}.db*"):
            file.unlink(missing_ok=True)  # SQLite takes some away itself
    for process in ("controllers", "nodes-default"):
        pid = site.service.processes()[process]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(partial(site.restarted, process, pid), 180)
    assert wanted <= {taint[:2] for taint in node.taints()}
    assert ring.rollout(number)["members"] == members
    assert image(site, canary) == new
    wait_for(lambda: {before, new} <= Store(site.service.config.store).references()["rollouts"], 180)
    told, _ = site.join(site.power_on(node.chassis))
    assert "netboot.dev/held=Held:NoSchedule" in told["taints"]


def test_nobody_is_late_while_the_api_server_is_gone_and_is_once_it_is_back(site: LiveSite) -> None:
    """L11: one waits for what the cluster would show, one for what machines report, with a longer deadline."""
    waits, hangs = site.fresh("late"), site.fresh("late")
    folder = StatusFolder(site.service.config.data / "status")

    def stands_still() -> bool:
        found = folder.read("lifecycle", LifecycleStatus)
        return found is not None and "nodes/default/prompt" in found.unseen

    machine, other = site.power_on(waits), site.service.boot(hangs.mac)
    with apiserver_down(site):
        wait_for(stands_still, 180)
        assert site.service.post(machine.boot, waits.mac, "Booted") == 204
        assert site.service.post(other, hangs.mac, "InitrdStarted") == 204
        wait_for(lambda: reason(site, hangs.name, "Booted") == "Stuck", 180)
        assert reason(site, waits.name, "Joined") == "Joining"
    wait_for(lambda: reason(site, waits.name, "Joined") == "Stuck", 180)
    wait_for(partial(site.proven, machine), 180)
    wait_for(lambda: reason(site, waits.name, "Joined") == "Joining", 180)
