"""Three whole services in front of one real API server: each a folder, a disk, ports and a way to the API server of its
own; and machines that boot and join by whichever of them they come to.

Nothing of them is a fake. Only small file systems for their `data` need root.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import requests

from lab.errors import DeadlineError
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl
from lab.work import ROOT
from netboot.config import load_config
from netboot.config_outside import SEALING
from netboot.stores.sealing import read_keys
from tests import soft_tpm
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import CSRS, NODES, LiveSite
from tests.kubelets import client, condition
from tests.processes import environment, stopped, wait_for
from tests.relays import Relay
from tests.sockets.join_site import JoinSite, Said
from tests.sockets.service import Service

SECONDS = 180.0
"""Against hanging alone."""
NAMES = ("alpha", "beta", "gamma")
KINDS = ("approver", "nodes", "rollouts")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot-leaders/leases"
UNCHECKED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
CLOCKS = ROOT / "tests" / "clocks"


class Replica:
    """One of them. `relay`: its way to the API server; `packages`: of the version that it is."""

    def __init__(self, name: str, root: Path, relay: Relay, packages: Path) -> None:
        self.name, self.root, self.relay = name, root, relay
        self._clock = root.with_suffix(".clock")
        self._clock.write_text("0")
        self.service = Service(load_config(root / "netboot.yaml"), root / "netboot.yaml")
        self.becomes(packages)

    def becomes(self, packages: Path) -> None:
        """It is of that version from its next start on."""
        more = {"PYTHONPATH": f"{CLOCKS}:{packages}", "NETBOOT_TEST_CLOCK": str(self._clock)}
        self.service.environment = {**environment(packages), **more}
        self.service.packages = packages

    def runs_of(self) -> Path:
        """Where the packages are that its processes import, by what its supervisor gave them."""
        pid = self.service.processes()["controllers"]["pid"]
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        path = next(each for each in variables if each.startswith(b"PYTHONPATH="))
        return Path(path.removeprefix(b"PYTHONPATH=").decode().partition(":")[0])

    @property
    def runs(self) -> bool:
        return self.service.process is not None and self.service.process.poll() is None

    def set_clock(self, seconds: int) -> None:
        """How wrong the time of day is here, in one write, into the very file: the processes have it open."""
        with self._clock.open("r+b", buffering=0) as file:
            file.write(f"{seconds:<32}".encode())

    def detail(self, name: str) -> Any:
        """What `/readyz` says of a part; {}: nothing yet."""
        return self.service.readyz()["details"].get(name, {})

    def leader(self, kind: str) -> Any:
        """What `/readyz` says of who leads."""
        return self.detail(kind if kind == "rollouts" else f"{kind}-default").get("leader") or {}

    def troubles(self) -> dict[str, str]:
        """What `/readyz` says is not in order."""
        said = self.service.readyz()
        found = {name: detail["message"] for name, detail in said["details"].items() if not detail["ok"]}
        return found if said["ready"] else {"ready": "no", **found}

    def logged(self, words: str) -> list[str]:
        """Lines of its log, over all its starts."""
        return [line for line in self.service.log.splitlines() if words in line]

    def phases(self, boot: str) -> list[str]:
        """What it knows of a boot."""
        return [one["phase"] for one in self.service.api(f"/v1/boots/{boot}").get("reached", ())]

    def script(self, mac: str) -> requests.Response:
        """What a machine boots by."""
        return self.service.machines.get(f"{self.service.provisioning}/v1/boot", params={"mac": mac}, timeout=60)

    def image(self, mac: str) -> list[int]:
        """What a machine fetches to boot: script, manifest and its signature, kernel, initrd, root; the statuses."""
        fetch, url = partial(self.service.machines.get, timeout=60), self.service.provisioning
        script = self.script(mac)
        found = re.search(r"image ([0-9a-f]{64})", script.text)
        assert found is not None, script.text
        manifest, signature = (fetch(f"{url}/v1/images/{found[1]}/manifest.{part}") for part in ("json", "sig"))
        parts = manifest.json()["artifacts"]
        blobs = [fetch(f"{url}/v1/blobs/{parts[part]['sha256']}") for part in ("kernel", "initrd", "root")]
        return [each.status_code for each in (script, manifest, signature, *blobs)]

    def keys(self) -> list[str]:
        """Ids of its sealing keys; the first seals, all open."""
        return [key.id.hex() for key in read_keys(self.root / "shared-keys" / SEALING).keys]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes does anything while in the block: its supervisor first, which would replace them."""
        assert self.service.process is not None
        with ExitStack() as halted:
            for pid in (self.service.process.pid, *sorted(self.service.pids())):
                halted.enter_context(stopped(pid))
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        """Its `data` has no room left while in the block."""
        filler = self.root / "data" / "filler"
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            while True:
                out.write(bytes(4096))
        try:
            yield
        finally:
            filler.unlink()


