"""A TPM in software as the node's agent uses one: shipped code, real messages, no chip. For tests and benchmarks."""

import base64
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from images.node.agent.tpm import Identity, Quoted, Tpm
from tests.soft_tpm import Machine
from tests.unit.tokens.soft import SHA256, Exchange
from tokens.wire import Selection

BOOT = "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f"


@dataclass
class SoftTpm:
    """The TPM of `machine`."""

    machine: Machine = field(default_factory=lambda: Machine(BOOT))

    def identity(self) -> Identity:
        """EK and AK; no certificate."""
        keys = self.machine.hello()["tpm"]
        return Identity(base64.b64decode(keys["ek_public"]), None, base64.b64decode(keys["ak_public"]))

    def activate(self, credential_blob: bytes, encrypted_secret: bytes) -> bytes:
        """TPM2_ActivateCredential."""
        return self.machine.activate(credential_blob, encrypted_secret)

    def quote(self, nonce: bytes, banks: Mapping[str, Sequence[int]]) -> Quoted:
        """TPM2_Quote of the sha256 bank."""
        one = self.machine
        indices = tuple(banks["sha256"])
        values = {index: one.pcrs[index] for index in indices}
        made = Exchange(
            ek_key=one.ek,
            ak_key=one.ak,
            resets=one.resets,
            restarts=one.restarts,
            nonce=nonce,
            selection=(Selection(SHA256, indices),),
            pcrs={(SHA256, index): value for index, value in values.items()},
        )
        data = made.quote()
        return Quoted(data, made.sign(data), {"sha256": values})


def soft(_root: Path) -> AbstractContextManager[Tpm | None]:
    """For `Agent.open_tpm`."""
    return nullcontext(SoftTpm())
