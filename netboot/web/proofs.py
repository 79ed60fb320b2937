"""`/v1/boots/<id>/proof`: the signed record of a boot that attested."""

from netboot.lifecycle.errors import NoProofYetError, NotAttestedError, unheard_of
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.proof import SignedProof
from netboot.web.dependencies import dependencies


def shown(boot: str) -> SignedProof:
    """The record's text and its signature."""
    deps = dependencies()
    proof = deps.history.proof(boot)
    if proof is not None:
        return proof
    trace = deps.states.boot(boot)
    if trace is None:
        raise unheard_of(boot)
    if trace.phase(Phase.ATTESTED) is None:
        raise NotAttestedError(f"boot {boot} of {trace.machine} has not attested: there is nothing to prove")
    raise NoProofYetError(
        f"the proof of boot {boot} of {trace.machine} is not made yet: it is made when the boot is first seen in "
        "service, or when a later boot of the machine has proven itself"
    )
