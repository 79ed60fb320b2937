"""What a machine that nobody has declared tells of itself, by its files; what it hears of switches."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from images.node.agent.net import Server
from images.node.discovery.__main__ import AGAIN_SECONDS, REBOOT_AFTER, Told, lines, main, report
from images.node.discovery.ek import spki
from images.node.discovery.gather import gathered
from images.node.discovery.lldp import neighbour
from images.node.health.machine import Machine
from netboot.lifecycle.hardware import HardwareReport
from tokens.wire import ALG_ECC, ALG_RSA, Public

UUID = "4e4f4445-0000-4000-8000-000000000001"
MAC, BOOT = "52:54:00:aa:00:01", "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f"
FRAME = bytes.fromhex("0180c200000e 001122334455 88cc 0207 04 001122334455 0406 05 73777031 30 0602 0078")
FRAME += bytes.fromhex("0a06 6c6561662d31 0000".replace(" ", ""))
"""As a switch called leaf-1 sends it from its port swp10."""
CPUINFO = "".join(f"processor\t: {n}\nmodel name\t: AMD EPYC 9354 32-Core Processor\n\n" for n in range(2))
SAID = {
    "cpu": {"model": "AMD EPYC 9354 32-Core Processor", "count": 2},
    "memory_bytes": 786432 * 1024,
    "cards": [
        {
            "name": "eth0",
            "mac": MAC,
            "pci": "0000:00:03.0",
            "driver": "virtio_net",
            "speed_mbps": 25000,
            "link": True,
        },
        {
            "name": "eth1",
            "mac": "52:54:00:aa:00:02",
            "pci": "0000:00:05.0",
            "driver": "",
            "speed_mbps": 0,
            "link": False,
        },
    ],
    "disks": [{"name": "vda", "model": "QEMU DISK", "size_bytes": 10**9, "path": "pci-0000:00:04.0"}],
    "gpus": [{"pci": "0000:17:00.0", "id": "10de:2330"}],
    "firmware": {
        "vendor": "QEMU",
        "product": "Standard PC",
        "serial": "LAB-0001",
        "uuid": "4e4f4445-0000-4000-8000-000000000001",
        "bios": "1.16.2",
    },
}


def planted(root: Path) -> Path:
    """A machine of the laboratory, with a GPU."""
    files = {
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": "MemTotal:         786432 kB\nMemFree: 1 kB\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "sys/class/dmi/id/product_name": "Standard PC\n",
        "sys/class/dmi/id/product_serial": "LAB-0001\n",
        "sys/class/dmi/id/product_uuid": "4e4f4445-0000-4000-8000-000000000001\n",
        "sys/class/dmi/id/bios_version": "1.16.2\n",
        "sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:17:00.0/device": "0x2330\n",
        "sys/bus/pci/devices/0000:17:00.0/class": "0x030200\n",
        "sys/class/net/lo/type": "772\n",
        "sys/block/loop0/size": "8\n",
        "sys/block/vda/size": f"{10**9 // 512}\n",
        "sys/devices/pci0000:00/0000:00:04.0/virtio1/block/model": "QEMU DISK\n",
    }
    for number, (name, more) in enumerate((("eth0", "25000"), ("eth1", "-1"))):
        at, mac = f"sys/class/net/{name}", f"52:54:00:aa:00:{number + 1:02x}\n"
        files |= {f"{at}/type": "1\n", f"{at}/address": mac, f"{at}/speed": f"{more}\n"}
        files |= {f"{at}/carrier": f"{1 - number}\n"}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    links = {
        "sys/class/net/eth0/device": "sys/devices/pci0000:00/0000:00:03.0/virtio0",
        "sys/class/net/eth1/device": "sys/devices/pci0000:00/0000:00:05.0",
        "sys/devices/pci0000:00/0000:00:03.0/virtio0/driver": "sys/bus/virtio/drivers/virtio_net",
        "sys/block/vda/device": "sys/devices/pci0000:00/0000:00:04.0/virtio1/block",
        "dev/disk/by-path/pci-0000:00:04.0": "dev/vda",
        "dev/disk/by-path/pci-0000:00:04.0-part1": "dev/vda1",
    }
    for path, target in links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if "drivers" not in target and "dev/" not in target[:4]:
            (root / target).mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(root / target)
    return root


def test_a_machine_is_told_from_its_files_and_the_service_takes_it(tmp_path: Path) -> None:
    assert gathered(Machine(planted(tmp_path))) == SAID
    heard = {"eth0": {"system": "leaf-1", "port": "swp10"}}
    said = report(tmp_path, MAC, {"ek_sha256": "ab" * 32, "certificate": None}, heard)
    read = HardwareReport.model_validate_json(json.dumps(said))
    assert read.cards[0].neighbour is not None
    assert (read.cards[0].neighbour.system, read.cards[1].neighbour) == ("leaf-1", None)
    assert lines(said) == [
        "QEMU Standard PC, serial LAB-0001, UUID 4e4f4445-0000-4000-8000-000000000001",
        "2 x AMD EPYC 9354 32-Core Processor, 768 MiB of memory",
        "card eth0 52:54:00:aa:00:01 0000:00:03.0 virtio_net, 25000 Mbit/s, at leaf-1 port swp10",
        "card eth1 52:54:00:aa:00:02 0000:00:05.0 , no link",
        "disk vda QEMU DISK 1 GB",
        "GPU 0000:17:00.0 10de:2330",
        "TPM's endorsement key abababababababab",
    ]


def test_a_machine_that_says_nothing_is_told_all_the_same(tmp_path: Path) -> None:
    said = report(tmp_path, MAC, None, {})
    assert HardwareReport.model_validate_json(json.dumps(said)).cards == ()
    assert lines(said)[-1] == "no TPM"


def test_what_a_switch_says_is_read_and_nothing_of_it_can_hurt() -> None:
    assert neighbour(FRAME) == {"system": "leaf-1", "port": "swp10"}
    assert neighbour(FRAME[:23]) == {"system": "00:11:22:33:44:55", "port": ""}
    for end in range(len(FRAME)):
        neighbour(FRAME[:end])
    assert neighbour(FRAME.replace(b"leaf-1", b"\x1b[2J\xff\x00")) == {"system": "[2J", "port": "swp10"}


def test_the_endorsement_key_has_the_digest_that_the_inventory_pins() -> None:
    key = rsa.generate_private_key(65537, 2048).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert spki(public(ALG_RSA, rsa_modulus=key.public_numbers().n)) == der
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    der = point.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert spki(public(ALG_ECC, x=point.public_numbers().x, y=point.public_numbers().y)) == der


def public(kind: int, rsa_modulus: int = 0, x: int = 0, y: int = 0) -> Public:
    return Public(b"", kind, 0xB, 0, b"", 128, 0, 0, rsa_modulus, 2048, 65537, 3, x, y)


@dataclass
class Service:
    """Answers as the boot server does; `asked`: method and path; `posted`: bodies; `taking`: what it says of these."""

    status: int = 200
    taking: int = 0
    declared: bool = False
    asked: list[str] = field(default_factory=list)
    posted: list[Any] = field(default_factory=list)


@contextmanager
def serving(service: Service) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(json.dumps({"schema": 1, "declared": service.declared}).encode())

        def do_POST(self) -> None:
            service.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            service.asked.append(f"{self.command} {self.path}")
            self.send_response((self.command == "POST" and service.taking) or service.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_it_tells_once_asks_until_it_is_declared_and_tells_again_what_is_new(tmp_path: Path) -> None:
    service, shown = Service(), list[str]()
    with serving(service) as url:
        told = Told(planted(tmp_path), Server(url), BOOT, MAC, shown.append)
        assert not told.step({}, 0.0)
        assert not told.step({}, 5.0)
        assert len(service.posted) == 1
        assert not told.step({"eth0": {"system": "leaf-1", "port": "swp10"}}, 10.0)
        assert service.posted[1]["cards"][0]["neighbour"] == {"system": "leaf-1", "port": "swp10"}
        assert not told.step({}, 10.0 + AGAIN_SECONDS)
        assert len(service.posted) == 3
        service.declared = True
        assert told.step({}, 20.0 + AGAIN_SECONDS)
    assert service.asked[:2] == [
        f"POST /v1/boots/{BOOT}/discovery",
        f"GET /v1/boots/{BOOT}/discovery?mac={MAC.replace(':', '%3A')}&uuid={UUID}&serial=LAB-0001",
    ]
    assert shown[:3] == ["no TPM 2.0", "this machine told the service:", shown[2]]
    assert "it waits until it is declared" in shown


def test_a_boot_that_the_service_no_longer_knows_asks_anew_and_one_that_cannot_be_told_goes_on(tmp_path: Path) -> None:
    service, shown = Service(status=404), list[str]()
    with serving(service) as url:
        told = Told(tmp_path, Server(url), BOOT, MAC, shown.append)
        steps = [told.step({}, 0.0) for _ in range(REBOOT_AFTER)]
        assert steps == [False] * (REBOOT_AFTER - 1) + [True]
        service.status = 503
        assert not told.step({}, 0.0)
    assert not told.step({}, 0.0)
    assert sum("it is tried again" in line for line in shown) == 3, "each trouble once"


def test_who_is_declared_reboots_where_the_service_takes_no_report(tmp_path: Path) -> None:
    """It may be full, or of another version than the image."""
    service, shown = Service(), list[str]()
    with serving(service) as url:
        told = Told(planted(tmp_path), Server(url), BOOT, MAC, shown.append)
        for service.taking in (400, 429, 503):
            assert not told.step({}, 0.0)
        service.declared = True
        assert told.step({}, 5.0)
    assert [line for line in shown if "answered" in line] == [
        f"{url} answered {status}: {words}; it is tried again"
        for status, words in ((400, "Bad Request"), (429, "Too Many Requests"), (503, "Service Unavailable"))
    ]


def test_a_tpm_that_is_found_later_is_told_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the machine would be declared without its key."""
    service, shown = Service(), list[str]()
    found = [(None, "no TPM 2.0"), (None, "no TPM 2.0"), ({"ek_sha256": "ab" * 32, "certificate": None}, "")]
    looked = iter(found)
    monkeypatch.setattr("images.node.discovery.__main__.endorsement", lambda _root: next(looked))
    with serving(service) as url:
        told = Told(planted(tmp_path), Server(url), BOOT, MAC, shown.append)
        for number in range(4):
            assert not told.step({}, float(number))
    assert [said["tpm"] for said in service.posted] == [None, found[2][0]]
    assert (shown.count("no TPM 2.0"), shown[-2]) == (1, "TPM's endorsement key abababababababab")


def test_nothing_is_told_where_no_initrd_of_ours_ran(tmp_path: Path) -> None:
    assert main(["x", str(tmp_path)]) == 1
