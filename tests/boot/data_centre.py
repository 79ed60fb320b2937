"""A small data centre for one test: network, site, service, dnsmasq; machines are switched on in it."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lab import ipv6
from lab.accelerator import Accelerator
from lab.errors import DeadlineError
from lab.machines import Firmware, Hardware, Machine, machine
from lab.network import Mode, Network, UserNetwork, dnsmasq, network
from lab.service import Service, service
from lab.site import Site, make_site
from lab.time_server import time_server

BOOT_SECONDS = 480.0
"""For one machine from power-on to Booted, in software emulation, on a machine that is busy with other things."""
LOG_SECONDS = 180.0
"""For a line that was written before what we already know of, until the thread that reads the console has it."""
TRACE_SECONDS = 180.0
"""For what every journal holds to be shown, on a machine that is busy with other things; a second or two elsewhere."""
COMPLETE_TRACE = [
    ("ScriptServed", "served"),
    ("KernelFetched", "served"),
    ("InitrdFetched", "served"),
    ("InitrdStarted", "reported"),
    ("ImageFetched", "reported"),
    ("ImageVerified", "reported"),
    ("Switched", "reported"),
    ("Booted", "reported"),
]
"""The trace of a boot in which nothing failed."""
QUICK_RETRIES = "retry: {unknown_seconds: [2, 3], refused_seconds: [2, 3], unavailable_seconds: [2, 3]}\n"
PROFILES = "profiles:\n- {name: default, channel: stable, pcrs: none}\nchannels:\n- {name: stable}\n"


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """What the whole session shares: an image in a store, and the keys that it trusts."""

    site: Site
    digest: str
    manifest: dict[str, Any]
    accelerator: Accelerator

    @property
    def root(self) -> dict[str, Any]:
        """Its root image: sha256, size, chunks."""
        found: dict[str, Any] = self.manifest["artifacts"]["root"]
        return found


@dataclass(frozen=True, slots=True)
class DataCentre:
    """Everything that a machine needs to boot, in `folder`, with every log. `net` None: QEMU's user network."""

    folder: Path
    built: BuiltImage
    site: Site
    net: Network | None
    service: Service

    @contextlib.contextmanager
    def switched_on(self, hardware: Hardware) -> Iterator[Machine]:
        """A machine of this centre."""
        attachment = (
            UserNetwork(f"{self.site.url}/boot.ipxe") if self.net is None else self.net.tap(f"tap-{hardware.name}")
        )
        with machine(hardware, attachment, self.folder, self.built.accelerator) as running:
            yield running

    def declare(self, *machines: str, racks: str = "") -> None:
        """Let the inventory be these machines, each a flow mapping of YAML without its braces, and `racks`, YAML."""
        lines = "".join(f"- {{{one}}}\n" for one in machines) or "  []\n"
        self.site.declare(f"machines:\n{lines}{racks}{PROFILES}")

    def trace(self, name: str) -> list[tuple[str, str]]:
        """Phases and sources of a machine's latest boot."""
        return [(one["phase"], one["source"]) for one in self.latest(name)["reached"]]

    def wait_for_trace(self, name: str, last: str = "Booted", fetched_elsewhere: tuple[str, ...] = ()) -> None:
        """Wait until the latest boot shows the complete trace up to the phase `last`, and nothing else. An event that
        one boot server took may be shown before an earlier one that another took: each has a journal of its own.
        `fetched_elsewhere`: phases that the service does not see, because an origin served the file.

        Raises:
            AssertionError: it shows another trace after three minutes.
        """
        expected = COMPLETE_TRACE[: [phase for phase, _ in COMPLETE_TRACE].index(last) + 1]
        expected = [(phase, source) for phase, source in expected if phase not in fetched_elsewhere]
        with contextlib.suppress(DeadlineError):
            self.service.wait_until(f"the trace of {name}", lambda: self.trace(name) == expected, TRACE_SECONDS)
        assert self.trace(name) == expected

    def latest(self, name: str) -> dict[str, Any]:
        """The trace of its latest boot, by `netboot boot list`."""
        found: dict[str, Any] = json.loads(
            self.site.netboot("boot", "list", "--machine", name, "--limit", "1", "--output", "json")
        )["boots"][0]
        return found

    def wait_for_console(self, boot: str, words: str) -> None:
        """Until the last lines of that boot's console that the service has say so, in `netboot boot show`."""

        def said() -> bool:
            console = json.loads(self.site.netboot("boot", "show", boot, "--output", "json"))["console"]
            return console is not None and words in console["text"]

        self.service.wait_until(f"{words!r} in the console of {boot}", said, LOG_SECONDS)


