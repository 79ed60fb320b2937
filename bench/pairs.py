"""hello and attest as fast as one join process answers them: the agent's own code, new connections, new boots."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec

from bench.apart import apart, in_turn
from bench.members import Door, Member
from bench.observed import Seen, observed
from bench.serving import BenchError
from images.node.agent.errors import AgentError
from images.node.agent.exchange import Facts, prove
from images.node.agent.net import Server


@dataclass(frozen=True)
class Paired:
    """Exchanges that ended with a token, in so many seconds; seconds of each by phase; what went wrong."""

    pairs: int
    seconds: float
    phases: dict[str, list[float]]
    errors: list[str]

    @property
    def per_second(self) -> float:
        """Pairs per second."""
        return self.pairs / self.seconds


def exchange(fleet: Sequence[Member], door: Door, seconds: float, cores: Collection[int]) -> Paired:
    """So many seconds of exchanges, from a process that runs on `cores` only.

    Raises:
        BenchError: none succeeded, or more than one in a hundred failed.
    """
    result = apart(_exchange, list(fleet), door, seconds, set(cores))
    assert isinstance(result, Paired)
    if not result.pairs or len(result.errors) > result.pairs / 100:
        raise BenchError(f"{result.pairs} exchanges succeeded, {len(result.errors)} failed: {result.errors[:3]}")
    return result


def _exchange(fleet: Sequence[Member], door: Door, seconds: float, cores: Collection[int]) -> Paired:
    os.sched_setaffinity(0, cores)
    errors, done, server = list[str](), list[Seen](), Server(door.join, door.authorities)
    with observed() as is_of:

        def act(member: Member) -> None:
            seen = Seen(member.address)
            is_of(seen)
            facts = Facts(member.boot, {"uuid": None, "serial": None, "macs": [member.mac]})
            key = ec.generate_private_key(ec.SECP256R1())
            try:
                prove(lambda path, body: server.call("POST", path, body), member.tpm(), key, facts)
            except AgentError as error:
                errors.append(str(error))
            else:
                done.append(seen)

        took = in_turn(fleet, seconds, act)
    phases = {name: [seen.seconds[name] for seen in done] for name in ("hello", "attest")}
    return Paired(len(done), took, phases, errors)
