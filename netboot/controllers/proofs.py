"""Makes proofs of boots: the one place that holds the key that signs them."""

from collections.abc import Callable

from images.artifact.signing import SigningKey
from netboot.lifecycle.events import HealthRecord
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.proof import SignedProof, proof_of, signed
from netboot.lifecycle.trace import Trace


class Prover:
    """`key()`: None where there is none, so that no proofs are made; may raise CannotTellError. `health(boot)`: the
    latest report of a boot."""

    def __init__(
        self,
        site: str,
        key: Callable[[], SigningKey | None],
        health: Callable[[str], HealthRecord | None],
        clock: Clock,
    ) -> None:
        self._site, self._key, self._health, self._clock = site, key, health, clock

    def proof(self, trace: Trace, in_service_ms: int | None) -> SignedProof | None:
        """Of a boot of which nothing more is expected; None: it has not attested, or there is no key.

        Raises:
            CannotTellError: the key, or the state, cannot be read now.
        """
        key = self._key()
        if key is None:
            return None
        proof = proof_of(trace, self._health(trace.boot), in_service_ms, self._site, self._clock.now_ms())
        return signed(proof, key) if proof is not None else None