def hardware(number: int, firmware: Firmware = "bios", *, rom: bool = True) -> Hardware:
    """A machine; its identity follows from its number."""
    uuid = f"4e4f4445-0000-4000-8000-0000000000{number:02x}"
    mac, serial = f"52:54:00:aa:00:{number:02x}", f"LAB-{number:04d}"
    return Hardware(f"node-{number}", mac, uuid, serial, firmware, memory=768, rom=rom)


def entry(one: Hardware, more: str = "") -> str:
    """Its entry in the inventory."""
    return f"name: {one.name}, profile: default, match: {{macs: ['{one.mac}']}}{more}"


@contextlib.contextmanager
def data_centre(
    folder: Path,
    built: BuiltImage,
    *,
    user_network: bool = False,
    origins: bool = False,
    mode: Mode | Literal["ipv6"] = "authoritative",
    clock: bool = False,
    more: str = "",
) -> Iterator[DataCentre]:
    """Everything running, the channel pointing at the shared image, no machine declared.

    `origins`: do not start the service yet; `start_with_kernels_of_origins` does. `mode` ipv6: there is no
    IPv4 for machines. `clock`: DHCP names a time server. `more`: of the
    configuration.
    """
    with contextlib.ExitStack() as stack:
        net = None if user_network else stack.enter_context(network(folder / "network"))
        host = "127.0.0.1" if net is None else ipv6.host(net) if mode == "ipv6" else net.host
        site = make_site(folder / "site", host, None if net else "10.0.2.2", keys=built.site.folder / "keys")
        with site.config.open("a") as config:
            config.write(QUICK_RETRIES + more)
        copy_images(built.site.store, site.store)
        site.declare(f"machines: []\n{PROFILES}")
        running = stack.enter_context(service(site, folder, begin=not origins))
        if not origins:
            running.set_channel("stable", built.digest)
        if net:
            boot = f"{site.url}/boot.ipxe"
            told = stack.enter_context(time_server(net)) if clock else ""
            dhcp = ipv6.router(net, boot) if mode == "ipv6" else dnsmasq(net, boot, mode, time_servers=told)
            stack.enter_context(dhcp)
        yield DataCentre(folder, built, site, net, running)


def start_with_kernels_of_origins(one: DataCentre) -> None:
    """Let machines ask their first origin for kernel and initrd, start the service."""
    with one.site.config.open("a") as config:
        config.write("kernel_from_origins: true\n")
    one.service.start()
    one.service.set_channel("stable", one.built.digest)


def copy_images(source: Path, target: Path) -> None:
    """Images and blobs of another store; blobs as hard links, which nobody writes to."""
    shutil.copytree(source / "images", target / "images", dirs_exist_ok=True)
    (target / "blobs").mkdir(exist_ok=True)
    for blob in (source / "blobs").iterdir():
        (target / "blobs" / blob.name).hardlink_to(blob)


def flip(path: Path, offset: int) -> None:
    """Change one byte of a file: of a copy that takes its place, for the file itself may be a link."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    replace(path, bytes(data))


def replace(path: Path, data: bytes) -> None:
    """Put other bytes in a file's place, with its owner and mode."""
    partial, status = path.with_name(f".{path.name}.new"), path.stat()
    partial.write_bytes(data)
    shutil.copymode(path, partial)
    shutil.chown(partial, status.st_uid, status.st_gid)
    partial.replace(path)