class Machine:
    """One machine in one boot; each step at a replica. Where it is told to come back (503), it does."""

    def __init__(self, world: "World", chassis: Chassis, boot: str, **more: Any) -> None:
        self._world, self.chassis, self.boot = world, chassis, boot
        self.soft: soft_tpm.Machine = chassis.as_it_is(boot, **more)
        self.token = ""
        self.admission: Any = None
        self.asked: list[str] = []
        """What it asked the API server to sign, in base64."""
        self._kubelet: requests.Session | None = None
        self.hello: Any = None

    def reports(self, replica: Replica, *phases: str) -> list[int]:
        """Post these events; the statuses."""
        return [replica.service.post(self.boot, self.chassis.mac, phase) for phase in phases]

    def greets(self, replica: Replica) -> None:
        said = told(partial(self._world.site.hello, self.soft, replica.name))
        assert said.status == 200, said
        self.hello = said.body

    def proves(self, replica: Replica) -> None:
        said = self.tries(replica)
        assert said.status == 200, said

    def tries(self, replica: Replica) -> Said:
        """The second step, whatever is answered to it."""
        said = told(partial(self._world.site.attest, self.soft, self.hello, replica.name))
        if said.status == 200:
            self.token, self.admission = said.body["token"], said.body
        return said

    def joins(self, first: Replica, second: Replica) -> str:
        """The exchange, its second step at `second`, and what the agent then asks for; the name of the request."""
        self.greets(first)
        self.proves(second)
        return self.asks()

    def registers(self, request: str, *, ready: bool = False) -> None:
        """Its kubelet makes its Node, with the certificate that was signed. `ready`: it says that it is, once."""
        site = self._world.site
        metadata = {"name": self.chassis.name, "labels": self.admission["labels"]}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [UNCHECKED]}}
        self._kubelet = site.as_node(site.certificate(request), self.soft.key)
        made = self._kubelet.post(f"{site.cluster.url}{NODES}", json=body, timeout=60)
        assert made.status_code == 201, made.text
        if ready:
            self.beats()

    def beats(self) -> None:
        """Its kubelet says that its Node is Ready, which is believed for less than a minute."""
        assert self._kubelet is not None
        said = {"status": {"conditions": [condition("Ready")]}}
        how = {"Content-Type": "application/strategic-merge-patch+json"}
        path = f"{self._world.site.cluster.url}{NODES}/{self.chassis.name}/status"
        beaten = self._kubelet.patch(path, data=json.dumps(said), headers=how, timeout=60)
        assert beaten.status_code == 200, beaten.text

    def asks(self) -> str:
        site, csr = self._world.site, client(self.chassis.name, key=self.soft.key)
        self.asked.append(base64.b64encode(csr.pem).decode())
        return site.ask(site.bearer(self.token), csr)


def told(ask: Callable[[], Said]) -> Said:
    """What is answered once it can be told: the first that is not 503.

    Raises:
        OSError: nobody answers there.
    """

    def answer() -> tuple[Said | OSError] | None:
        try:
            said = ask()
        except OSError as error:  # for which `wait_for` would ask the same one again
            return (error,)
        return (said,) if said.status != 503 else None

    (found,) = wait_for(answer, SECONDS)
    if isinstance(found, OSError):
        raise found
    return found


