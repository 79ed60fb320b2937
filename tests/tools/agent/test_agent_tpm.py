"""The agent and a real TPM 2.0 (swtpm): the whole exchange, and what it leaves in the TPM."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from images.node.agent import tpm as agent_tpm
from images.node.agent.tpm import Device
from tests.agents import Site, Told, machine, serving
from tests.tools.tokens.swtpm import Tpm, swtpm
from tokens import wire
from tokens.credential import make_credential, spki_sha256
from tokens.quote import verify_quote
from tokens.wire import Selection

pytestmark = pytest.mark.tools
SHA256 = 0xB


@pytest.fixture(scope="module")
def tpm() -> Iterator[Tpm]:
    with swtpm() as running:
        running.tool("pcrextend", f"0:sha256={'11' * 32}", f"7:sha256={'22' * 32}")
        yield running


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, site: Site, tpm: Tpm) -> Path:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm0").symlink_to(tpm.folder / "server.sock")
    return machine(tmp_path, site)


def left_in(tpm: Tpm) -> str:
    """Objects and sessions that somebody forgot."""
    return "".join(tpm.peek("getcap", f"handles-{kind}") for kind in ("transient", "loaded-session", "saved-session"))


def pinned(tpm: Tpm, kind: str) -> str:
    """The EK as an operator would pin it, by another's tools."""
    tpm.tool("createek", "-G", kind, "-c", "ek.ctx", "-u", "ek.pub")
    return spki_sha256(wire.read_public(tpm.file("ek.pub")))


def test_a_machine_proves_its_rsa_endorsement_key_and_gets_its_files(site: Site, root: Path, tpm: Tpm) -> None:
    told = Told()
    told.agent(root).run()
    assert site.eks == [pinned(tpm, "rsa")]
    assert told.lines[0] == "attested; this is node n1 of cluster default"
    assert told.lines[-1] == "joined as n1; the kubelet may start"
    assert (root / "etc/kubernetes/kubelet.kubeconfig").exists()
    assert left_in(tpm) == ""


def test_a_tpm_without_rsa_proves_its_ecc_endorsement_key(tpm: Tpm) -> None:
    expected = pinned(tpm, "ecc")
    with opened(tpm) as device:
        real = device.transport

        def without_rsa(message: bytes) -> bytes:
            rsa = message[6:10] == bytes.fromhex("00000131") and b"\x00\x01\x00\x0b\x00\x03\x00\xb2" in message
            return struct.pack(">HII", 0x8001, 10, 0x2C4) if rsa else real(message)  # TPM_RC_VALUE of parameter 2

        device.transport = without_rsa
        identity = device.identity()
        assert spki_sha256(wire.read_public(identity.ek_public)) == expected
        prove_it_works(device)
    assert left_in(tpm) == ""


def test_the_vendors_certificate_is_read_whole_and_cut_at_its_own_length(tpm: Tpm) -> None:
    certificate = b"\x30\x82" + (1200).to_bytes(2, "big") + bytes(range(240)) * 5
    (tpm.folder / "ek.der").write_bytes(certificate + b"\xff" * 100)
    attributes = "ppwrite|ppread|ownerread|authread|no_da|platformcreate"
    tpm.tool("nvdefine", "0x1c00002", "-C", "p", "-s", str(len(certificate) + 100), "-a", attributes)
    tpm.tool("nvwrite", "0x1c00002", "-C", "p", "-i", "ek.der")
    with opened(tpm) as device:
        assert device.identity().ek_certificate == certificate
    tpm.tool("nvundefine", "0x1c00002", "-C", "p")
    with opened(tpm) as device:
        assert device.identity().ek_certificate is None


@contextmanager
def opened(tpm: Tpm) -> Iterator[Device]:
    """The agent's own way to the TPM. swtpm serves one connection at a time: other tools have to wait."""
    (tpm.folder / "dev").mkdir(exist_ok=True)
    link = tpm.folder / "dev/tpmrm0"
    link.unlink(missing_ok=True)
    link.symlink_to(tpm.folder / "server.sock")
    with agent_tpm.opened(tpm.folder) as device:
        assert device is not None
        yield device


def prove_it_works(device: Device) -> None:
    identity = device.identity()
    ek, ak = wire.read_public(identity.ek_public), wire.read_public(identity.ak_public)
    challenge = make_credential(ek, ak.name, b"s" * 32)
    assert device.activate(challenge.credential_blob, challenge.encrypted_secret) == b"s" * 32
    indices = tuple(range(12))  # more than one answer of PCR_Read holds
    quoted = device.quote(b"n" * 32, {"sha256": indices})
    pcrs = {(SHA256, index): value for index, value in quoted.pcrs["sha256"].items()}
    selections = (Selection(SHA256, indices),)
    quote = verify_quote(quoted.attest, quoted.signature, ak, ek, b"n" * 32, selections, pcrs)
    assert quote.reset_count == 1
    assert pcrs[SHA256, 8] == bytes(32)
