"""Makes proofs of boots: the one place that holds the key that signs them."""

from collections.abc import Callable, Iterable, Sequence

from images.artifact.signing import SigningKey
from images.values.backoff import Backoff
from netboot.controllers.pieces import Going, in_pieces
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import HealthRecord
from netboot.lifecycle.history import HistoryWriter, KnownBoot
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.proof import SignedProof, proof_of, signed
from netboot.lifecycle.trace import Trace

PIECE = 20
"""Proofs between two times that `going` is called."""
TRIES = Backoff(first=1.0, longest=600.0)
"""Between two tries to prove a boot."""


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


class Proofs:
    """Makes them, and writes them down. A boot that cannot be proven now is proven later: nothing waits for it, for
    what is to be counted was counted before."""

    def __init__(self, prover: Prover, history: HistoryWriter) -> None:
        self._prover, self._history = prover, history
        self._failed: dict[str, int] = {}
        """Boots that could not be proven, and how often that was tried."""
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why boots wait to be proven; empty: none does."""
        return self._problem if self._failed else ""

    def make(self, ended: Sequence[tuple[KnownBoot, Trace | None]], going: Going) -> dict[str, float]:
        """Of boots of which nothing more is expected; None: the state has none of it any more. Returns those to be
        given again, and in how many seconds.

        Raises:
            StateUnavailableError: they cannot be written down.
        """
        made, problem = dict[tuple[str, str], SignedProof | None](), ""
        for boot, trace in in_pieces(ended, going, PIECE):
            try:
                proof = self._prover.proof(trace, boot.in_service_ms) if trace is not None else None
            except CannotTellError as error:
                problem = str(error)
            else:
                made[boot.boot, boot.machine] = proof
        if made:
            proofs = {which: proof for which, proof in made.items() if proof is not None}
            self._history.prove(proofs, [boot for boot, _ in made])
        self.forget(boot for boot, _ in made)
        self._problem = problem or self._problem
        if made and not problem:  # what was wrong with the others may be in order again
            return dict.fromkeys(self._failed, 0.0)
        failed = [boot.boot for boot, _ in ended if (boot.boot, boot.machine) not in made]
        self._failed |= {boot: self._failed.get(boot, 0) + 1 for boot in failed}
        return {boot: TRIES.bound(self._failed[boot]) for boot in failed}

    def forget(self, boots: Iterable[str]) -> None:
        """There is nothing to be proven of these (any more)."""
        for boot in boots:
            self._failed.pop(boot, None)