class World:
    """The three, the API server that they share, and its administrator."""

    def __init__(self, own: Cluster, kubectl: Kubectl, replicas: list[Replica], machines: list[Chassis]) -> None:
        self.own, self.kubectl, self.replicas = own, kubectl, replicas
        self._approvals, self._counted = Counter[str](), 0
        first, ports = replicas[0], {each.name: _join_port(each) for each in replicas}
        net, admin = JoinSite(first.root, first.service.config, ports), Admin(own)
        glass, known = Admin(own, pair="break-glass"), {each.name: each for each in machines}
        self.admin, self.site = admin, LiveSite(first.service, net, own, admin, glass, known)

    def boots(self, replica: Replica, kind: str = "k") -> Machine:
        """A machine that nobody had fetches its script."""
        return self.reboots(self.site.fresh(kind), replica)

    def reboots(self, chassis: Chassis, replica: Replica) -> Machine:
        chassis.resets += 1
        return Machine(self, chassis, replica.service.boot(chassis.mac))

    def joined(self, request: str) -> tuple[str, str]:
        """What is decided about a request; where that is yes, once its certificate is there."""
        decision = self.site.decision(request)
        if decision[0] == "Approved":
            assert self.site.certificate(request).startswith(b"-----BEGIN CERTIFICATE-----")
        return decision[:2]

    def certificates(self, machine: Machine) -> list[str]:
        """Requests for this machine that have one."""
        found = self.admin("GET", CSRS).json()["items"]
        ours = (one for one in found if one["status"].get("certificate"))
        return [one["metadata"]["name"] for one in ours if one["spec"]["request"] in machine.asked]

    def lease(self, kind: str) -> tuple[str, int]:
        """Who leads by the Lease ("": nobody), and its epoch."""
        spec = self.admin("GET", f"{LEASES}/{kind}").json().get("spec") or {}
        return str(spec.get("holderIdentity") or "").partition("_")[0], int(spec.get("leaseTransitions") or 0)

    def elected(self, kind: str, *among: Replica) -> Replica:
        """The one of these that leads: the Lease says so, and it itself."""
        return wait_for(
            lambda: next((each for each in among or self.replicas if self._leads(kind, each)), None), SECONDS
        )

    def _leads(self, kind: str, replica: Replica) -> bool:
        name, epoch = self.lease(kind)
        said = replica.leader(kind) if name == replica.name else {}
        return bool(said) and bool(said["leads"]) and said["epoch"] == epoch

    def follows(self, kind: str, replica: Replica) -> bool:
        """Whether it says that another one leads, the one whom the Lease names."""
        said, (name, epoch) = replica.leader(kind), self.lease(kind)
        told = (said.get("leader", "").partition("_")[0], said.get("epoch"))
        return not said.get("leads", True) and told == (name, epoch) and name not in ("", replica.name)

    def settle(self) -> None:
        """Until all are in order, and of each kind one leads and two follow."""
        self.in_order(*self.replicas)
        wait_for(lambda: all(map(self._one_leads, KINDS)), SECONDS)

    def in_order(self, *replicas: Replica) -> None:
        """Until `/readyz` of each of these has said that nothing is amiss: on a busy machine not all in one moment."""
        for each in replicas:
            try:
                wait_for(lambda one=each: one.troubles() == {}, SECONDS)  # type: ignore[misc]
            except DeadlineError:
                raise AssertionError({each.name: each.troubles()}) from None

    def lets_join(self, replica: Replica) -> None:
        """Until it is ready, and says that what machines join by is in order: what works there at the lowest priority
        may be late."""
        needed = ("join-0", *(f"{kind}-default" for kind in ("approver", "nodes")))

        def can_join() -> bool:
            said = replica.service.readyz()
            return said["ready"] and all(said["details"].get(name, {}).get("ok") for name in needed)

        wait_for(can_join, SECONDS)

    def _one_leads(self, kind: str) -> bool:
        led = [each for each in self.replicas if self._leads(kind, each)]
        return len(led) == 1 and all(self.follows(kind, each) for each in self.replicas if each is not led[0])

    def approvals(self) -> Counter[str]:
        """By the name of the request, as the API server has written them down: of who is killed meanwhile, too."""
        with (self.own.folder / "audit.log").open("rb") as log:
            log.seek(self._counted)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._counted += len(line)
                if b'"subresource":"approval"' in line and (done := json.loads(line))["responseStatus"]["code"] == 200:
                    self._approvals[done["objectRef"]["name"]] += 1
        return self._approvals

    def others(self, *without: Replica) -> list[Replica]:
        return [each for each in self.replicas if each not in without]


def _join_port(replica: Replica) -> int:
    join = replica.service.config.join
    assert join is not None
    return join.listen.port
