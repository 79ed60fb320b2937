"""A site that has one of everything that the management API knows, and what a request has to name to reach it: for
tests that draw requests from the API's document."""

import base64
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from images.artifact.keyring import KeyRing
from netboot.join.enrolment import Details
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.proof import proof_of, signed
from netboot.lifecycle.remedies import Taking
from netboot.lifecycle.roles import Role
from netboot.lifecycle.transitions import Mark
from netboot.status.controllers import InventoryStatus, PendingInventory
from netboot.web.dependencies import EXTENSION
from tests.browser.world import World
from tests.remedies import remedy
from tests.sockets.api import NOW, PUBLISHER, given

RUNS, HAS_TPM, BY_API, NEW = "gpu-0001", "gpu-0002", "spare-001", "new"
"""A machine with boots; with a TPM that waits for a word; of the API's own file, which joins without one; how names
begin that there are not."""
KIND, RACK = "racks", "spare"
"""A kind of the inventory, and one of that in a file of the API's."""
CHANNEL, ROLLED = "canary", "beta"
"""Channels of the older image; to the newer one a rollout of the latter is under way."""
MORE = f"""\
channels:
- {{name: {CHANNEL}}}
- {{name: {ROLLED}}}
profiles:
- {{name: trial, channel: {CHANNEL}, pcrs: none}}
- {{name: next, channel: {ROLLED}, pcrs: none}}
machines:
- {{name: next-001, match: {{serial: T2}}, profile: next}}
- {{name: trial-001, match: {{serial: T1}}, profile: trial}}
"""
DECLARED = {"name": BY_API, "match": {"serial": "S1"}, "profile": "trial", "identity": "nonce", "rack": "r01"}
EK, OTHER_EK = "e" * 64, "f" * 64
WAITS = "d" * 64
"""Digest of an inventory that waits to be accepted."""
KEY = ec.derive_private_key(1, ec.SECP256R1()).public_key()
SPKI = KEY.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
Named = dict[str, Any]
_MACHINE, _ITEM = "/v1/inventory/machines/{name}", "/v1/inventory/{kind}/{name}"


