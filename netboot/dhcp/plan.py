"""Who is told what: the one table of kinds of firmware, and what a site's DHCP server has to know, as values.

Architectures are those of option 93 (RFC 4578, 2.1; IANA, "Processor Architecture Types"). x64 UEFI says 7, some say 9
(EBC). iPXE says `iPXE` in option 77 and has option 175: it gets the script, whatever its architecture, and never a
binary again, or it would load itself for ever.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple


class Firmware(NamedTuple):
    """A kind of firmware without iPXE. `key`: in the configurations; `http`: it loads `file` by HTTP (UEFI HTTP Boot),
    its vendor class begins with `HTTPClient`, and it takes no offer that does not repeat that."""

    key: str
    words: str
    architectures: tuple[int, ...]
    file: str
    http: bool = False


FIRMWARE = (
    Firmware("bios", "BIOS, PXE", (0,), "undionly.kpxe"),
    Firmware("x64", "UEFI x64, PXE", (7, 9), "snponly.efi"),
    Firmware("arm64", "UEFI arm64, PXE", (11,), "ipxe-arm64.efi"),
    Firmware("x64-http", "UEFI x64, HTTP Boot", (16,), "snponly.efi", http=True),
    Firmware("arm64-http", "UEFI arm64, HTTP Boot", (19,), "ipxe-arm64.efi", http=True),
)
BINARIES = {"undionly.kpxe": "bios", "snponly.efi": "x64", "ipxe.efi": "x64", "ipxe-arm64.efi": "arm64"}
"""What there is of iPXE, by HTTP below `/ipxe/` and in a folder of TFTP; names as Debian's package `ipxe` has them. And
what runs it: how the keys of `FIRMWARE` begin."""


def unfit(firmware: Firmware, file: str) -> str:
    """Why firmware without iPXE can do nothing with a file that it is told, as far as its name says it; or ""."""
    if firmware.http != ("://" in file):
        return "it fetches by HTTP, and takes a URL alone" if firmware.http else "it fetches by TFTP, and takes no URL"
    runs = BINARIES.get(file.rpartition("/")[2])
    return "" if runs in (None, firmware.key.removesuffix("-http")) else f"it cannot run that, but {firmware.file}"


@dataclass(frozen=True, slots=True)
class Net:
    """A network; `first` and `last`: of the addresses that are given out, None where another server gives them."""

    subnet: IPv4Network
    first: IPv4Address | None = None
    last: IPv4Address | None = None
    router: IPv4Address | None = None
    name_servers: tuple[IPv4Address, ...] = ()


class Host(NamedTuple):
    """A machine that always gets the same address. `name`: of the inventory, lower-case letters, digits, `-`, `.`."""

    name: str
    mac: str
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class Plan:
    """`url`: of the provisioning listener, `http://…` without quotes, spaces and commas, as the configuration checks.
    `tftp`: None, the DHCP server itself."""

    url: str
    tftp: IPv4Address | None
    nets: tuple[Net, ...] = ()
    hosts: tuple[Host, ...] = ()

    @property
    def script(self) -> str:
        """What iPXE is told."""
        return f"{self.url}/boot.ipxe"

    def file(self, firmware: Firmware) -> str:
        """What firmware is told: a path of TFTP, or a URL."""
        return f"{self.url}/ipxe/{firmware.file}" if firmware.http else firmware.file

    def hosts_of(self, net: Net) -> tuple[Host, ...]:
        """Those whose address is in a network in which this server gives addresses."""
        return tuple(host for host in self.hosts if net.first is not None and host.address in net.subnet)
