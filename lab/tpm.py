"""A real TPM 2.0 for each machine: swtpm, whose state outlives the machine's power, as that of a chip does.

The machine and its TPM are joined by a connected pair of sockets: no name that could be too long or left behind.
"""

import contextlib
import hashlib
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import UnusableError
from lab.processes import child, run

END_SECONDS = 60.0
"""For swtpm to keep its state and go, once its machine is off."""
TOOL_SECONDS = 180.0
"""For making a 2048-bit RSA key on a busy machine."""
_READY_SECONDS = 180.0


@contextlib.contextmanager
def tpm(name: str, state: Path) -> Iterator[socket.socket]:
    """A powered TPM for the length of a block; yields the machine's end of its control channel, for QEMU.

    `state`: the chip. The same folder is the same TPM, with the same endorsement key and a higher resetCount; an
    empty or missing one is a new chip. The log is `<state>.log`.

    Raises:
        UnusableError: swtpm is not installed.
    """
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        _powered(name, state, ["--ctrl", f"type=unixio,clientfd={theirs.fileno()}", "--terminate"], [theirs.fileno()]),
    ):
        theirs.close()  # so that the machine hears of it should swtpm end
        yield ours


def qemu_arguments(control: socket.socket) -> list[str]:
    """What gives a machine this TPM, as the chip of a PC (TCG's TIS interface); QEMU must inherit `control`."""
    return [
        *("-chardev", f"socket,id=tpm,fd={control.fileno()}", "-tpmdev", "emulator,id=tpm,chardev=tpm"),
        *("-device", "tpm-tis,tpmdev=tpm"),
    ]


def ek_sha256(state: Path) -> str:
    """Hex SHA-256 of the DER SubjectPublicKeyInfo of the RSA endorsement key, asked of the chip itself.

    What a vendor's list has: `match.ek_sha256` of the inventory. The machine must be off; the chip is switched on for
    this, so that its resetCount rises.

    Raises:
        EndedError, DeadlineError: the TPM or a tool failed, with its words.
        UnusableError: swtpm or tpm2-tools are not installed.
    """
    if shutil.which("tpm2") is None:
        raise UnusableError("no tpm2-tools here: install the package tpm2-tools")
    with tempfile.TemporaryDirectory(prefix="netboot-tpm-") as folder:  # short: a socket's name is at most 108 bytes
        at, key = f"{folder}/tpm", f"{folder}/ek"
        listening = ["--server", f"type=unixio,path={at}", "--ctrl", f"type=unixio,path={at}.ctrl"]
        with _powered("a TPM on the bench", state, [*listening, "--flags", "not-need-init,startup-clear"]):
            run(["sh", "-c", f"until [ -S {at} ]; do sleep 0.02; done"], seconds=_READY_SECONDS)
            for command in (
                f"createek -G rsa -c {key}.ctx -u {key}.pub",
                "flushcontext -t",
                f"readpublic -c {key}.ctx -f der -o {key}.der",
            ):
                run(["tpm2", *command.split(), "-T", f"swtpm:path={at}"], seconds=TOOL_SECONDS)
        return hashlib.sha256(Path(f"{key}.der").read_bytes()).hexdigest()


@contextlib.contextmanager
def _powered(name: str, state: Path, channel: Sequence[str], fds: Sequence[int] = ()) -> Iterator[None]:
    if shutil.which("swtpm") is None:
        raise UnusableError("no swtpm here: install the package swtpm")
    state.mkdir(parents=True, exist_ok=True)
    argv = ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}", *channel, "--log", "fd=1,level=1"]
    with child(name, argv, state.with_name(f"{state.name}.log"), fds=fds, grace=END_SECONDS):
        yield
