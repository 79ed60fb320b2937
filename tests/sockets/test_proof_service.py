"""Proof of boot by a running service: when it is there, and that it holds where there is no service."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.lifecycle.known import Node
from tests.processes import environment, wait_for
from tests.sockets.proven import MAC, in_cluster, joined, node, reason, reported
from tests.sockets.service import COMMAND, Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with in_cluster(tmp_path / "site") as running:
        yield running


def elsewhere(folder: Path, *arguments: str) -> tuple[int, str]:
    """A command on a host that has neither service nor configuration: exit status, and what it said."""
    done = subprocess.run(
        [*COMMAND, "boot", "proof", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    said = (done.stdout + done.stderr).strip()
    return done.returncode, said.removesuffix("\nRemedy: docs/proof.md#when-it-does-not says what each of these means")


def prove(service: Service, folder: Path) -> str:
    """A boot that comes into service; its proof is there."""
    node(service, Node.NOT_READY)
    wait_for(lambda: reason(service, "InService") not in ("", "InService"))  # whoever judges has read that
    boot = service.boot(MAC)
    reported(service, boot)
    joined(service, boot, folder)
    waits = service.netboot("boot", "proof", boot)
    words = (
        f"Error: the proof of boot {boot} of gpu-001 is not made yet: it is made when the boot is first seen in "
        "service, or when a later boot of the machine has proven itself"
    )
    assert (waits.returncode, waits.stderr.splitlines()[0]) == (5, words)
    node(service, Node.IN_SERVICE)
    wait_for(lambda: service.netboot("boot", "proof", boot).returncode == 0)
    return boot


def test_a_proof_holds_here_and_on_another_host_and_after_the_key_was_rotated(service: Service, tmp_path: Path) -> None:
    rotated = service.netboot("key", "proofs", "rotate")
    assert rotated.returncode == 0, rotated.stderr
    claimed = service.boot(MAC)
    # 3: nothing was heard of it yet; 5: there is no state to read yet
    wait_for(lambda: service.netboot("boot", "proof", claimed).returncode not in (3, 5))
    unproven = service.netboot("boot", "proof", claimed)
    words = f"Error: boot {claimed} of gpu-001 has not attested: there is nothing to prove"
    assert (unproven.returncode, unproven.stderr.splitlines()[0]) == (4, words)
    nobody = service.netboot("boot", "proof", "0" * 36)
    words = f"Error: no such boot: {'0' * 36} was never heard of, or is longer ago than is kept"
    assert (nobody.returncode, nobody.stderr.splitlines()[0]) == (3, words)

    boot = prove(service, tmp_path)
    shown = service.netboot("boot", "proof", boot, "--verify").stdout
    [key] = json.loads(service.netboot("key", "proofs", "list", "--output", "json").stdout)["keys"]
    assert f"it holds: signed by key {key['id']}" in shown
    host = tmp_path / "elsewhere"
    shutil.copytree(service.config.keys / "proofs", host / "keys")
    given = service.netboot("boot", "proof", boot, "--output", "json").stdout
    (host / "proof.json").write_text(given)
    record = json.loads(json.loads(given)["proof"])
    assert (record["quote_sha256"], record["certificate_sha256"]) == ("1" * 64, "2" * 64)
    assert {"ScriptServed", "Attested", "Ready", "InService"} <= record["moments"].keys()
    verify = ("--file", "proof.json", "--verify", "--keys", "keys")
    status, said = elsewhere(host, *verify)
    assert (status, f"signed by key {key['id']}" in said) == (0, True), said
    assert elsewhere(host, claimed, *verify) == (1, f"Error: it is a proof of boot {boot}")
    (host / "proof.json").write_text(given.replace("gpu-001", "gpu-002"))
    altered = f"Error: it does not hold: the signature of key {key['id']} does not fit: altered after it was signed"
    assert elsewhere(host, *verify) == (1, altered)

    new = json.loads(service.netboot("key", "proofs", "rotate", "--output", "json").stdout)["id"]
    later = prove(service, tmp_path)
    assert f"signed by key {new}" in service.netboot("boot", "proof", later, "--verify").stdout
    assert f"signed by key {key['id']}" in service.netboot("boot", "proof", boot, "--verify").stdout
    (host / "proof.json").write_text(service.netboot("boot", "proof", later, "--output", "json").stdout)
    unknown = "Error: it is signed by a key that is not among those given: is it a proof of this site?"
    assert elsewhere(host, *verify) == (1, unknown)
    assert service.stop() == 0
    service.start()
    assert service.netboot("boot", "proof", boot, "--verify").returncode == 0
