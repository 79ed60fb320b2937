"""The same machine's own chip, turned against the service: a real TPM 2.0 (swtpm), used by the agent that ships."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from images.node.agent import tpm as agent_tpm
from images.node.agent.answers import Admission
from images.node.agent.exchange import Facts, prove
from images.node.agent.tpm import AK_ECC, Device, Identity
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import LiveSite
from tests.soft_tpm import new_key
from tests.tools.tokens.swtpm import Tpm, swtpm
from tokens import wire
from tokens.credential import spki_sha256
from tokens.wire import sized

pytestmark = pytest.mark.cluster
RH_OWNER = 0x40000001
RH_NULL = 0x40000007


class Elsewhere(Device):
    """An attestation key of the same chip and the same make, under another hierarchy."""

    hierarchy = RH_OWNER

    def _primary(self, template: bytes) -> tuple[int, bytes]:
        if template != AK_ECC:
            return super()._primary(template)
        parameters = sized(sized(b"") * 2) + sized(template) + sized(b"") + bytes(4)
        response = self._command(0x131, (self.hierarchy,), (0x40000009,), parameters)
        handle, _ = response.number(4), response.number(4)
        return handle, sized(response.sized())


class InNull(Elsewhere):
    """Under the hierarchy that is anew with every reset."""

    hierarchy = RH_NULL


class RefusedError(Exception):
    """What join answered: status, code and words."""


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Tpm]:
    """Powered for the first time; its counters are of its second start."""
    with swtpm() as running:
        running.tool("pcrextend", f"0:sha256={'11' * 32}", f"7:sha256={'22' * 32}")
        (running.folder / "dev").mkdir()
        (running.folder / "dev/tpmrm0").symlink_to(running.folder / "server.sock")
        yield running


@contextlib.contextmanager
def opened(chip: Tpm, kind: type[Device] = Device) -> Iterator[Device]:
    with agent_tpm.opened(chip.folder) as device:
        assert device is not None
        other = kind(device.transport)
        try:
            yield other
        finally:
            other.close()


def exchange(
    site: LiveSite, chassis: Chassis, chip: Tpm, key: ec.EllipticCurvePrivateKey, kind: type[Device] = Device
) -> Admission:
    """As the agent does it. Raises RefusedError."""

    def post(path: str, body: Any) -> Any:
        said = site.net.ask("serve", "POST", path, dict(body))
        if said.status != 200:
            raise RefusedError(said.status, said.body["error"]["code"], said.message)
        return said.body

    facts = Facts(site.service.boot(chassis.mac), {"uuid": None, "serial": None, "macs": []})
    with opened(chip, kind) as device:
        admission = prove(post, device, key, facts)
    site.secrets.add(admission.token)
    return admission


def enrolled(site: LiveSite, chip: Tpm) -> Chassis:
    """A machine whose TPM an operator has imported from a list."""
    chassis = site.fresh("new")
    with opened(chip) as device:
        identity: Identity = device.identity()
    ek = spki_sha256(wire.read_public(identity.ek_public))
    said = site.service.netboot("machine", "enroll", "--csv", "-", input_=f"machine,ek_sha256\n{chassis.name},{ek}\n")
    assert said.returncode == 0, said.stderr
    return chassis


def refusal(of: Callable[[], object]) -> tuple[Any, ...]:
    with pytest.raises(RefusedError) as caught:
        of()
    return caught.value.args


@pytest.mark.parametrize("kind", [Elsewhere, InNull], ids=["owner", "null"])
def test_a_second_attestation_key_of_another_hierarchy_gets_no_second_credential(
    site: LiveSite, chip: Tpm, kind: type[Device]
) -> None:
    chassis = enrolled(site, chip)
    assert exchange(site, chassis, chip, new_key()).node_name == chassis.name
    before = site.tokens()
    assert refusal(lambda: exchange(site, chassis, chip, new_key(), kind)) == (
        403,
        "refused",
        "the TPM's statement is not accepted: the attestation key is not under the endorsement hierarchy of this TPM",
    )
    status, code, words = refusal(lambda: exchange(site, chassis, chip, new_key()))
    assert (status, code) == (409, "held"), "nor does another key with the right one"
    assert words.startswith(f"another key holds the credential of this boot of {chassis.name}: reboot it")
    assert site.tokens() <= before  # older ones may expire meanwhile


def test_tpm2_clear_and_again(site: LiveSite, chip: Tpm) -> None:
    """Clearing sets the counters back, so that a thief on the machine seems to be in an earlier boot: it waits."""
    chassis = enrolled(site, chip)
    exchange(site, chassis, chip, new_key())
    before = site.tokens()
    chip.tool("clear", "-c", "p")
    status, code, words = refusal(lambda: exchange(site, chassis, chip, new_key()))
    assert (status, code) == (409, "held")
    assert words == (
        f"the TPM of {chassis.name} counts fewer resets than it did (0.0 after 1.0): was it cleared? If that was you, "
        f"`netboot machine release {chassis.name}`"
    )
    assert site.tokens() <= before  # older ones may expire meanwhile
    assert f"machine={chassis.name}" in next(line for line in site.service.log.splitlines() if words[:30] in line)
    assert site.service.netboot("machine", "release", chassis.name, "--reason", "cleared it").returncode == 0
    key = new_key()
    assert exchange(site, chassis, chip, key).node_name == chassis.name
    status, code, _ = refusal(lambda: exchange(site, chassis, chip, new_key()))
    assert (status, code) == (409, "held"), "once"
