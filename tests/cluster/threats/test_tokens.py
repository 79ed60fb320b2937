"""Tokens and certificate requests in wrong hands, a machine that was retired, and what a boot before has left."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from netboot.join.ports import MARK, Csr
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import NODES, LiveSite
from tests.kubelets import THIEF, client, pem, renewal, serving
from tests.processes import wait_for
from tests.soft_tpm import Machine, new_key

pytestmark = pytest.mark.cluster
UNCHECKED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
SUBJECT = "the subject must be exactly O=system:nodes and CN=system:node:<name>"
USAGES = "the usages must be digital signature and client auth, and at most key encipherment beside"


def ours(name: str, machine: Machine, **more: Any) -> Csr:
    """As the machine's own agent asks."""
    return client(name, key=machine.key, **more)


BENT: dict[str, tuple[Callable[[str, Machine], Csr], str, str]] = {
    "a stolen token with another key": (
        lambda name, _machine: client(name, key=THIEF),
        "NetbootNotBound",
        "the token was not issued for node {name} with this key",
    ),
    "a token for one machine and a request for another": (
        lambda _name, machine: ours("k-40", machine),
        "NetbootNotBound",
        "the token was not issued for node k-40 with this key",
    ),
    "alternative names": (
        lambda name, machine: ours(name, machine, pem=pem(name, machine.key, sans=[name])),
        "NetbootMalformed",
        "a node's client certificate has no alternative names and no other extensions",
    ),
    "extra organisations": (
        lambda name, machine: ours(
            name, machine, pem=pem(name, machine.key, organisations=["system:nodes", "system:masters"])
        ),
        "NetbootMalformed",
        SUBJECT,
    ),
    "two PEM blocks": (
        lambda name, machine: ours(name, machine, pem=pem(name, machine.key) + pem("k-40", THIEF)),
        "NetbootMalformed",
        "must be exactly one PEM block of a certificate request",
    ),
    "wrong usages": (
        lambda name, machine: ours(name, machine, usages=("digital signature", "client auth", "server auth")),
        "NetbootMalformed",
        USAGES,
    ),
    "a year": (
        lambda name, machine: ours(name, machine, expiration_seconds=31_536_000),
        "NetbootMalformed",
        "expirationSeconds must be between 600 and 86400, it is 31536000",
    ),
}


@pytest.mark.parametrize("what", BENT, ids=lambda what: what.replace(" ", "-"))
def test_a_bent_request_is_denied_and_the_owner_still_joins(site: LiveSite, what: str) -> None:
    bend, reason, words = BENT[what]
    chassis = site.fresh()
    machine = site.power_on(chassis)
    said = site.prove(machine)
    session = site.bearer(said["token"])
    name = site.ask(session, bend(chassis.name, machine))
    assert site.decision(name) == ("Denied", reason, words.format(name=chassis.name))
    assert "CSRApproved" not in site.phases(machine.boot)
    site.certificate(site.ask(session, ours(chassis.name, machine)))


def test_a_token_replayed_after_use(site: LiveSite) -> None:
    """Deleting it is not at once: the apiserver believes it for ten seconds more. The key is what binds."""
    chassis = site.fresh()
    wait_for(lambda: replayed(site, chassis))


def replayed(site: LiveSite, chassis: Chassis) -> bool:
    """The machine boots, and joins; then two requests of others with its token, which is deleted: each is refused, at
    once or by its decision. False: not both came within the ten seconds, on a busy machine."""
    machine = site.power_on(chassis)
    said = site.prove(machine)
    session = site.bearer(said["token"])
    site.certificate(site.ask(session, ours(chassis.name, machine)))

    def deleted() -> bool:
        session.get(f"{site.cluster.url}/api", timeout=60)  # the ten seconds begin anew when they are over
        return not site.has_token(said["token"])

    wait_for(deleted)
    # Both before either is decided: most of the ten seconds may have gone by.
    csrs = (client(chassis.name, key=THIEF), client("k-40", key=THIEF))
    answers = {name: answer.status_code for name, answer in (site.asked(session, csr) for csr in csrs)}
    assert set(answers.values()) <= {201, 401}
    taken = [name for name, status in answers.items() if status == 201]
    for name in taken:
        assert site.decision(name)[:2] == ("Denied", "NetbootNotBound")
    return len(taken) == len(csrs)


def served(site: LiveSite, session: Any, chassis: Chassis) -> None:
    """The kubelet has its serving certificate: the approver knows how long the cluster's live."""
    site.certificate(site.ask(session, serving(chassis.name, [chassis.name, chassis.address])))


