"""Tokens per second against the real apiserver: the issuer alone, from a decision to a token."""

import base64
import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from bench.apart import apart, in_turn
from bench.members import Member
from bench.serving import BenchError
from images.node.agent.key import spki
from netboot.config import load_config
from netboot.join.credential import Presented
from netboot.join.issue import Issuer, issue
from netboot.join.ports import Credential
from netboot.kube.clusters import Clusters
from netboot.lifecycle.errors import LifecycleError
from netboot.machines.values import Machine
from netboot.stores.facts import Facts
from netboot.stores.intents import SqliteIntents
from netboot.stores.live import LiveView
from netboot.stores.register import open_register


@dataclass(frozen=True)
class Issuing:
    """Tokens that were issued in so many seconds, and the CPU seconds of the process."""

    tokens: int
    seconds: float
    cpu: float
    errors: list[str]

    @property
    def per_second(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds


def issuing(config: Path, fleet: Sequence[Member], seconds: float) -> Issuing:
    """So many seconds of tokens, for the machines in turn, each a boot of its own.

    Raises:
        BenchError: none was issued, or something failed.
    """
    result = apart(_issuing, config, list(fleet), seconds)
    assert isinstance(result, Issuing)
    if not result.tokens or result.errors:
        raise BenchError(f"{result.tokens} tokens were issued, and {len(result.errors)} not: {result.errors[:3]}")
    return result


def _issuing(path: Path, fleet: Sequence[Member], seconds: float) -> Issuing:
    facts, errors, tokens = Facts(path.with_name("issuing.db")), list[str](), list[str]()
    config = load_config(path)
    assert config.join is not None
    view = LiveView(config.data / "snapshot.json").view
    issuer = Issuer(
        clusters=Clusters(config.clusters),
        enrolments=open_register(config, lambda: view().snapshot.inventory),
        intents=SqliteIntents(config.data / "intents.db"),
        journal=facts.append,
        now_ms=lambda: time.time_ns() // 1_000_000,
        choice=secrets.choice,
    )
    token_seconds, key = config.join.token_seconds, spki(ec.generate_private_key(ec.SECP256R1()))

    def act(member: Member) -> None:
        try:
            machine = view().index.named(member.name)
            assert machine is not None  # the bench has written it into the inventory
            tokens.append(_issue(issuer, machine, member, key, token_seconds))
        except LifecycleError as error:
            errors.append(str(error))

    cpu = time.process_time()
    took = in_turn(fleet, seconds, act)
    spent = time.process_time() - cpu
    facts.close()
    return Issuing(len(tokens), took, spent, errors)


def _issue(issuer: Issuer, machine: Machine, member: Member, key: bytes, token_seconds: int) -> str:
    asked = Credential(
        machine=member.name,
        cluster=machine.cluster,
        node=machine.node_name,
        assurance="tpm",
        boot=member.boot,
        holder=hashlib.sha256(key).hexdigest(),
        holder_spki=base64.b64encode(key).decode(),
        reset_count=member.resets,
        restart_count=0,
        at_ms=issuer.now_ms(),
    )
    return issue(issuer, machine, lambda _existing: Presented(asked), token_seconds, member.address).node_name
