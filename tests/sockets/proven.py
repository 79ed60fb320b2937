"""A running service with a cluster that nobody answers for, and machines whose joins and Nodes are told as a cluster's
processes tell them: by their journals, and by what the node collector writes of Nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from images.store.store import Store
from netboot.config import load_config
from netboot.controllers.nodes.observed import file_of, observed
from netboot.controllers.records import KNOWS
from netboot.lifecycle.bootid import minted_ms
from netboot.lifecycle.events import CertificateRecord, EventRecord
from netboot.lifecycle.known import NO_WORD, Node, NodeWord
from netboot.lifecycle.phases import OBSERVED_PHASES, Phase
from netboot.lifecycle.reached import ORDER
from netboot.stores.facts import Facts
from netboot.stores.status import write_status
from tests.processes import wait_for
from tests.sites import INVENTORY, add_image, free_ports, make_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"
QUOTE, CERTIFICATE = "1" * 64, "2" * 64
"""Digests of the quote and of the certificate."""
REPORTS = ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted", "Joining")
PACE_MS = 100
CLASSED = INVENTORY.replace("profile: compute}", "profile: compute, class: hgx}", 1) + "classes:\n  - {name: hgx}\n"


@contextmanager
def in_cluster(folder: Path, inventory: str = CLASSED, more: str = "") -> Iterator[Service]:
    """The service, with cluster `default`, and `more` in its configuration."""
    make_site(folder, workers=1, inventory=inventory)
    [port] = free_ports(1)
    file = folder / "netboot.yaml"
    given = f'{{endpoints: ["https://127.0.0.1:{port}"], authority: tls/cluster.crt}}'
    file.write_text(f"{file.read_text()}clusters:\n  default: {given}\n{more}")
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as service:
        yield service


def reported(service: Service, boot: str, *without: str) -> None:
    """The machine says how far it is, to the agent's beginning, `PACE_MS` for each; its kernel started as it began."""
    begin = monotonic()
    for number, phase in enumerate(REPORTS):
        up_ms = PACE_MS * number
        wait_for(lambda up_ms=up_ms: monotonic() - begin >= up_ms / 1000)  # type: ignore[misc]
        if phase not in without:
            assert service.post(boot, MAC, phase, uptime_ms=up_ms) == 204


def joined(service: Service, boot: str, folder: Path) -> None:
    """What join, approver and collector would have journalled; Ready is eleven seconds after the script."""
    for owner in ("join", "approver", "nodes"):
        path = folder / f"{owner}-{boot}.db"
        facts = Facts(path)
        for number, phase in enumerate(phase for phase in ORDER if phase in OBSERVED_PHASES):
            if phase not in KNOWS[owner]:
                continue
            at_ms = minted_ms(boot) + 7_000 + 1_000 * number
            said = {"sha256": QUOTE, "detail": "by tpm, PCR policy: none"} if phase is Phase.ATTESTED else {}
            fact = EventRecord(at_ms=at_ms, boot=boot, machine="gpu-001", phase=phase, peer="")
            facts.append(fact.model_copy(update=said))
        if owner == "approver":
            ends = minted_ms(boot) + 86_400_000
            known = {"boot": boot, "machine": "gpu-001", "sha256": CERTIFICATE, "until_ms": ends}
            facts.append(CertificateRecord.model_validate({"at_ms": minted_ms(boot) + 12_000, **known}))
        facts.close()
        path.rename(service.config.data / "journal" / path.name)
    wait_for(lambda: service.api(f"/v1/boots/{boot}").get("state") == "Ready")


def reason(service: Service, kind: str) -> str:
    """Why that condition of the machine is as it is; empty: it was not judged yet."""
    conditions = service.api("/v1/machines/gpu-001")["conditions"]
    return next((each["reason"] for each in conditions or () if each["type"] == kind), "")


def node(service: Service, how: Node, word: NodeWord = NO_WORD) -> None:
    """What the node collector sees of the machine's Node."""
    seen = observed({"gpu-001": how}, {"gpu-001": word})
    write_status(service.config.data / "status", file_of("default"), seen)
