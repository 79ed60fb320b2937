"""Xid messages of this boot, by NVIDIA's catalogue of actions."""

from ..kept import heard
from ..machine import Machine
from ..pci import gpus
from ..result import Check, Result, listed
from ..xid import Xid, xid, xids


def _key(line: str) -> str | None:
    message = xid(line)
    return f"{message.where} {message.code} {message.weight}" if message is not None else None


def _places(messages: list[Xid]) -> list[str]:
    return list(dict.fromkeys(f"{message.code} at {message.where}" for message in messages))


def look(machine: Machine) -> Result:
    """The worst of them decides; a program's own faults are facts."""
    messages = xids(heard(machine, CHECK.name, _key))
    if not messages and not gpus(machine):
        return Result("absent", "no NVIDIA GPU, and no Xid in the kernel log")
    facts = {"xids": _places(messages)[:32], "count": len(messages)}
    stop, look_at = ([message for message in messages if message.weight == weight] for weight in ("stop", "look"))
    if stop:
        return Result("fail", f"Xid {listed(_places(stop), 4)}: {stop[0].text}", stop[0].remedy, facts)
    if look_at:
        summary = f"Xid {listed(_places(look_at), 4)}: {look_at[0].text}"
        return Result("warn", summary, "look it up in NVIDIA's Xid catalogue; reset the GPU when it is idle", facts)
    if messages:
        return Result("pass", f"Xid {listed(_places(messages), 4)}: of programs, not of the hardware", facts=facts)
    return Result("pass", "no Xid in the kernel log of this boot", facts=facts)


CHECK = Check("gpu-xid", "critical", 30, look)
