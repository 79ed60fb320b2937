"""What an operator has to get into a machine and to keep what it says: an ssh CA, certificates, receivers."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.network import Network
from lab.output_log import OutputLog
from lab.processes import child, run
from netboot.cli.authority import new_authority, new_certificate

JOURNAL_REMOTE = "/lib/systemd/systemd-journal-remote"
PORT = 19532
SSH_SECONDS = 180.0
RECEIVE = """
import socket, sys
listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listening.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    sys.stdout.buffer.write(listening.recv(65535))
    sys.stdout.flush()
"""


@dataclass(frozen=True, slots=True)
class SshAuthority:
    """A CA of the site, and keys with certificates of it, in `folder`."""

    folder: Path

    @property
    def public(self) -> Path:
        """For `ssh.authorities`."""
        return self.folder / "user-ca.pub"

    def key(self, name: str, *options: str) -> Path:
        """A new key; with `options` of ssh-keygen, a certificate for it."""
        path = self.folder / name
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)])
        if options:
            run(["ssh-keygen", "-q", "-s", str(self.folder / "user-ca"), "-I", name, *options, f"{path}.pub"])
        return path


def ssh_authority(folder: Path) -> SshAuthority:
    """A CA that is new."""
    folder.mkdir(parents=True)
    authority = SshAuthority(folder)
    authority.key("user-ca")
    return authority


def ssh(address: str, key: Path, command: str, fingerprint: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as root; `fingerprint`: of the host key, as the boot's trace has it, or any."""
    known = key.parent / f"{address}.known"
    trusting = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    if fingerprint:
        known.write_text(run(["ssh-keyscan", "-T", "60", "-t", "ed25519", address]))
        assert fingerprint in run(["ssh-keygen", "-l", "-f", str(known)])
        trusting = ["-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={known}"]
    alone = ["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none"]
    alive = ["-o", "ConnectTimeout=60", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=12"]
    argv = ["ssh", *alone, *alive, *trusting, "-i", str(key), f"root@{address}", command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=SSH_SECONDS, check=False)


def lets_in(address: str) -> bool:
    """True once its ssh server listens; OSError while it does not."""
    socket.create_connection((address, 22), SSH_SECONDS).close()
    return True


def ssh_config(folder: Path, key: Path, addresses: Mapping[str, str]) -> Path:
    """What makes `ssh -F FILE NAME` run commands as root on the machine of that name."""
    path = folder / "ssh.config"
    hosts = "".join(f"Host {name}\n  HostName {address}\n" for name, address in addresses.items())
    alone = "  BatchMode yes\n  IdentitiesOnly yes\n  IdentityAgent none\n  LogLevel ERROR\n  ConnectTimeout 60\n"
    trusting = "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
    path.write_text(f"{hosts}Host *\n  User root\n  IdentityFile {key}\n{alone}{trusting}")
    return path


@dataclass(frozen=True, slots=True)
class JournalReceiver:
    """A systemd-journal-remote of the provisioning network, over TLS, that is off at first."""

    folder: Path
    network: Network

    @property
    def url(self) -> str:
        """For `journal.url`."""
        return f"https://{self.network.inside}:{PORT}"

    @property
    def authority(self) -> Path:
        """For `journal.authorities`."""
        return self.folder / "ca.crt"

    @contextlib.contextmanager
    def switched_on(self) -> Iterator[None]:
        """Debian's own, for the length of a block; what it takes is in `folder`."""
        certificate, key = str(self.folder / "log.crt"), str(self.folder / "log.key")
        argv = [JOURNAL_REMOTE, f"--listen-https={self.network.inside}:{PORT}", f"--cert={certificate}", f"--key={key}"]
        argv += ["--split-mode=host", f"--output={self.folder / 'journals'}"]
        with child("journal-remote", argv, self.folder / "remote.log", namespace=self.network.namespace):
            yield

    def taken(self, *matches: str) -> str:
        """What of it `journalctl` shows."""
        argv = ["journalctl", "--quiet", f"--directory={self.folder / 'journals'}", "--output=cat", *matches]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout


def journal_receiver(folder: Path, network: Network) -> JournalReceiver:
    """One whose certificate is by an authority of its own."""
    (folder / "journals").mkdir(parents=True)
    authority, key = new_authority("lab")
    pair = new_certificate(authority, key, [network.inside])
    for name, data in (("ca.crt", authority), ("log.crt", pair[0]), ("log.key", pair[1])):
        (folder / name).write_bytes(data)
    return JournalReceiver(folder, network)


@contextlib.contextmanager
def kernel_messages(folder: Path, network: Network, port: int) -> Iterator[OutputLog]:
    """What comes by UDP to `port` of the provisioning network's address."""
    argv = [sys.executable, "-c", RECEIVE, network.inside, str(port)]
    with child("kernel-messages", argv, folder / "kernel-messages.log", namespace=network.namespace) as running:
        running.output.wait_for("^ready$", 180)
        yield running.output
