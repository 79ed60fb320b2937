"""Machines that are held or in quarantine, and would rather not be: neither a reboot nor their own word helps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import requests

from netboot.join.ports import MARK
from netboot.join.taints import taints_of
from netboot.machines.values import Machine
from tests import soft_tpm
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import NODES, LiveSite, failed
from tests.processes import wait_for

pytestmark = pytest.mark.cluster

HELD = "netboot.dev/held=Held:NoSchedule"


def order(site: LiveSite, *arguments: str) -> str:
    done = site.service.netboot("machine", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def registered(site: LiveSite, session: requests.Session, name: str, taints: tuple[str, ...]) -> requests.Response:
    """A kubelet registers its node with these taints."""
    split = [(*taint.rpartition(":")[0].partition("="), taint.rpartition(":")[2]) for taint in taints]
    listed = [{"key": key, "value": value, "effect": effect} for key, _, value, effect in split]
    metadata = {"name": name, "labels": MARK}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": listed}}
    return session.post(site.cluster.url + NODES, json=body, timeout=60)


def own(chassis: Chassis, *, held: bool) -> tuple[str, ...]:
    """The taints that its Lease is to name."""
    return taints_of(Machine.model_validate(chassis.entry()), "tpm", held=held)


def test_a_machine_that_is_held_cannot_register_without_the_taint_however_often_it_reboots(site: LiveSite) -> None:
    chassis = site.fresh()
    assert order(site, "hold", chassis.name, "--reason", "DIMM 4").startswith(f"{chassis.name} is held until it is")
    with_it, without = own(chassis, held=True), own(chassis, held=False)
    assert set(with_it) - set(without) == {HELD}
    for _ in range(2):
        said, session = site.join(site.power_on(chassis))
        assert said["taints"] == list(with_it)
        wait_for(partial(asked_for_taints, site, session, chassis, without))
        made = registered(site, session, chassis.name, with_it)
        assert made.status_code == 201, made.text
        shown = site.admin("GET", f"{NODES}/{chassis.name}").json()["spec"]["taints"]
        assert {"key": "netboot.dev/held", "value": "Held", "effect": "NoSchedule"} in shown
    order(site, "unhold", chassis.name)
    said, session = site.join(site.power_on(chassis))
    assert said["taints"] == list(without)


def asked_for_taints(site: LiveSite, session: requests.Session, chassis: Chassis, taints: tuple[str, ...]) -> bool:
    """Whether admission has heard of the Lease, and refuses who leaves one out; nobody registers so before."""
    answer = registered(site, session, chassis.name, taints)
    assert answer.status_code != 201, answer.text
    return "must register with the taints" in answer.text


def test_a_hold_reaches_the_node_that_is_there_and_leaves_it_with_the_hold(site: LiveSite) -> None:
    chassis = site.fresh()
    joined(site, chassis)
    assert values(site, chassis.name) == []
    there_and_back(site, chassis.name)


def test_a_node_that_registered_held_is_let_go_with_the_hold(site: LiveSite) -> None:
    chassis = site.fresh()
    order(site, "hold", chassis.name, "--reason", "DIMM 4")
    joined(site, chassis)
    assert values(site, chassis.name) == ["Held"]
    there_and_back(site, chassis.name)


def joined(site: LiveSite, chassis: Chassis) -> None:
    """It has a Node with the taints that it was told."""
    said, session = site.join(site.power_on(chassis))
    made = registered(site, session, chassis.name, tuple(said["taints"]))
    wait_for(lambda: made.status_code == 201 or registered(site, session, chassis.name, said["taints"]).ok, 180)


def there_and_back(site: LiveSite, name: str) -> None:
    for act, stands in (("hold", "Held"), ("quarantine", "Quarantined"), ("readmit", "Held"), ("unhold", "")):
        order(site, act, name, "--reason", "DIMM 4")
        wait_for(partial(has, site, name, stands), 180)


def has(site: LiveSite, name: str, value: str) -> bool:
    return values(site, name) == ([value] if value else [])


def values(site: LiveSite, name: str) -> list[str]:
    """Of the taints `netboot.dev/held` that its Node has."""
    taints = site.admin("GET", f"{NODES}/{name}").json()["spec"].get("taints", [])
    return [taint.get("value", "") for taint in taints if taint["key"] == "netboot.dev/held"]


def test_a_cordon_is_a_hold_when_its_node_goes_with_the_next_boot(site: LiveSite) -> None:
    chassis = site.fresh()
    joined(site, chassis)
    name = chassis.name
    wait_for(partial(cordoned, site, name), 180)
    uid = site.admin("GET", f"{NODES}/{name}").json()["metadata"]["uid"]
    machine = site.power_on(chassis)
    first = site.attest(machine, site.hello(machine).body)
    if first.status != 200:  # unless the controllers were quicker
        assert failed(first, 503, "cordoned").startswith(f"the Node {name} is cordoned, and goes when {name} is held")
        assert site.admin("GET", f"{NODES}/{name}").json()["metadata"]["uid"] == uid
    said: Any = wait_for(lambda: again(site, machine), 180)
    assert HELD in said["taints"]
    assert site.admin("GET", f"{NODES}/{name}").status_code == 404
    shown = order(site, "holds")
    assert f"the Node {name} was cordoned when it was deleted" in shown
    assert "python-requests, " in shown, "who did it, by what the API server noted"
    order(site, "unhold", name)
    said, _ = site.join(site.power_on(chassis))
    assert HELD not in said["taints"]


def cordoned(site: LiveSite, name: str) -> bool:
    """Somebody cordons it; False: somebody else wrote meanwhile."""
    node = site.admin("GET", f"{NODES}/{name}").json()
    node["spec"]["unschedulable"] = True
    return bool(site.admin("PUT", f"{NODES}/{name}", node).status_code == 200)


def again(site: LiveSite, machine: soft_tpm.Machine) -> Any:
    """The answer to a whole exchange; None: it is to come back."""
    said = site.attest(machine, site.hello(machine).body)
    return said.body if said.status == 200 else None


def test_a_machine_in_quarantine_gets_no_token_and_is_not_told_why(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    hello = site.hello(machine)
    order(site, "quarantine", chassis.name, "--reason", "stolen credentials")
    before = site.tokens()
    words = failed(site.attest(machine, hello.body), 403, "refused")
    name = chassis.name
    assert words == f"{name} is in quarantine: `netboot machine readmit {name}` lets it join again"
    again = site.power_on(chassis)
    assert failed(site.attest(again, site.hello(again).body), 403, "refused") == words
    assert site.tokens() <= before  # older ones may expire meanwhile
    order(site, "readmit", name, "--reason", "a mistake")
    assert site.prove(again)["node_name"] == name


def test_where_it_cannot_be_told_who_is_held_nobody_joins_and_all_do_once_it_can(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    hello = site.hello(machine)
    with away(site):
        said: Any = site.attest(machine, hello.body)
        assert (said.status, said.body["error"]["code"]) == (503, "state-unavailable"), said
        assert said.headers["Retry-After"] == "5"
        wait_for(lambda: not site.service.readyz()["details"]["join-0"]["ok"])
    said = site.attest(machine, hello.body)
    if said.status != 200:  # its hello is good for two minutes, which a busy machine may have used up
        failed(said, 410, "stale")
        site.prove(machine)


@contextmanager
def away(site: LiveSite) -> Iterator[None]:
    """The file is gone for a while."""
    file = site.service.config.data / "intents.db"
    file.rename(file.with_name("aside"))
    try:
        yield
    finally:
        file.with_name("aside").rename(file)
