"""Join and the approver ask one register: shown on a whole site's files, as both processes open them."""

from pathlib import Path

from netboot.controllers.approver.decision import Approve, decide
from netboot.join.enrolment import Act, OpenWindow
from netboot.join.ports import Credential
from netboot.processes import approver
from netboot.stores.register import open_register
from tests.kube_fake import FakeCluster
from tests.kubelets import client
from tests.records import START, boot_id
from tests.sites import INVENTORY
from tests.sockets.api import Api

PIN, STRANGER = "a1" * 32, "b2" * 32
PINNED = INVENTORY.replace('["52:54:00:00:00:01"]', f'["52:54:00:00:00:01"], ek_sha256: {PIN}')


def test_the_approver_goes_by_the_pin_where_a_stranger_is_on_record(tmp_path: Path) -> None:
    """A stranger came through the window; then the operator pinned the right TPM, and join issued for that."""
    api = Api(tmp_path)
    joins = open_register(api.config, lambda: api.live.view().snapshot.inventory)
    joins.apply([("gpu-001", OpenWindow("enrol", "w", START + 60_000))], Act("alice"), START)
    joins.propose("gpu-001", STRANGER, "", START)
    (api.config.inventory / "site.yaml").write_text(PINNED)
    api.publisher.step(now=True)
    cluster = FakeCluster()
    cluster.leases.write(
        Credential(
            machine="gpu-001", cluster="default", node="gpu-001", assurance="tpm", boot=boot_id("gpu-001", 1),
            holder="f" * 64, holder_spki="", token_id="abc123", token_expires_ms=START + 300_000, at_ms=START,
            ek_sha256=PIN,
        )
    )  # fmt: skip
    csr = client()
    known = approver.knowledge(api.config, "default").of(csr, cluster.leases, cluster.certificates)
    assert known.enrolment == joins.of("gpu-001")
    assert known.enrolment.approved_ek == PIN
    assert isinstance(decide(csr, known), Approve)
