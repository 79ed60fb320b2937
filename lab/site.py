"""A site made by the real command line, as an operator makes it."""

import errno
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError, LateError, UnusableError
from lab.work import ROOT

COMMAND = (sys.executable, "-m", "netboot.cli.main")
COMMAND_SECONDS = 1200.0
WORKERS = 3
_GIVEN = set[int]()
"""Ports."""


class CommandFailedError(LabError):
    """A `netboot` command failed; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Site:
    """A site's folder. `url`: how machines reach the service; `management`: its API, on loopback."""

    folder: Path
    url: str
    management: str

    @property
    def config(self) -> Path:
        """Its configuration file."""
        return self.folder / "netboot.yaml"

    @property
    def store(self) -> Path:
        """Its artifact store."""
        return self.folder / "store"

    def netboot(self, *arguments: str) -> str:
        """Run a `netboot` command on this site; what it printed.

        Raises:
            CommandFailedError: with all that it said.
        """
        return run_netboot(arguments, self.config)

    def declare(self, inventory: str, name: str = "site.yaml") -> None:
        """Write one file of the inventory in one step, as an editor does."""
        partial = self.folder / "inventory" / f".{name}.new"
        partial.write_text(inventory)
        partial.replace(self.folder / "inventory" / name)


def run_netboot(arguments: Sequence[str], config: Path | None = None) -> str:
    """Run a `netboot` command to its end; what it printed on standard output.

    Raises:
        CommandFailedError: with all that it said. LateError: it took too long.
    """
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=ROOT,
            env=command_environment(config),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LateError(f"netboot {' '.join(arguments)}: did not end within {COMMAND_SECONDS:g} s") from None
    if done.returncode != 0:
        raise CommandFailedError(f"netboot {' '.join(arguments)}: {(done.stderr + done.stdout).strip()}")
    return done.stdout


def command_environment(config: Path | None) -> dict[str, str]:
    """Our environment with the site's configuration in it."""
    return os.environ | ({"NETBOOT_CONFIG": str(config)} if config else {})


def make_site(
    folder: Path, host: str, url_host: str | None = None, *, keys: Path | None = None, join: bool = False
) -> Site:
    """`netboot init`, listening on `host` and on loopback; `url_host`: how machines call `host`, if otherwise.

    `keys`: a folder of keys to copy, so that an image of another site boots here too. `join`: with its listener.
    """
    port, management, joining = free_port(host), free_port("127.0.0.1"), free_port(host)
    address = f"[{host}]" if ":" in host else host
    machines = url_host or address
    url = f"http://{machines}:{port}"
    if keys is not None:
        shutil.copytree(keys, folder / "keys")
    also = ["--join-url", f"https://{machines}:{joining}"] if join else []
    run_netboot(["init", str(folder), "--url", url, "--site", "lab", "--force", *also])
    config = folder / "netboot.yaml"
    text = _listen(config.read_text(), "provisioning", f'"{address}:{port}"')
    text = _listen(text, "management", f"127.0.0.1:{management}")
    config.write_text(_listen(text, "join", f'"{address}:{joining}"') if join else text)
    return Site(folder, url, f"http://127.0.0.1:{management}")


def another_site(first: Site, folder: Path) -> Site:
    """The same site with ports of its own and, in its folder, a disk of its own: without what the first's service wrote
    and without its images."""
    own = {str(first.folder): {"data"}, str(first.store): {"blobs", "images"}}
    shutil.copytree(first.folder, folder, ignore=lambda where, _: own.get(where, set()))
    site = Site(folder, first.url, first.management)
    for host, port in re.findall(r'(?m)^  listen: "?\[?(.+?)\]?:(\d+)"?$', site.config.read_text()):
        other = f":{free_port(host)}"
        site.config.write_text(site.config.read_text().replace(f":{port}", other))
        site = Site(folder, site.url.replace(f":{port}", other), site.management.replace(f":{port}", other))
    return site


def _listen(text: str, section: str, address: str) -> str:
    """The sample configuration with another address in the `listen` of a section."""
    changed, count = re.subn(rf"(?m)^({section}:.*\n(?:(?:  .*)?\n)*?  listen: ).*$", rf"\g<1>{address}", text)
    assert count == 1, f"the sample configuration has no line `listen` in {section}"
    return changed


def worker() -> int:
    """Which of `WORKERS` of tests this is, by pytest-xdist: each has ports of its own; 0 where there is one."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS


def free_port(host: str) -> int:
    """A port of this address that nobody has at the moment, and none that was given here before, nor to another worker
    of tests: nor one that the kernel gives to whoever asks for any (by default from 32768 on), for it takes a while
    until it is used.

    Raises:
        UnusableError: of a hundred none is free. OSError: the address is not of this host.
    """
    for port in random.sample(range(10_000 + worker(), 20_000, WORKERS), 100):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            if port in _GIVEN:
                continue
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                _GIVEN.add(port)
                return port
    raise UnusableError(f"of a hundred ports of {host} none is free")