def test_a_key_stolen_in_the_boot_before_renews_nothing(site: LiveSite) -> None:
    chassis = site.fresh()
    _, stolen = site.join(site.power_on(chassis))
    served(site, stolen, chassis)
    mine = [renewal(chassis.name, pem=pem(chassis.name, new_key())), serving(chassis.name, [chassis.name])]
    assert site.decision(site.ask(stolen, mine[0]))[:2] == ("Approved", "NetbootInService")
    _, session = site.join(site.power_on(chassis))
    for csr in mine:
        assert site.decision(site.ask(stolen, csr))[:2] == ("Denied", "NetbootOtherBoot")
        assert site.decision(site.ask(session, csr))[0] == "Approved"


def test_a_retired_machine_s_certificate_is_not_renewed(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    _, session = site.join(machine)
    served(site, session, chassis)
    first = site.ask(session, renewal(chassis.name, pem=pem(chassis.name, new_key())))
    assert site.decision(first)[:2] == ("Approved", "NetbootInService")
    assert site.service.netboot("machine", "retire", chassis.name, "--reason", "sold").returncode == 0
    words = f"machine {chassis.name} is retired; `netboot machine approve {chassis.name}` brings it back"
    again = site.ask(session, renewal(chassis.name, pem=pem(chassis.name, new_key())))
    assert site.decision(again) == ("Denied", "NetbootNotAllowed", f"node {chassis.name} may not renew: {words}")
    again = site.ask(session, serving(chassis.name, [chassis.name, chassis.address]))
    assert site.decision(again)[:2] == ("Denied", "NetbootNotAllowed")
    assert site.hello(site.power_on(chassis)).status == 403


def node_of(name: str, *taints: dict[str, str]) -> dict[str, Any]:
    """As a kubelet registers."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": MARK},
        "spec": {"taints": list(taints)},
    }


def test_a_node_object_left_by_the_last_boot(site: LiveSite) -> None:
    """A kubelet adopts a Node that is there: it is gone before there is a token, and the next one is tainted."""
    chassis = site.fresh()
    _, session = site.join(site.power_on(chassis))
    nodes = f"{site.cluster.url}{NODES}"
    made = session.post(nodes, json=node_of(chassis.name, UNCHECKED), timeout=60)
    assert made.status_code == 201, made.text
    uid = made.json()["metadata"]["uid"]
    # An operator has looked at it. Without a resourceVersion: controllers of the cluster write to a new Node as well.
    metadata = {key: content for key, content in made.json()["metadata"].items() if key != "resourceVersion"}
    untainted = made.json() | {"metadata": metadata, "spec": {}}
    assert site.break_glass("PUT", f"{NODES}/{chassis.name}", untainted).status_code == 200

    machine = site.power_on(chassis)
    hello = site.hello(machine)
    assert site.admin("GET", f"{NODES}/{chassis.name}").json()["metadata"]["uid"] == uid, "hello alters nothing"
    said = site.attest(machine, hello.body).body
    assert site.admin("GET", f"{NODES}/{chassis.name}").status_code == 404
    assert said["taints"] == ["netboot.dev/unchecked:NoExecute"]
    made_then = wait_for(lambda: tokens_after_deleting(site, chassis.name))  # it is written after what it says
    assert [one["responseStatus"]["code"] for one in made_then] == [201], "the token was made after that, and only then"

    bearer = site.bearer(said["token"])
    session = site.as_node(site.certificate(site.ask(bearer, ours(chassis.name, machine))), machine.key)
    bare = session.post(nodes, json=node_of(chassis.name), timeout=60)
    assert bare.status_code in (403, 422)
    assert "netboot.dev/unchecked" in bare.text
    made = session.post(nodes, json=node_of(chassis.name, UNCHECKED), timeout=60)
    assert made.status_code == 201, made.text
    assert UNCHECKED in made.json()["spec"]["taints"]
    assert made.json()["metadata"]["uid"] != uid


def by_issuer(site: LiveSite) -> list[dict[str, Any]]:
    """What the issuer's account has done, in order."""
    whole, _, _ = (site.cluster.folder / "audit.log").read_text().rpartition("\n")  # what comes then is being written
    lines = whole.splitlines()
    entries = (json.loads(line) for line in lines if "netboot-issuer" in line)
    issuer = "system:serviceaccount:netboot:netboot-issuer"
    return [one for one in entries if one["user"]["username"] == issuer and "objectRef" in one]


def tokens_after_deleting(site: LiveSite, node: str) -> list[dict[str, Any]]:
    """The Secrets that were made since this Node was deleted; none: it is not on record yet."""
    done = by_issuer(site)
    deleted = (place for place, one in enumerate(done) if one["verb"] == "delete" and about(one, node))
    after = done[next(deleted, len(done)) :]
    return [one for one in after if (one["verb"], one["objectRef"]["resource"]) == ("create", "secrets")]


def about(entry: dict[str, Any], name: str) -> bool:
    """Whether it is about this Node."""
    return (entry["objectRef"]["resource"], entry["objectRef"].get("name")) == ("nodes", name)