class FuzzedSite:
    """Four machines in a rack and two more, two images, a rollout, a remedy, a token, a hold, a proof, a stranger."""

    def __init__(self, folder: Path) -> None:
        world = World(folder, count=4, places=1_000)  # schemathesis closes no answer
        self.asked = 0
        self.api, self.images, self.boot = world.api, (world.new, world.old), world.boots[RUNS]
        (self.api.config.inventory / "more.yaml").write_text(MORE)
        made = self.act("PUT", f"/v1/inventory/machines/{BY_API}", {"declared": DECLARED}, {"If-None-Match": "*"})
        rack = self.act("PUT", f"/v1/inventory/{KIND}/{RACK}", {"declared": {"name": RACK}}, {"If-None-Match": "*"})
        self.tags = {_MACHINE: made.headers["ETag"], _ITEM: rack.headers["ETag"]}
        self.api.publisher.step(now=True)
        self._facts()
        for channel in (CHANNEL, ROLLED):
            self.act("PUT", f"/v1/channels/{channel}", {"image": world.old})
        begun = self.act("POST", "/v1/rollouts", {"channel": ROLLED, "image": world.new, "on_next_boot": True})
        self.rollout, self.remedy = begun.get_json()["number"], 1
        issued = self.act("POST", "/v1/tokens", {"machine": BY_API, "spki": base64.b64encode(SPKI).decode()})
        self.token = issued.get_json()["id"]
        self.dependencies = self.api.client.application.extensions[EXTENSION]
        self.headers = {
            Role.VIEWER: {"Authorization": f"Bearer {given(self.api, 'wall', Role.VIEWER)}"},
            Role.ADMIN: self.api.authorised,
        }

    def act(self, method: str, path: str, body: Named, headers: dict[str, str] | None = None) -> Any:
        """Done before anything is asked."""
        sent = self.api.authorised | (headers or {})
        answer = self.api.client.open(path, method=method, json=body, headers=sent)
        assert answer.status_code in (200, 201), answer.text
        return answer

    def _facts(self) -> None:
        api = self.api
        pending = PendingInventory(digest=WAITS, removed=3, of=4, lately=0, names=(RUNS,))
        inventory = InventoryStatus(ok=True, valid=True, message="in force", pending=pending)
        api.say(publisher=PUBLISHER.model_copy(update={"inventory": inventory}))
        self.act("POST", f"/v1/machines/{HAS_TPM}/enroll", {})
        api.register.propose(HAS_TPM, EK, Details(serial="S2", peer="192.0.2.7").model_dump_json(), NOW)
        api.intents.order(RUNS, PutOn(Mark.HELD, "DIMM 4"), "alice", NOW)
        api.remedies.take(lambda _: Taking(remedy(RUNS, id=0, drain=""), "{}"), NOW)
        trace = api.states.boot(self.boot)
        assert trace is not None
        proof = proof_of(trace, None, NOW, "test", NOW)
        assert proof is not None
        api.history.prove({(self.boot, RUNS): signed(proof, KeyRing(api.config.keys).signing_key())}, {RUNS})
        api.cluster.make_node(RUNS, ready=False)

    def places(self, path: str) -> Named:
        """Variables of a path that lead somewhere."""
        name = RUNS
        if path.startswith("/v1/channels"):
            name = CHANNEL
        elif path.startswith("/v1/inventory"):
            name = RACK if path == _ITEM else BY_API
        elif path.rpartition("/")[2] in ("enrolment", "approve", "release", "replace", "retire"):
            name = HAS_TPM
        every = {
            "name": name,
            "kind": KIND,
            "boot": self.boot,
            "number": self.rollout if "rollouts" in path else self.remedy,
            "digest": self.images[0],
            "token_id": self.token,
            "mac": "b8:ce:f6:0a:11:00",
        }
        return {key: value for key, value in every.items() if f"{{{key}}}" in path}

    def reaching(self, case: Any) -> Any:
        """That request, of things that there are: what it names is replaced, where it names anything; what only the
        service can have said before (a place in a list, a tag) is left out or is the one that it would say."""
        path, acts = case.operation.path, case.operation.method != "get"
        self.asked += 1
        values = self._values() | ({"declared": {"name": RACK}} if path == _ITEM else {})
        case.path_parameters = self.places(path)
        if isinstance(case.body, dict):
            case.body = _filled(case.body, values)
            if path == "/v1/machines/{name}/accept":
                case.body["seconds"] = 600
            if path == "/v1/discovered/{mac}/declare":
                case.body["name"] = NEW  # of one stranger there are no two machines
        elif isinstance(case.body, bytes | str):
            case.body = f"machine,ek_sha256\n{RUNS},{OTHER_EK}\n"
        case.query = _filled(case.query, values | {"machine": RUNS})
        kept = "Idempotency-Key" if acts else "If-None-Match"
        case.headers = {name: value for name, value in case.headers.items() if name == kept}
        if acts and kept in case.headers:
            case.headers[kept] = f'"{self.asked}"'  # nobody asks again
        if acts and path in self.tags:
            case.headers["If-Match"] = self.tags[path]
        return case

    def _values(self) -> Named:
        new = f"{NEW}-{self.asked}"
        return {
            "image": self.images[0],
            "with": self.images[1],
            "boot": self.boot,
            "digest": WAITS,
            "ek_sha256": EK,
            "channel": CHANNEL,
            "machine": BY_API,
            "profile": "trial",
            "class": "hgx-h100",
            "rack": "r01",
            "name": new,
            "spki": base64.b64encode(SPKI).decode(),
            "on_next_boot": True,
            "reason": "as it must be",
            "declared": DECLARED,
            "machines": [{"declared": {**DECLARED, "name": new, "match": {"serial": new}}}],
            "selector": "rack=r01",
            "fieldSelector": "rack=r01",
            "file": "list.csv",
        }


LEFT_OUT = {"revision", "until", "seen", "strategy", "control_plane", "continue", "since"}
"""What is of the service's own saying, or excludes something else that is there."""


def _filled(drawn: Named, values: Named) -> Named:
    """A whole number is written as one: the service takes no `90.0` for it, which JSON's schemas do."""
    named = {key: values.get(key, value) for key, value in drawn.items() if key not in LEFT_OUT}
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in named.items()
    }
