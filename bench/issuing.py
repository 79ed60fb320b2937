"""Tokens per second against the real apiserver: the issuer alone, from a decision to a token."""

import base64
import hashlib
import multiprocessing
import os
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from bench.members import Member
from bench.serving import BenchError
from images.node.agent.key import spki
from netboot.config import load_config
from netboot.join.credential import Presented
from netboot.join.issue import issue
from netboot.join.parts import Parts
from netboot.join.ports import Credential
from netboot.kube.targets import Targets
from netboot.lifecycle.errors import LifecycleError
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.sealing import SealingKeys

THREADS = 16


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
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, config, list(fleet), seconds), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        raise BenchError("the process that issues tokens ended") from None
    finally:
        process.terminate()
        process.join()
    assert isinstance(found, Issuing)
    if not found.tokens or found.errors:
        raise BenchError(f"{found.tokens} tokens were issued, and {len(found.errors)} not: {found.errors[:3]}")
    return found


def _run(wire: "Connection[Any, Any]", path: Path, fleet: Sequence[Member], seconds: float) -> None:
    config, errors, tokens = load_config(path), list[str](), list[int]()
    assert config.join is not None
    facts = Facts(path.with_name("issuing.db"))
    view = LiveView(config.data / "snapshot.json").view
    parts = Parts(
        site=config.site,
        clusters=Targets(config.clusters),
        view=view,
        enrolments=open_register(config, lambda: view().snapshot.inventory),
        keyset=SealingKeys(config.join.sealing_keys),
        belongs=lambda _boot, _machine: True,
        journal=facts.append,
        now_ms=lambda: time.time_ns() // 1_000_000,
        random=os.urandom,
        choice=secrets.choice,
        token_seconds=config.join.token_seconds,
    )
    until = time.monotonic() + seconds

    def work(mine: Sequence[Member]) -> None:
        resets, key = 0, spki(ec.generate_private_key(ec.SECP256R1()))
        while mine and time.monotonic() < until:
            for one in mine:
                try:
                    _issue(parts, one, resets, key)
                except LifecycleError as error:
                    errors.append(str(error))
                else:
                    tokens.append(1)
                if time.monotonic() >= until:
                    break
            resets += 1

    began, cpu = time.monotonic(), time.process_time()
    threads = [threading.Thread(target=work, args=(fleet[n::THREADS],), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wire.send(Issuing(len(tokens), time.monotonic() - began, time.process_time() - cpu, errors))
    facts.close()


def _issue(parts: Parts, one: Member, resets: int, key: bytes) -> None:
    machine = parts.view().index.named(one.name)
    if machine is None:
        raise BenchError(f"the inventory has no {one.name}")

    def presented(_existing: Credential | None) -> Presented:
        return Presented(
            machine=one.name,
            cluster=machine.cluster,
            node=machine.node_name,
            rung="tpm",
            boot=one.boot,
            holder=hashlib.sha256(key).hexdigest(),
            holder_spki=base64.b64encode(key).decode(),
            generation=0,
            counters=(one.resets + resets, 0),
        )

    issue(parts, machine, presented, one.address)
