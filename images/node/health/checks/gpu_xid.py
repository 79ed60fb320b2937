"""Xid messages of this boot in the kernel log."""

import errno
import os

from ..machine import LONGEST, CannotTellError, Machine
from ..pci import gpus
from ..result import Check, Result, listed
from ..xid import Xid, xids


def kernel_log(machine: Machine) -> str:
    """/dev/kmsg from its beginning. Source: Linux Documentation/ABI/testing/dev-kmsg: one record a read, EPIPE where
    records were overwritten meanwhile, EAGAIN at the end.

    Raises:
        CannotTellError: it cannot be read.
    """
    pieces, size = [], 0
    try:
        file = os.open(machine.root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CannotTellError(f"the kernel log cannot be read: {error.strerror}", "it needs CAP_SYSLOG") from None
    try:
        while size < 16 * LONGEST:
            try:
                piece = os.read(file, 8192)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue
                break
            if not piece:
                break
            size += len(piece)
            pieces.append(piece)
    finally:
        os.close(file)
    return b"".join(pieces).decode("utf-8", "replace")


def _places(messages: list[Xid]) -> list[str]:
    return list(dict.fromkeys(f"{message.code} at {message.where}" for message in messages))


def look(machine: Machine) -> Result:
    """The worst of them decides; a program's own faults are facts."""
    messages = xids(kernel_log(machine))
    if not messages and not gpus(machine):
        return Result("absent", "no NVIDIA GPU, and no Xid in the kernel log")
    facts = {"xids": _places(messages)[:32], "count": len(messages)}
    stop, look_at = ([message for message in messages if message.weight == weight] for weight in ("stop", "look"))
    if stop:
        summary = f"Xid {listed(_places(stop), 4)}: {stop[0].text}"
        return Result(
            "fail", summary, "drain the node, power-cycle it; if it comes again, have the GPU replaced", facts
        )
    if look_at:
        summary = f"Xid {listed(_places(look_at), 4)}: {look_at[0].text}"
        return Result("warn", summary, "look it up in NVIDIA's Xid catalogue; reset the GPU when it is idle", facts)
    if messages:
        return Result("pass", f"Xid {listed(_places(messages), 4)}: of programs, not of the hardware", facts=facts)
    return Result("pass", "no Xid in the kernel log of this boot", facts=facts)


CHECK = Check("gpu-xid", "critical", 30, look)
